/// The thread that drives the encoder: flushes events every `flush_ms` and everything each second,
/// and earlier when staging fills up; in between it sleeps.
/// Thread: start, flush_all and stop from the drain thread.   Cost: a condition variable.
#pragma once

#include <aon/mutex.h>

#include <atomic>
#include <condition_variable>
#include <thread>

#include "core/agent/encoder.h"

namespace aon::agent {

class EncodeThread {
 public:
  EncodeThread(Encoder* encoder, State* state, uint64_t flush_ms)
      : encoder_(encoder), state_(state), flush_ms_(flush_ms) {}
  ~EncodeThread() { stop(); }

  void start();
  /// Wakes it early: staging fills up.
  void nudge() { wake_.notify_one(); }
  /// Waits until everything that is in staging and inbox now is written.
  void flush_all();
  /// The same without waiting.
  void flush_soon();
  void stop();
  /// True when the encoder could not take over its folder.
  bool has_failed() const noexcept {
    return has_failed_.load(std::memory_order_acquire);  // pairs with agent:failed
  }

 private:
  void run();
  bool restore();

  Encoder* encoder_;
  State* state_;
  uint64_t flush_ms_;
  std::atomic<bool> has_failed_{false};
  Mutex m_;
  std::condition_variable wake_;
  std::condition_variable flushed_;
  uint64_t wanted_flushes_ AON_GUARDED_BY(m_) = 0;
  uint64_t done_flushes_ AON_GUARDED_BY(m_) = 0;
  bool is_stopping_ AON_GUARDED_BY(m_) = false;
  std::thread thread_;
};

}  // namespace aon::agent
