/// pthread_mutex_t for what is preloaded, so annotated that clang sees what is done under it
/// (thread_annotations.h). Zeroed memory is an open one, and nothing of it is ever destroyed.
///
/// Thread: any.   Signal: no.   Cost: that of a pthread_mutex_t.
#pragma once

#include <aon/thread_annotations.h>
#include <pthread.h>
#include <time.h>

namespace aon {

class AON_CAPABILITY("mutex") ProcessMutex {
 public:
  void lock() AON_ACQUIRE() { pthread_mutex_lock(&mutex_); }
  void unlock() AON_RELEASE() { pthread_mutex_unlock(&mutex_); }
  /// `end`: of CLOCK_REALTIME.   False: it was not free until then.
  bool lock_until(const timespec& end) AON_TRY_ACQUIRE(true) {
    return pthread_mutex_timedlock(&mutex_, &end) == 0;
  }
  /// In a child of fork(), which may have inherited it locked by a thread that it does not have.
  void begin_child() { mutex_ = PTHREAD_MUTEX_INITIALIZER; }

 private:
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
};

}  // namespace aon
