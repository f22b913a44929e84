#include "core/service/privileges.h"

#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "core/base/file.h"

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif

namespace aon::service {
namespace {

constexpr uid_t kNobody = 65534;
constexpr int kKept[] = {CAP_PERFMON, CAP_SYSLOG};

Error failed(const char* what) { return errno_error("cannot give up", what, errno); }

/// What is not kept is gone for good: from the bounding set, too.
bool is_bounded() {
  for (int capability = 0; capability <= CAP_LAST_CAP; ++capability) {
    bool is_kept = false;
    for (const int kept : kKept) is_kept = is_kept || kept == capability;
    if (!is_kept && ::prctl(PR_CAPBSET_READ, capability) == 1 &&
        ::prctl(PR_CAPBSET_DROP, capability) != 0)
      return false;
  }
  return true;
}

bool keeps_only_these() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  for (const int kept : kKept) {
    // One that the container we are in was not given cannot be kept.
    if (::prctl(PR_CAPBSET_READ, kept) != 1) continue;
    const auto word = static_cast<unsigned>(kept) / 32;
    data[word].permitted |= 1u << (static_cast<unsigned>(kept) % 32);
    data[word].effective |= 1u << (static_cast<unsigned>(kept) % 32);
  }
  return ::syscall(SYS_capset, &header, data) == 0;
}

}  // namespace

Status drop_privileges() {
  if (::geteuid() != 0) return {};
  if (!is_bounded()) return failed("capabilities");
  if (::prctl(PR_SET_KEEPCAPS, 1) != 0) return failed("root");
  if (::setgroups(0, nullptr) != 0 || ::setresgid(kNobody, kNobody, kNobody) != 0)
    return failed("groups");
  if (::setresuid(kNobody, kNobody, kNobody) != 0) return failed("root");
  if (!keeps_only_these()) return failed("capabilities");
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return failed("new privileges");
  return {};
}

}  // namespace aon::service
