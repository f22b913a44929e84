/// std::mutex and its scoped lock, so annotated that clang sees what is done under which lock
/// (thread_annotations.h), and waits for a std::condition_variable under it. What a predicate of a
/// wait reads it reads under the lock, which it says itself:
///
///     MutexLock lock(&m_);
///     lock.wait(&changed_, [&]() AON_REQUIRES(m_) { return is_done_; });
///
/// Not for what is preloaded, which has no C++ library: process_mutex.h.
/// Thread: any.   Cost: that of std::mutex; a process that never waits for one pays nothing more.
#pragma once

#include <aon/thread_annotations.h>

#include <condition_variable>
#include <mutex>
#include <utility>

namespace aon {

class AON_CAPABILITY("mutex") Mutex {
 private:
  friend class MutexLock;
  std::mutex mutex_;
};

/// Holds a mutex as long as it lives, but from an unlock() to a lock() and while it waits.
class AON_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) AON_ACQUIRE(mutex) : lock_(mutex->mutex_) {}
  ~MutexLock() AON_RELEASE() = default;
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void lock() AON_ACQUIRE() { lock_.lock(); }
  void unlock() AON_RELEASE() { lock_.unlock(); }

  /// As those of std::condition_variable.
  template <class Predicate>
  void wait(std::condition_variable* changed, Predicate is_over) {
    changed->wait(lock_, std::move(is_over));
  }
  template <class Duration>
  void wait_for(std::condition_variable* changed, const Duration& longest) {
    changed->wait_for(lock_, longest);
  }
  template <class Duration, class Predicate>
  bool wait_for(std::condition_variable* changed, const Duration& longest, Predicate is_over) {
    return changed->wait_for(lock_, longest, std::move(is_over));
  }
  template <class TimePoint>
  void wait_until(std::condition_variable* changed, const TimePoint& end) {
    changed->wait_until(lock_, end);
  }

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace aon
