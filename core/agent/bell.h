/// The agent's end of the bell (aon/bell.h): its page, and a thread that makes what a process did
/// there visible to epoll.
///
/// Thread: arm, disarm and stop from the drain thread.
/// Cost: a thread that sleeps; woken at most a thousand times a second, whatever processes do.
#pragma once

#include <aon/bell.h>

#include <atomic>
#include <thread>

#include "core/base/result.h"
#include "core/base/unique_fd.h"

namespace aon::agent {

class BellWatch {
 public:
  /// The page, sealed. It outlives a worker: processes have it mapped.   Errors: kIo.
  static Result<UniqueFd> create();

  /// Watches the page behind `page_fd`, which stays the caller's. Where it cannot be mapped, nobody
  /// wakes the agent.
  explicit BellWatch(int page_fd);
  ~BellWatch();
  BellWatch(const BellWatch&) = delete;
  BellWatch& operator=(const BellWatch&) = delete;

  void start();
  void stop();

  /// From here on the bell wakes, once.
  void arm() noexcept;
  void disarm() noexcept;

  /// For processes.
  int page_fd() const noexcept { return page_fd_; }
  /// Becomes readable, as epoll sees it with EPOLLET, when the bell was rung.
  int event_fd() const noexcept { return event_fd_.get(); }

 private:
  void run(uint32_t seen) noexcept;

  int page_fd_;
  Bell* bell_ = nullptr;
  UniqueFd event_fd_;
  std::atomic<bool> is_stopping_{false};
  std::atomic<bool> has_ended_{false};
  std::thread thread_;
};

}  // namespace aon::agent
