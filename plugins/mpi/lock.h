/// A spinlock that costs nothing where MPI was not initialised with MPI_THREAD_MULTIPLE: then MPI
/// itself demands that its callers take turns.
///
/// Thread: threads_are_concurrent() becomes true once, in MPI_Init_thread before a second thread
/// may call MPI, or with the first session, whose threads need not wait for others'.   Signal: no.
#pragma once

#include <aon/thread_annotations.h>
#include <sched.h>

#include <atomic>
#include <cstdint>

namespace aon::mpi {

/// Never false again.
[[gnu::visibility("hidden")]] extern std::atomic<bool> has_concurrent_threads;

[[gnu::always_inline]] inline bool threads_are_concurrent() {
  return has_concurrent_threads.load(std::memory_order_relaxed);
}

class AON_CAPABILITY("spinlock") SpinLock {
 public:
  void lock() AON_ACQUIRE() {
    if (word_.exchange(1, std::memory_order_acquire) != 0) wait();  // pairs with mpi:lock
  }
  void unlock() AON_RELEASE() { word_.store(0, std::memory_order_release); }  // pairs with mpi:lock

 private:
  /// Apart: who never waits has no registers to save for it.
  [[gnu::noinline]] void wait() {
    for (int spin_count = 1;
         word_.exchange(1, std::memory_order_acquire) != 0;) {  // pairs with mpi:lock
      if (++spin_count % 64 == 0) sched_yield();
    }
  }

  std::atomic<uint32_t> word_{0};
};

/// Holds `lock` while threads are concurrent, else does nothing: for the analysis it always does.
class AON_SCOPED_CAPABILITY Guard {
 public:
  explicit Guard(SpinLock* lock) AON_ACQUIRE(lock)
      : lock_(__builtin_expect(threads_are_concurrent(), false) ? lock : nullptr) {
    if (lock_ != nullptr) lock_->lock();
  }
  ~Guard() AON_RELEASE() {
    if (lock_ != nullptr) lock_->unlock();
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  SpinLock* lock_;
};

}  // namespace aon::mpi
