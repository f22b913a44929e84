#include "core/cluster/ping_client.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "core/cluster/handshake.h"
#include "core/cluster/tree.h"
#include "core/cluster/wire.h"

namespace aon::cluster {
namespace {

constexpr int kConnectMs = 500;
constexpr int kHandshakeWaitMs = 1000;
constexpr int kPongMs = 500;  ///< an exchange that takes longer says nothing about the clocks
constexpr int kFirstBurstPauseMs = 250;
constexpr int kFirstLookPauseMs = 20;
constexpr int kLongestLookPauseMs = 30'000;
constexpr int kShortestCutPauseMs = 50;  ///< before nodes that were not asked yet
constexpr int kLongestCutPauseMs = 1000;
constexpr size_t kMaxTries = 4;  ///< nodes asked in one look
// A burst that met a busy processor is sent again after it may have become free.
constexpr int kMostGroups = 5;
constexpr int kGroupPauseMs = 4;
constexpr int64_t kLongestEndMs = 1000;
constexpr ptrdiff_t kEnoughShort = 3;  ///< round trips about as short as any was

}  // namespace

void PingClient::start(std::function<void()> prepare) {
  wake_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  thread_ = std::thread([this, first = std::move(prepare)] { run(first); });
}

void PingClient::stop() {
  if (!thread_.joinable()) return;
  stop_ms_.store(now_ms(), std::memory_order_relaxed);
  is_stopping_.store(true, std::memory_order_relaxed);
  const uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof(one));
  thread_.join();
}

void PingClient::run(const std::function<void()>& prepare) {
  block_signals();
  if (prepare) prepare();
  look_pause_ms_ = kFirstLookPauseMs;
  start_ms_ = now_ms();
  while (!is_stopping_.load(std::memory_order_relaxed)) {
    const int64_t now = now_ms();
    if (now >= next_look_ms_) {
      look_for_parent();
      const bool is_cut = next_candidate_ != 0 && !parent_fd_;
      const bool has_more = is_cut && !has_asked_all_;
      if (!is_cut) has_asked_all_ = !parent_fd_;
      next_look_ms_ =
          now_ms() +
          (has_more ? std::clamp<int64_t>(look_pause_ms_, kShortestCutPauseMs, kLongestCutPauseMs)
                    : look_pause_ms_);
      if (!has_more) look_pause_ms_ = std::min<int64_t>(2 * look_pause_ms_, kLongestLookPauseMs);
    }
    if (parent_fd_ && now_ms() >= next_burst_ms_) {
      if (burst(kBurst)) {
        const bool is_late = now_ms() - start_ms_ > kLateSeconds * 1000;
        const int longest_s = is_late ? kLateBurstSeconds : kBurstSeconds;
        burst_pause_ms_ = std::min<int64_t>(2 * burst_pause_ms_, longest_s * 1000);
        next_burst_ms_ = now_ms() + burst_pause_ms_;
      } else {
        leave_parent(false);
        look_soon();
      }
    }
    if (is_leaving_) {
      leave_parent(true);
      look_soon();
    }
    wait_for_work();
  }
  leave_parent(true);
}

/// Connects to the best candidate that answers, unless it is the parent already. Those that do not
/// answer keep nobody from the ones behind them: the next look goes on there, up to the parent.
void PingClient::look_for_parent() {
  const std::vector<std::string> candidates = parent_candidates(list_nodes(agents_), node_);
  size_t next = std::exchange(next_candidate_, 0);
  const auto own = std::find(candidates.begin(), candidates.end(), parent_);  // end: no parent
  if (next >= static_cast<size_t>(own - candidates.begin())) next = 0;
  for (size_t tries = 0; next < candidates.size(); ++next) {
    const std::string& candidate = candidates[next];
    if (candidate == parent_) return;
    if (has_left(candidate)) continue;
    if (is_stopping_.load(std::memory_order_relaxed)) return;
    if (tries++ == kMaxTries) {
      next_candidate_ = next;
      return;
    }
    if (connect(candidate)) return;
  }
}

/// A later agent of its node is another one.
bool PingClient::has_left(const std::string& node) const {
  const auto left = left_.find(node);
  if (left == left_.end()) return false;
  const Result<AgentAddress> address = read_address(agents_, node);
  return !address || address->token == left->second;
}

/// Leaves the parent for `node`. False: that one does not answer; the parent stays.
bool PingClient::connect(const std::string& node) {
  const Result<AgentAddress> address = read_address(agents_, node);
  if (!address) return false;
  for (const Endpoint& endpoint : address->endpoints) {
    if (is_stopping_.load(std::memory_order_relaxed)) return false;
    Result<UniqueFd> fd = connect_to(endpoint, kConnectMs);
    if (!fd || !shake_hands(fd->get(), address->token, node_, now_ms() + kHandshakeWaitMs))
      continue;
    leave_parent(true);
    parent_fd_ = std::move(*fd);
    parent_ = node;
    parent_token_ = address->token;
    shortest_ticks_ = UINT64_MAX;
    has_parent_.store(true, std::memory_order_relaxed);
    burst_pause_ms_ = kFirstBurstPauseMs;
    next_burst_ms_ = now_ms() + burst_pause_ms_;
    // One that welcomes and does not answer is asked again after a while, longer each time.
    if (!burst(kFirstBurst)) leave_parent(false);
    return true;
  }
  return false;
}

void PingClient::leave_parent(bool with_burst) {
  if (!parent_fd_) return;
  if (with_burst && burst(kLastBurst)) (void)send_frame(parent_fd_.get(), make_frame<Bye>());
  if (is_leaving_) left_[parent_] = parent_token_;
  parent_fd_.reset();
  parent_.clear();
  has_parent_.store(false, std::memory_order_relaxed);
  is_leaving_ = false;
}

void PingClient::look_soon() {
  look_pause_ms_ = kFirstLookPauseMs;
  next_look_ms_ = now_ms();
}

/// Beside a slow parent a last burst takes no longer than this: somebody waits in stop().
bool PingClient::is_late_to_end() const {
  const int64_t stop_ms = stop_ms_.load(std::memory_order_relaxed);
  return stop_ms != 0 && now_ms() - stop_ms > kLongestEndMs;
}

bool PingClient::burst(int count) {
  ArrivalClock::set_stamps(parent_fd_.get(), true);
  const bool is_there = exchange_groups(count);
  ArrivalClock::set_stamps(parent_fd_.get(), false);
  return is_there;
}

bool PingClient::exchange_groups(int count) {
  std::vector<uint64_t> round_trips;
  for (int group = 0; group < kMostGroups; ++group) {
    if (group != 0) poll(nullptr, 0, kGroupPauseMs);
    for (int i = 0; i < count; ++i) {
      const uint64_t ticks = exchange();
      if (ticks == 0 || is_late_to_end()) return false;
      round_trips.push_back(ticks);
      shortest_ticks_ = std::min(shortest_ticks_, ticks);
    }
    const uint64_t short_ticks = shortest_ticks_ + shortest_ticks_ / 8;
    const auto is_short = [&](uint64_t ticks) { return ticks <= short_ticks; };
    if (std::count_if(round_trips.begin(), round_trips.end(), is_short) >= kEnoughShort) break;
  }
  return true;
}

/// One ping and its pong: ticks of both ways together. 0: the parent is lost.
uint64_t PingClient::exchange() {
  auto ping = make_frame<Ping>();
  ping.number = ++ping_number_;
  const int fd = parent_fd_.get();
  const int64_t deadline_ms = now_ms() + kPongMs;
  ClockPingDefinition times{};
  Arrival arrival;
  times.sent_ticks = clock_.now_ticks();
  if (!send_frame(fd, ping)) return 0;
  FrameBuffer frame;
  for (;;) {
    const bool is_there = receive_frame(fd, deadline_ms, &frame, [&](void* space, size_t bytes) {
      return clock_.receive(fd, space, bytes, &arrival);
    });
    if (!is_there) return 0;
    if (frame.type() == FrameType::kLeaving) {
      static_cast<void>(frame.take<Leaving>());
      is_leaving_ = true;
      continue;
    }
    if (frame.type() != FrameType::kPong) return 0;
    const auto pong = frame.take<Pong>();
    if (pong.number != ping.number) return 0;
    times.received_ticks = arrival.read_ticks;
    times.peer_received_ticks = pong.received_ticks;
    times.peer_sent_ticks = pong.sent_ticks;
    // Of both ends or of none: one alone would make the ways differ by a wake-up.
    const uint64_t round_trip = arrival.read_ticks - times.sent_ticks;
    if (arrival.waited_ticks != 0 && arrival.waited_ticks <= round_trip && pong.waited_ticks != 0) {
      times.received_ticks -= arrival.waited_ticks;
      times.peer_received_ticks -= std::min(pong.waited_ticks, pong.received_ticks);
    }
    sink_(times, parent_);
    const uint64_t round_trip_ticks = times.received_ticks - times.sent_ticks;
    const uint64_t held_ticks = clock_.to_ticks(pong.held_ns);
    return round_trip_ticks > held_ticks ? round_trip_ticks - held_ticks : 1;
  }
}

/// Sleeps until the next look or burst, a word of the parent, or stop().
void PingClient::wait_for_work() {
  int64_t until_ms = next_look_ms_;
  if (parent_fd_) until_ms = std::min(until_ms, next_burst_ms_);
  const int64_t left_ms = std::max<int64_t>(0, until_ms - now_ms());
  pollfd fds[2] = {{wake_.get(), POLLIN, 0}, {parent_fd_.get(), POLLIN, 0}};
  if (poll(fds, parent_fd_ ? 2 : 1, static_cast<int>(left_ms)) <= 0) return;
  if (parent_fd_ && fds[1].revents != 0 && !take_notice()) {
    leave_parent(false);
    look_soon();
  }
}

/// Between bursts the parent only ever says that it leaves. False: it is lost.
bool PingClient::take_notice() {
  FrameBuffer frame;
  if (!receive_frame(parent_fd_.get(), now_ms() + kPongMs, &frame)) return false;
  is_leaving_ = frame.type() == FrameType::kLeaving;
  return is_leaving_;
}

}  // namespace aon::cluster
