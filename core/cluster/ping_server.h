/// Answers the pings of the nodes below this one (frames.h). It listens on the addresses of the
/// node that its own name stands for, nowhere else.
///
///     accepted --Challenge--> challenged --right Answer--> ready --Bye, end--> closed
///                                |--wrong, or none within kHandshakeMs--> closed
///                                '--too many others come before it (newcomers.h)--> closed
///
/// Thread: start and stop by one; answers on a thread of its own.
/// Cost: asleep; about 10 us a ping.   Errors: none of its own: who cannot be served is dropped.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "core/base/unique_fd.h"
#include "core/clock/snapshot.h"
#include "core/cluster/address.h"
#include "core/cluster/arrival.h"
#include "core/cluster/frames.h"

namespace aon::cluster {

constexpr int kHandshakeMs = 2000;
constexpr size_t kMaxChildren = 256;  ///< connections at one time

class PingServer {
 public:
  PingServer(const Token& token, clock::TickSource source) : token_(token), clock_(source) {}
  ~PingServer() { stop(0); }

  /// Listens; the addresses it can be reached at, none when it cannot listen anywhere.
  std::vector<Endpoint> start(const std::vector<std::string>& hosts);
  /// Tells the children that this node leaves, answers their last pings for at most `linger_ms`.
  void stop(int linger_ms);

  size_t ready_children() const noexcept { return ready_count_.load(std::memory_order_relaxed); }

 private:
  struct Child {
    UniqueFd fd;
    Nonce nonce{};
    FrameBuffer frame;
    bool is_ready = false;
    int64_t since_ms = 0;
    int64_t burst_ms = 0;  ///< last ping of a burst; 0: none in progress
  };

  void run();
  void accept_all(int listener);
  void make_room_for_newcomer();
  bool receive(Child& child);
  bool handle(Child& child, const Arrival& arrival);
  bool check_answer(Child& child);
  void drop_slow_newcomers(int64_t now_ms);
  void end_bursts(int64_t now_ms);
  void tell_leaving();

  Token token_;
  ArrivalClock clock_;
  std::vector<UniqueFd> listeners_;
  UniqueFd wake_;
  std::map<int, Child> children_;  ///< by descriptor; of the thread
  std::atomic<size_t> ready_count_{0};
  std::atomic<int64_t> leave_at_ms_{0};  ///< 0: stays
  std::thread thread_;
};

}  // namespace aon::cluster
