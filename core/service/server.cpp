#include "core/service/server.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/base/file.h"
#include "core/base/log.h"

namespace aon::service {
namespace {

constexpr int kBacklog = 128;

uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

bool watch(int epoll, int fd, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  return ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

UniqueFd new_socket() {
  return UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

}  // namespace

Result<UniqueFd> listen_at(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path[0] != '/' || path.size() >= sizeof(address.sun_path))
    return Error{Code::kInvalid, path + " is no name for a socket"};
  std::memcpy(address.sun_path, path.c_str(), path.size());
  const auto* where = reinterpret_cast<const sockaddr*>(&address);
  const std::string folder = path.substr(0, path.rfind('/'));
  if (::mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST)
    return errno_error("cannot make", folder, errno);
  const UniqueFd other = new_socket();
  if (other && ::connect(other.get(), where, sizeof(address)) == 0)
    return Error{Code::kBusy, "a service answers at " + path};
  ::unlink(path.c_str());
  UniqueFd listener = new_socket();
  if (!listener || ::bind(listener.get(), where, sizeof(address)) != 0)
    return errno_error("cannot bind", path, errno);
  if (::chmod(path.c_str(), 0666) != 0 || ::listen(listener.get(), kBacklog) != 0)
    return errno_error("cannot listen at", path, errno);
  return listener;
}

Server::Server(UniqueFd listener, Publisher* publisher, std::optional<CrashLog> log)
    : listener_(std::move(listener)),
      publisher_(publisher),
      log_(std::move(log)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  publisher_->set_has_log(log_.has_value());
  watch(epoll_.get(), listener_.get(), EPOLLIN);
}

void Server::run(int stop_fd) {
  watch(epoll_.get(), stop_fd, EPOLLIN);
  int wait_ms = -1;
  for (;;) {
    epoll_event events[64];
    const int count = ::epoll_wait(epoll_.get(), events, 64, wait_ms);
    for (int i = 0; i < count; ++i) {
      const int fd = events[i].data.fd;
      if (fd == stop_fd) return;
      if (fd == listener_.get()) {
        accept_all();
      } else if (log_ && fd == log_->fd()) {
        read_log();
      } else {
        drop(fd);  // a reader says nothing: it hangs up, or is no agent
      }
    }
    wait_ms = readers_.empty() ? -1 : publisher_->tick(monotonic_ns());
  }
}

void Server::accept_all() {
  for (;;) {
    UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) return;
    if (readers_.size() >= kMaxReaders) {
      AON_LOG_WARNING("more than %zu readers: one was sent away", kMaxReaders);
      continue;
    }
    if (readers_.empty()) {
      // What happened before concerns nobody who is here.
      if (log_) log_->skip();
      if (log_) watch(epoll_.get(), log_->fd(), EPOLLIN);
      publisher_->tick_all();
    }
    const int reader = fd.get();
    if (greet(reader) && watch(epoll_.get(), reader, EPOLLIN | EPOLLRDHUP))
      readers_[reader] = std::move(fd);
  }
}

bool Server::greet(int reader) const {
  PageHello hello{kPageMagic, kPageVersion, sizeof(Page)};
  iovec part{&hello, sizeof(hello)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* attached = CMSG_FIRSTHDR(&message);
  attached->cmsg_level = SOL_SOCKET;
  attached->cmsg_type = SCM_RIGHTS;
  attached->cmsg_len = CMSG_LEN(sizeof(int));
  const int page_fd = publisher_->page_fd();
  std::memcpy(CMSG_DATA(attached), &page_fd, sizeof(page_fd));
  return ::sendmsg(reader, &message, MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(sizeof(hello));
}

void Server::drop(int reader) {
  if (readers_.erase(reader) == 0 || !readers_.empty()) return;
  if (log_) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, log_->fd(), nullptr);
}

void Server::read_log() {
  for (const Crash& crash : log_->read()) publisher_->add_crash(crash.pid, crash.place);
}

}  // namespace aon::service
