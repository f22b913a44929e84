/// fork() of a process that has threads of ours, for a child that goes on without exec(): the child
/// has none of these threads, but the locks that they held just then, for ever. So who works in
/// such a thread does it under held_at_no_fork(), and who forks so takes fork_alone().
/// The C library lets go of its own locks in the child; sanitizers of g++ 12 do not.
/// Thread: any.   Cost: a mutex.
#pragma once

#include <aon/mutex.h>
#include <unistd.h>

namespace aon {

inline Mutex* held_at_no_fork() {
  static Mutex mutex;
  return &mutex;
}

inline pid_t fork_alone() {
  const MutexLock lock(held_at_no_fork());
  return fork();
}

}  // namespace aon
