#include "core/cluster/ping_server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "core/cluster/handshake.h"
#include "core/cluster/newcomers.h"
#include "core/cluster/wire.h"

namespace aon::cluster {
namespace {

constexpr int kIdleMs = 1000;
constexpr int kNoDescriptorMs = 100;
constexpr int kBurstOverMs = 200;  ///< without a ping
constexpr int kMostAccepted = 128;

}  // namespace

std::vector<Endpoint> PingServer::start(const std::vector<std::string>& hosts) {
  std::vector<Endpoint> endpoints;
  for (const std::string& host : hosts) {
    uint16_t port = 0;
    Result<UniqueFd> listener = listen_on(host, &port);
    if (!listener) continue;
    listeners_.push_back(std::move(*listener));
    endpoints.push_back({host, port});
  }
  if (endpoints.empty()) return endpoints;
  wake_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  thread_ = std::thread([this] { run(); });
  return endpoints;
}

void PingServer::stop(int linger_ms) {
  if (!thread_.joinable()) return;
  leave_at_ms_.store(now_ms() + linger_ms, std::memory_order_relaxed);
  const uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof(one));
  thread_.join();
}

void PingServer::run() {
  block_signals();
  bool has_told = false;
  for (;;) {
    const int64_t leave_at_ms = leave_at_ms_.load(std::memory_order_relaxed);
    const int64_t now = now_ms();
    if (leave_at_ms != 0 && !has_told) tell_leaving();
    has_told = leave_at_ms != 0;
    if (has_told && (children_.empty() || now >= leave_at_ms)) break;
    drop_slow_newcomers(now);
    end_bursts(now);
    std::vector<pollfd> fds{{wake_.get(), POLLIN, 0}};
    for (const UniqueFd& listener : listeners_) fds.push_back({listener.get(), POLLIN, 0});
    for (const auto& [fd, child] : children_) fds.push_back({fd, POLLIN, 0});
    const int timeout_ms = has_told ? static_cast<int>(leave_at_ms - now) : kIdleMs;
    if (poll(fds.data(), fds.size(), timeout_ms) <= 0) continue;
    uint64_t ignored = 0;
    if (fds[0].revents != 0) (void)!read(wake_.get(), &ignored, sizeof(ignored));
    // Whoever comes now takes no place from one whose answer has come.
    for (size_t i = fds.size(); i-- > 1;) {
      if (fds[i].revents == 0) continue;
      if (i <= listeners_.size()) {
        accept_all(fds[i].fd);
      } else if (!receive(children_.at(fds[i].fd))) {
        if (children_.at(fds[i].fd).is_ready) ready_count_.fetch_sub(1, std::memory_order_relaxed);
        children_.erase(fds[i].fd);
      }
    }
  }
  children_.clear();
  listeners_.clear();
  ready_count_.store(0, std::memory_order_relaxed);
}

/// Not all at once: who connects as fast as we accept must not keep us from the others.
void PingServer::accept_all(int listener) {
  for (int i = 0; i < kMostAccepted; ++i) {
    UniqueFd fd(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) {
      // The one that waits stays there: without a pause poll() would return for it at once.
      if (errno == EMFILE || errno == ENFILE) poll(nullptr, 0, kNoDescriptorMs);
      return;
    }
    make_room_for_newcomer();
    if (children_.size() >= kMaxChildren) continue;
    const int on = 1;
    setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    const std::optional<Nonce> nonce = send_challenge(fd.get());
    if (!nonce) continue;
    const int number = fd.get();
    Child& child = children_[number];
    child.fd = std::move(fd);
    child.nonce = *nonce;
    child.since_ms = now_ms();
  }
}

void PingServer::make_room_for_newcomer() {
  const auto leaver = newcomer_to_drop(children_, [](const Child& child) {
    return child.is_ready ? std::nullopt : std::optional<int64_t>(child.since_ms);
  });
  if (leaver != children_.end()) children_.erase(leaver);
}

/// Takes what has come. False: the connection is over.
bool PingServer::receive(Child& child) {
  for (;;) {
    Arrival arrival;
    const ssize_t got =
        clock_.receive(child.fd.get(), child.frame.space(), child.frame.wanted(), &arrival);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0 || !child.frame.add(static_cast<size_t>(got))) return false;
    if (child.frame.is_complete() && !handle(child, arrival)) return false;
  }
}

bool PingServer::handle(Child& child, const Arrival& arrival) {
  if (!child.is_ready) return check_answer(child);
  if (child.frame.type() != FrameType::kPing) return false;  // Bye, or nonsense
  auto pong = make_frame<Pong>();
  pong.number = child.frame.take<Ping>().number;
  pong.received_ticks = arrival.read_ticks;
  pong.waited_ticks = arrival.waited_ticks;
  pong.sent_ticks = clock_.now_ticks();
  pong.held_ns = clock_.to_ns(pong.sent_ticks - arrival.read_ticks + arrival.waited_ticks);
  if (!send_frame(child.fd.get(), pong)) return false;
  if (child.burst_ms == 0) ArrivalClock::set_stamps(child.fd.get(), true);
  child.burst_ms = now_ms();
  return true;
}

bool PingServer::check_answer(Child& child) {
  if (child.frame.type() != FrameType::kAnswer) return false;
  if (!welcome_child(child.fd.get(), token_, child.nonce, child.frame.take<Answer>())) return false;
  child.is_ready = true;
  ready_count_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void PingServer::drop_slow_newcomers(int64_t now_ms) {
  std::erase_if(children_, [&](const auto& entry) {
    return !entry.second.is_ready && now_ms - entry.second.since_ms > kHandshakeMs;
  });
}

/// Stamps are for bursts: they cost every packet of the node some time.
void PingServer::end_bursts(int64_t now_ms) {
  for (auto& [fd, child] : children_) {
    if (child.burst_ms == 0 || now_ms - child.burst_ms < kBurstOverMs) continue;
    ArrivalClock::set_stamps(fd, false);
    child.burst_ms = 0;
  }
}

void PingServer::tell_leaving() {
  listeners_.clear();
  std::erase_if(children_, [](const auto& entry) {
    return !entry.second.is_ready || !send_frame(entry.first, make_frame<Leaving>());
  });
}

}  // namespace aon::cluster
