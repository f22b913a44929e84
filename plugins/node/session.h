/// What all providers of this folder have in common between start() and stop(): when they read, and
/// how readings that cost too much become rarer for a while.
/// Owner: the provider.   Thread: the provider's.
#pragma once

#include <aon/provider.h>

#include "node/output.h"
#include "node/system.h"

namespace aon::node {

constexpr uint64_t kMaxTickNs = 10'000'000;  ///< a longer one makes the following ones rarer
constexpr uint32_t kMaxPace = 32;
constexpr uint32_t kCalmTicks = 64;  ///< without such a reading: they come twice as often again

class Session {
 public:
  Session(System& system, Output output) : system_(system), output_(std::move(output)) {}
  virtual ~Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Finds out what there is; counts begin here. OFF: nothing of it can be read.
  StateText start(uint64_t now_ticks);
  /// Reads everything, in every tick or, where that takes too long, in every second, fourth ...
  void tick(uint64_t now_ticks);
  /// Reads once more: the end of the job is in the totals.
  void finish();

  virtual void process_started(uint32_t process, pid_t pid);
  virtual void process_ended(uint32_t process);

 protected:
  virtual StateText find() = 0;
  virtual void read() = 0;

  System& system_;
  Output output_;

 private:
  void set_pace(uint64_t cost_ns);

  uint32_t tick_count_ = 0;
  uint32_t pace_ = 1;       ///< ticks between two readings
  uint32_t told_pace_ = 1;  ///< the largest one that the log tells
  uint32_t calm_ticks_ = 0;
};

}  // namespace aon::node
