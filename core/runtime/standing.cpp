// Says to the process that waits for the files whether it may hold standard error: aon/standing.h.
#include <aon/standing.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/agent/protocol.h"
#include "core/runtime/file_status.h"

namespace aon::runtime {
namespace {

/// Anybody may make a socket of that name where no aon-run of this user has made one.
bool is_of_this_user(const char* path) {
  struct stat status = {};
  return read_link_status(path, &status) == 0 && S_ISSOCK(status.st_mode) &&
         status.st_uid == static_cast<uid_t>(syscall(SYS_geteuid));  // not what fakeroot says
}

/// Of no family when nobody of this user waits there, or there is no room for the name.
sockaddr_un waiter_address() {
  sockaddr_un address = {};
  const char* socket_path = secure_getenv("AON_SOCKET");
  if (socket_path == nullptr || secure_getenv("PMI_FD") == nullptr) return address;
  const size_t length = strlen(socket_path);
  if (length + sizeof agent::kWaiterSuffix > sizeof address.sun_path) return address;
  memcpy(address.sun_path, socket_path, length);
  memcpy(address.sun_path + length, agent::kWaiterSuffix, sizeof agent::kWaiterSuffix);
  if (is_of_this_user(address.sun_path)) address.sun_family = AF_UNIX;
  return address;
}

/// A program may have a file of its own under that number, its data even: what aon-run was started
/// with is named by AON_STDERR (agent::kStderrVariable).
bool stderr_is_the_launchs() {
  const char* text = secure_getenv(agent::kStderrVariable);
  struct stat status = {};
  if (text == nullptr || read_status(STDERR_FILENO, &status) != 0) return false;
  char* colon = nullptr;
  const uint64_t device = strtoull(text, &colon, 10);
  return device == status.st_dev && *colon == ':' &&
         strtoull(colon + 1, nullptr, 10) == status.st_ino;
}

/// One byte, with a descriptor unless it is -1; never waits. That nobody is there is no error.
void tell_waiter(agent::WaiterNotice notice, int lent) {
  const int saved_errno = errno;
  sockaddr_un address = waiter_address();
  if (address.sun_family != AF_UNIX) {
    errno = saved_errno;
    return;
  }
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd >= 0) {
    iovec part = {&notice, sizeof notice};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message = {};
    message.msg_name = &address;
    message.msg_namelen = sizeof address;
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (lent >= 0) {
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      cmsghdr* attached = CMSG_FIRSTHDR(&message);
      attached->cmsg_level = SOL_SOCKET;
      attached->cmsg_type = SCM_RIGHTS;
      attached->cmsg_len = CMSG_LEN(sizeof lent);
      memcpy(CMSG_DATA(attached), &lent, sizeof lent);
    }
    sendmsg(fd, &message, MSG_NOSIGNAL);
    close(fd);
  }
  errno = saved_errno;
}

}  // namespace
}  // namespace aon::runtime

namespace aon {
extern "C" {

void aon_take_back_stderr() noexcept { runtime::tell_waiter(agent::WaiterNotice::kTakenBack, -1); }

void aon_lend_stderr() noexcept {
  const int saved_errno = errno;
  if (runtime::stderr_is_the_launchs())
    runtime::tell_waiter(agent::WaiterNotice::kLent, STDERR_FILENO);
  errno = saved_errno;
}
}
}  // namespace aon
