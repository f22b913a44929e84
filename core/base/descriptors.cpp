#include "core/base/descriptors.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace aon {
namespace {

constexpr rlim_t kLastDescriptors = 12;
constexpr int kPauseMs = 1;

UniqueFd open_spare() { return UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

/// Kernels before 5.9 have no close_range.
void close_range_of(unsigned first, unsigned last) {
  if (first > last) return;
  if (syscall(SYS_close_range, first, last, 0) == 0) return;
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const auto end = static_cast<unsigned>(std::min<rlim_t>(limit.rlim_cur, 65536));
  for (unsigned fd = first; fd <= last && fd < end; ++fd) close(static_cast<int>(fd));
}

}  // namespace

void hold_standard_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    // open() takes the lowest number that is free.
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR | O_CLOEXEC) < 0) return;
  }
}

std::string flush_output() {
  errno = 0;
  if (fflush(stdout) == 0 && ferror(stdout) == 0) return {};
  return std::string("standard output: ") +
         (errno != 0 ? strerror(errno) : "not all of it was written");
}

void close_descriptors_but(std::vector<int> kept) {
  std::sort(kept.begin(), kept.end());
  unsigned first = STDERR_FILENO + 1;
  for (const int fd : kept) {
    if (fd <= STDERR_FILENO) continue;
    close_range_of(first, static_cast<unsigned>(fd) - 1);
    first = static_cast<unsigned>(fd) + 1;
  }
  close_range_of(first, ~0u);
}

bool is_among_the_last(int fd) {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
         static_cast<rlim_t>(fd) + kLastDescriptors >= limit.rlim_cur;
}

SpareDescriptor::SpareDescriptor() : fd_(open_spare()) {}

bool SpareDescriptor::send_one_away(int listener) {
  fd_.reset();
  UniqueFd caller(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  const bool is_there = static_cast<bool>(caller);
  const bool is_taken = !is_there && (errno == EMFILE || errno == ENFILE);
  caller.reset();
  fd_ = open_spare();
  if (is_taken) poll(nullptr, 0, kPauseMs);
  return is_there;
}

}  // namespace aon
