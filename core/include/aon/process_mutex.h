/// A mutex for what is preloaded, so annotated that clang sees what is done under it
/// (thread_annotations.h). Not a pthread_mutex_t: a program may have put its own
/// pthread_mutex_lock() in front of libc's, and that may annotate, which would come back to where
/// the lock is taken, for ever. Zeroed memory is an open one, and nothing of it is ever destroyed.
///
/// Thread: any.   Signal: no.   Cost: one atomic exchange each; a system call where it is not free.
#pragma once

#include <aon/thread_annotations.h>
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace aon {

class AON_CAPABILITY("mutex") ProcessMutex {
 public:
  void lock() AON_ACQUIRE() { take(nullptr); }
  void unlock() AON_RELEASE() {
    // pairs with process:mutex
    if (state_.exchange(kOpen, std::memory_order_release) == kAwaited) wake_one();
  }
  /// `end`: of CLOCK_REALTIME.   False: it was not free until then.
  bool lock_until(const timespec& end) AON_TRY_ACQUIRE(true) { return take(&end); }
  /// In a child of fork(), which may have inherited it locked by a thread that it does not have.
  void begin_child() { state_.store(kOpen, std::memory_order_relaxed); }

 private:
  static constexpr uint32_t kOpen = 0;
  static constexpr uint32_t kTaken = 1;
  static constexpr uint32_t kAwaited = 2;  ///< taken, and somebody may wait

  bool take(const timespec* end) {
    uint32_t open = kOpen;
    if (state_.compare_exchange_strong(open, kTaken,
                                       std::memory_order_acquire))  // pairs with process:mutex
      return true;
    const int own_errno = errno;
    bool is_late = false;
    while (!is_late && state_.exchange(kAwaited, std::memory_order_acquire) !=
                           kOpen) {  // pairs with process:mutex
      constexpr int kWait = FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME;
      is_late =
          syscall(SYS_futex, &state_, kWait, kAwaited, end, nullptr, FUTEX_BITSET_MATCH_ANY) != 0 &&
          errno == ETIMEDOUT;
    }
    errno = own_errno;
    return !is_late;
  }
  void wake_one() {
    const int own_errno = errno;
    syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1);
    errno = own_errno;
  }

  std::atomic<uint32_t> state_{kOpen};
};

}  // namespace aon
