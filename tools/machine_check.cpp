#include "tools/machine_check.h"

#include <aon/perf_refusal.h>
#include <aon/provider.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include "core/agent/memory_limit.h"
#include "core/base/file.h"
#include "core/clock/snapshot.h"
#include "core/clock/tsc_rule.h"
#include "core/service/crash_log.h"
#include "core/service/page_reader.h"
#include "launcher/runtime_folder.h"

namespace aon::tools {
namespace {

constexpr uint64_t kMinShmBytes = 64u << 20;
constexpr uint64_t kMinDescriptors = 1024;

/// Empty where it cannot be read.
std::string text_of(const std::string& path) {
  const Result<std::string> text = read_text_file(path, 65536);
  return text ? *text : std::string();
}

std::string first_line(const std::string& path) {
  const std::string text = text_of(path);
  return text.substr(0, text.find('\n'));
}

/// errno of opening one event on this process, 0 when it works.
int try_event(uint32_t type, uint64_t config, bool with_kernel) {
  perf_event_attr attributes{};
  attributes.size = sizeof(attributes);
  attributes.type = type;
  attributes.config = config;
  attributes.disabled = 1;
  attributes.exclude_kernel = with_kernel ? 0 : 1;
  attributes.exclude_hv = 1;
  const long fd = syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0);
  if (fd < 0) return errno;
  close(static_cast<int>(fd));
  return 0;
}

std::string paranoid_level() { return first_line("/proc/sys/kernel/perf_event_paranoid"); }

Check check_software_events() {
  const int error_number = try_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, false);
  return check_events("perf software events", "perf_event_paranoid " + paranoid_level(),
                      error_number, PerfReach::kUserMode, paranoid_level());
}

Check check_hardware_events() {
  const int error_number = try_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, false);
  return check_events("perf hardware events", "cycles can be counted", error_number,
                      PerfReach::kUserMode, paranoid_level());
}

/// Whether programs may read the PMU without a syscall: counters at the borders of calls need it.
Check check_rdpmc() {
  const char* name = "counters of calls (rdpmc)";
  if (try_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, false) != 0)
    return {name, Ability::kNo, "no hardware events; --events counts software events only",
            "see perf hardware events"};
  const std::string setting = first_line("/sys/bus/event_source/devices/cpu/rdpmc");
  if (setting == "0")
    return {name, Ability::kNo,
            "programs may not read the PMU; the agent counts ten times a second",
            "echo 1 > /sys/bus/event_source/devices/cpu/rdpmc"};
  return {name, Ability::kYes, "rdpmc " + (setting.empty() ? std::string("unknown") : setting), ""};
}

Check check_kernel_events() {
  const int error_number = try_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, true);
  return check_events("perf kernel side", "kernel time is counted too", error_number,
                      PerfReach::kKernelMode, paranoid_level());
}

Check check_memfd() {
  const int fd = memfd_create("aon-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0)
    return {"sealed shared memory", Ability::kNo, fmt::format("memfd_create: {}", strerror(errno)),
            "a kernel of 3.17 or newer"};
  const bool is_sealed = ftruncate(fd, 4096) == 0 &&
                         fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
  const int error_number = errno;
  close(fd);
  if (is_sealed) return {"sealed shared memory", Ability::kYes, "memfd with seals", ""};
  return {"sealed shared memory", Ability::kNo, strerror(error_number), ""};
}

Check check_pidfd() {
  const long fd = syscall(SYS_pidfd_open, getpid(), 0);
  if (fd >= 0) {
    close(static_cast<int>(fd));
    return {"process descriptors", Ability::kYes, "pidfd_open", ""};
  }
  return {"process descriptors", Ability::kLimited,
          fmt::format("pidfd_open: {}; ends of processes are polled", strerror(errno)),
          "a kernel of 5.3 or newer"};
}

Check check_shm() {
  struct statvfs status {};
  if (statvfs("/dev/shm", &status) != 0)
    return {"/dev/shm", Ability::kLimited, "not mounted; our rings do not need it, MPI does",
            "mount -t tmpfs -o size=50% tmpfs /dev/shm"};
  const uint64_t free_bytes = uint64_t{status.f_bavail} * status.f_frsize;
  const std::string detail =
      fmt::format("{} MiB free; our rings do not count against it", free_bytes >> 20);
  if (free_bytes >= kMinShmBytes) return {"/dev/shm", Ability::kYes, detail, ""};
  return {"/dev/shm", Ability::kLimited, detail, "mount -o remount,size=50% /dev/shm"};
}

Check check_runtime_folder() {
  const std::string dir = launcher::runtime_folder();
  struct stat status {};
  if (!dir.starts_with("/tmp/")) return {"socket folder", Ability::kYes, dir, ""};
  if (lstat(dir.c_str(), &status) != 0) {
    if (access("/tmp", W_OK | X_OK) == 0)
      return {"socket folder", Ability::kYes, dir + ", made when needed", ""};
    return {"socket folder", Ability::kNo, "/tmp is not writable", "chmod 1777 /tmp"};
  }
  if (S_ISDIR(status.st_mode) && status.st_uid == geteuid() && (status.st_mode & 077) == 0)
    return {"socket folder", Ability::kYes, dir, ""};
  return {"socket folder", Ability::kNo, dir + " is not a 0700 folder of this user",
          "as its owner or root: rm -r " + dir};
}

std::string limit_text(rlim_t value) {
  return value == RLIM_INFINITY ? "unlimited" : std::to_string(value);
}

using ServicePage = Result<std::unique_ptr<service::PageReader>>;

/// What the service reads, and why it does not read the rest.
Check check_what_is_read(const service::PageReader& page) {
  std::string read;
  std::string off;
  for (const std::string& name : page.providers()) {
    const auto view = page.provider(name);
    const bool is_read = view && view->state != AON_STATE_OFF;
    std::string& list = is_read ? read : off;
    list += (list.empty() ? "" : ", ") + name;
    if (!is_read && view && !view->reason.empty()) list += " (" + view->reason + ")";
  }
  std::string detail = read.empty() ? "one runs and reads nothing" : "reads " + read;
  if (!off.empty()) detail += "; not " + off;
  if (!read.empty()) return {"node service", Ability::kYes, detail, ""};
  return {"node service", Ability::kLimited, detail, "aon-node --providers LIST"};
}

Check check_node_service(const ServicePage& page) {
  if (page) return check_what_is_read(**page);
  if (page.error().code == Code::kNotFound)
    return {"node service", Ability::kLimited, "none runs; agents read what their user may", ""};
  return {"node service", Ability::kLimited, page.error().message, "systemctl restart aon-node"};
}

/// Where MPI does not handle the signal, only the kernel knows where a program died.
Check check_crash_log(const ServicePage& page) {
  const auto log = service::CrashLog::open();
  if (log) return {"crash log", Ability::kYes, "/dev/kmsg tells of crashes in AON's own code", ""};
  if (page && (*page)->has_log())
    return {"crash log", Ability::kYes, "the node service reads /dev/kmsg for all users", ""};
  return {"crash log", Ability::kLimited, log.error().message,
          "sysctl -w kernel.dmesg_restrict=0, or the node service"};
}

Check check_descriptors() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const std::string detail =
      fmt::format("{} (hard {})", limit_text(limit.rlim_cur), limit_text(limit.rlim_max));
  if (limit.rlim_cur >= kMinDescriptors) return {"open files", Ability::kYes, detail, ""};
  return {"open files", Ability::kLimited, detail + "; traces of many threads need more to be read",
          fmt::format("ulimit -n {}", kMinDescriptors)};
}

Check check_address_space() {
  rlimit limit{};
  getrlimit(RLIMIT_AS, &limit);
  const std::string detail = limit_text(limit.rlim_cur);
  if (limit.rlim_cur == RLIM_INFINITY) return {"address space", Ability::kYes, detail, ""};
  return {"address space", Ability::kLimited, detail + " bytes; a ring takes 8 MiB of it",
          "ulimit -v unlimited, or aon-run --memory 1MiB"};
}

Check check_memory_limit() {
  const auto machine_bytes =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t limit_bytes = agent::memory_limit_bytes();
  const std::string limit =
      limit_bytes < machine_bytes ? fmt::format("{} bytes", limit_bytes) : std::string("none");
  return {"memory limit", Ability::kYes,
          limit + "; the agent uses 1 % of what there is for rings, 16 MiB to 1 GiB", ""};
}

}  // namespace

Check check_events(const std::string& name, const std::string& good, int error_number,
                   PerfReach reach, const std::string& paranoid_level) {
  if (error_number == 0) return {name, Ability::kYes, good, ""};
  char* end = nullptr;
  const long level = std::strtol(paranoid_level.c_str(), &end, 10);
  const bool is_known = end != paranoid_level.c_str();
  const PerfRefusal refusal =
      perf_refusal(error_number, reach, is_known ? static_cast<int>(level) : kUnknownParanoidLevel);
  std::string detail = *refusal.reason != '\0' ? refusal.reason : strerror(error_number);
  if (error_number == EACCES) detail = "perf_event_paranoid " + paranoid_level + ": " + detail;
  return {name, Ability::kNo, detail, refusal.remedy};
}

Check check_clock(const std::string& cpu_info, const std::string& current,
                  const std::string& available) {
  const clock::TscSuitability tsc = clock::judge_tsc(cpu_info, current, available);
  if (tsc.is_suitable)
    return {"clock", Ability::kYes, "TSC, constant and running in all sleep states", ""};
  const bool would_be = clock::has_word(available.c_str(), "tsc") &&
                        clock::judge_tsc(cpu_info, "tsc", available).is_suitable;
  return {"clock", Ability::kLimited,
          tsc.reason + "; clock_gettime is used, about 22 ns instead of 10 ns a reading",
          would_be ? fmt::format("echo tsc > {}", clock::kCurrentClocksource) : ""};
}

std::vector<Check> check_system() {
  const ServicePage page = service::PageReader::connect(service::PageReader::socket_path());
  return {check_clock(text_of("/proc/cpuinfo"), text_of(clock::kCurrentClocksource),
                      text_of(clock::kAvailableClocksources)),
          check_software_events(),
          check_hardware_events(),
          check_rdpmc(),
          check_kernel_events(),
          check_memfd(),
          check_pidfd(),
          check_shm(),
          check_runtime_folder(),
          check_descriptors(),
          check_address_space(),
          check_memory_limit(),
          check_node_service(page),
          check_crash_log(page)};
}

}  // namespace aon::tools
