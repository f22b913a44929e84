#include "core/service/server.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "core/base/file.h"
#include "core/base/packet.h"
#include "core/base/time.h"

namespace aon::service {
namespace {

constexpr int kBacklog = 128;
constexpr int kEndMs = 1800;  ///< below what a Prolog gives it

bool watch(int epoll, int fd, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  return ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

bool is_own_folder(const std::string& folder) {
  struct stat status {};
  return ::lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == ::geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

}  // namespace

Result<Listener> listen_at(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path[0] != '/' || path.size() >= sizeof(address.sun_path))
    return Error{Code::kInvalid, path + " is no name for a socket"};
  std::memcpy(address.sun_path, path.c_str(), path.size());
  const std::string folder = path.substr(0, path.rfind('/'));
  if (::mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST)
    return errno_error("cannot make", folder, errno);
  if (!is_own_folder(folder))
    return Error{Code::kUnavailable, folder + " is another user's, or others may write to it"};
  auto lock = open_file(path + ".lock", O_RDWR | O_CREAT | O_NOFOLLOW);
  if (!lock) return lock.error();
  if (::flock(lock->get(), LOCK_EX | LOCK_NB) != 0)
    return Error{Code::kBusy, "a service answers at " + path};
  static_cast<void>(!::ftruncate(lock->get(), 0));  // who served before is nobody's business now
  ::unlink(path.c_str());
  UniqueFd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener ||
      ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    return errno_error("cannot bind", path, errno);
  if (::chmod(path.c_str(), 0666) != 0 || ::listen(listener.get(), kBacklog) != 0)
    return errno_error("cannot listen at", path, errno);
  return Listener{std::move(listener), std::move(*lock)};
}

void note_owner(const Listener& listener) {
  const std::string text = std::to_string(::getpid()) + "\n";
  if (::ftruncate(listener.lock.get(), 0) == 0)
    static_cast<void>(write_all(listener.lock.get(), text.data(), text.size()));
}

Status end_service(const std::string& path) {
  const std::string lock_path = path + ".lock";
  const auto lock = open_file(lock_path, O_RDONLY | O_NOFOLLOW);
  if (!lock) return lock.error().code == Code::kNotFound ? Status() : lock.error();
  const Result<std::string> text = read_text_file(lock_path);
  const pid_t pid = text ? std::atoi(text->c_str()) : 0;
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (::flock(lock->get(), LOCK_SH | LOCK_NB) == 0) return {};  // none serves, or it leaves
  // The lock is empty from when it is taken until its owner has signed, so whose number still
  // stands there held it before that process was opened, and holds it now.
  const Result<std::string> again = read_text_file(lock_path);
  if (pid <= 0 || !again || *again != *text)
    return Error{Code::kUnavailable, lock_path + " does not say who serves"};
  if (::syscall(SYS_pidfd_send_signal, process.get(), SIGTERM, nullptr, 0) != 0)
    return errno_error("cannot end", "process " + std::to_string(pid), errno);
  pollfd end{process.get(), POLLIN, 0};
  if (::poll(&end, 1, kEndMs) > 0) return {};
  return Error{Code::kUnavailable, "process " + std::to_string(pid) + " has not ended"};
}

Server::Server(Listener listener, Publisher* publisher, std::optional<CrashLog> log)
    : listener_(std::move(listener)),
      publisher_(publisher),
      log_(std::move(log)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  publisher_->set_has_log(log_.has_value());
  watch(epoll_.get(), listener_.socket.get(), EPOLLIN);
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
      if (fd == listener_.socket.get()) {
        accept_some();
      } else if (log_ && fd == log_->fd()) {
        read_log();
      } else {
        drop(fd);  // a reader says nothing: it hangs up, or is no agent
      }
    }
    wait_ms = readers_.empty() ? -1 : publisher_->tick(monotonic_ns());
  }
}

/// Not all at once: who connects as fast as we accept must not keep us from the others.
void Server::accept_some() {
  for (int i = 0; i < kMostAccepted; ++i) {
    UniqueFd fd(::accept4(listener_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd) {
      accept_one(std::move(fd));
    } else if ((errno != EMFILE && errno != ENFILE) ||
               !spare_.send_one_away(listener_.socket.get())) {
      return;
    }
  }
}

void Server::accept_one(UniqueFd fd) {
  ucred peer{};
  socklen_t bytes = sizeof(peer);
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0 ||
      !has_room_for(peer.uid))
    return;
  freshen();
  const int reader = fd.get();
  const bool is_first = readers_.empty();
  if (!greet(reader) || !watch(epoll_.get(), reader, EPOLLIN | EPOLLRDHUP)) return;
  readers_[reader] = {std::move(fd), peer.uid};
  if (!is_first || !log_) return;
  log_->skip();  // what happened before concerns nobody who is here
  watch(epoll_.get(), log_->fd(), EPOLLIN);
}

bool Server::has_room_for(uid_t user) const {
  const auto count = std::count_if(readers_.begin(), readers_.end(),
                                   [&](const auto& one) { return one.second.user == user; });
  return readers_.size() < kMaxReaders && static_cast<size_t>(count) < kMaxReadersOfUser;
}

/// A newcomer's counts begin now, not where they were when somebody last looked.
void Server::freshen() {
  const uint64_t now_ns = monotonic_ns();
  if (now_ns - fresh_ns_ < kFreshNs && fresh_ns_ != 0) return;
  fresh_ns_ = now_ns;
  publisher_->tick_all();
}

bool Server::greet(int reader) const {
  const PageHello hello{kPageMagic, kPageVersion, sizeof(Page)};
  const int page_fd = publisher_->page_fd();
  return send_struct(reader, hello, {&page_fd, 1}, MSG_DONTWAIT);
}

void Server::drop(int reader) {
  if (readers_.erase(reader) == 0 || !readers_.empty()) return;
  if (log_) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, log_->fd(), nullptr);
}

void Server::read_log() {
  for (const Crash& crash : log_->read()) publisher_->add_crash(crash.tid, crash.place);
}

}  // namespace aon::service
