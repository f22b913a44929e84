/// What both ends of a connection between agents need: a clock for deadlines, a frame on its way, a
/// thread that takes no signals.   Thread: any.
#pragma once

#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>

#include <cstdint>

namespace aon::cluster {

/// ms of CLOCK_MONOTONIC.
inline int64_t now_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

/// Never waits: frames are small, and an end that does not read is lost. False: it is.
template <class T>
bool send_frame(int fd, const T& frame) {
  return send(fd, &frame, sizeof(frame), MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(sizeof(frame));
}

/// Signals are for the agent's own threads.
inline void block_signals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace aon::cluster
