/// Asks the node above this one for its time, in bursts over the whole run, and hands on every
/// exchange as it was measured. Which node that is changes as nodes come and go (tree.h).
///
///     no parent --address found, proofs right--> connected: a burst of kFirstBurst
///     connected --every kBurstSeconds--> a burst of kBurst
///               --Leaving, stop()--> a last burst, Bye --> no parent
///               --lost, better parent there--> no parent
///
/// Bursts come at 0.25, 0.5, 1, 2, 4, 8 s and then every kBurstSeconds, so that a short job has
/// more than one too. One without three round trips about as short as the shortest so far goes on,
/// for up to five times its length. The folder is looked at after 20, 40, ... ms, up to every 30 s;
/// without a parent the pause only grows when all that are there were asked.
/// Thread: start and stop by one; works on a thread of its own, which calls the sink.
/// Cost: asleep; 20 exchanges in ten seconds, later in a minute; 100 where processors are busy.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "core/base/unique_fd.h"
#include "core/clock/snapshot.h"
#include "core/cluster/address.h"
#include "core/cluster/arrival.h"
#include "core/cluster/frames.h"

namespace aon::cluster {

constexpr int kFirstBurst = 100;
constexpr int kBurst = 20;
constexpr int kLastBurst = 40;
constexpr int kBurstSeconds = 10;
constexpr int kLateBurstSeconds = 60;  ///< from kLateSeconds on: a long job needs no more
constexpr int kLateSeconds = 600;

class PingClient {
 public:
  using Sink = std::function<void(const ClockPingDefinition&, const std::string& peer)>;

  /// `agents`: the folder of addresses; `node`: this one's name.
  PingClient(std::string agents, std::string node, clock::TickSource source, Sink sink)
      : agents_(std::move(agents)),
        node_(std::move(node)),
        clock_(source),
        sink_(std::move(sink)) {}
  ~PingClient() { stop(); }

  /// `prepare` runs first on the client's thread: name resolution and files may take long.
  /// Throws std::system_error where no thread can be had.
  void start(std::function<void()> prepare = {});
  /// Ends with a last burst.
  void stop();

  bool has_parent() const noexcept { return has_parent_.load(std::memory_order_relaxed); }

 private:
  void run(const std::function<void()>& prepare);
  void look_for_parent();
  bool has_left(const std::string& node) const;
  bool connect(const std::string& node);
  void leave_parent(bool with_burst);
  void look_soon();
  bool burst(int count);
  bool exchange_groups(int count);
  bool is_late_to_end() const;
  uint64_t exchange();
  void wait_for_work();
  bool take_notice();

  std::string agents_;
  std::string node_;
  ArrivalClock clock_;
  Sink sink_;
  UniqueFd wake_;
  UniqueFd parent_fd_;
  std::string parent_;
  Token parent_token_{};
  std::map<std::string, Token> left_;  ///< parents that said Leaving
  size_t next_candidate_ = 0;          ///< behind those that did not answer
  bool has_asked_all_ = false;         ///< and none was there: they are asked again, without haste
  uint64_t ping_number_ = 0;
  uint64_t shortest_ticks_ = UINT64_MAX;  ///< there and back to this parent
  int64_t start_ms_ = 0;
  int64_t next_burst_ms_ = 0;
  int64_t burst_pause_ms_ = 0;
  int64_t next_look_ms_ = 0;
  int64_t look_pause_ms_ = 0;
  bool is_leaving_ = false;  ///< the parent
  std::atomic<bool> is_stopping_{false};
  std::atomic<int64_t> stop_ms_{0};  ///< when stop() was called; 0: not yet
  std::atomic<bool> has_parent_{false};
  std::thread thread_;
};

}  // namespace aon::cluster
