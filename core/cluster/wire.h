/// What both ends of a connection between agents need: a clock for deadlines, a frame on its way, a
/// thread that takes no signals.   Thread: any.
#pragma once

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "core/base/time.h"
#include "core/cluster/frames.h"

namespace aon::cluster {

/// Never waits: frames are small, and an end that does not read is lost. False: it is.
template <class T>
bool send_frame(int fd, const T& frame) {
  return send(fd, &frame, sizeof(frame), MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(sizeof(frame));
}

/// Receives one frame before `deadline_ms` by `receive` (space, bytes), which is recv() without
/// waiting. False: it did not come, or is none of ours.
template <class Receive>
bool receive_frame(int fd, int64_t deadline_ms, FrameBuffer* frame, Receive receive) {
  while (!frame->is_complete()) {
    pollfd readable{fd, POLLIN, 0};
    const auto left_ms = static_cast<int>(std::max<int64_t>(0, deadline_ms - now_ms()));
    if (poll(&readable, 1, left_ms) <= 0) return false;
    const ssize_t got = receive(frame->space(), frame->wanted());
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0 || !frame->add(static_cast<size_t>(got))) return false;
  }
  return true;
}

inline bool receive_frame(int fd, int64_t deadline_ms, FrameBuffer* frame) {
  return receive_frame(fd, deadline_ms, frame, [fd](void* space, size_t bytes) {
    return recv(fd, space, bytes, MSG_DONTWAIT);
  });
}

/// Signals are for the agent's own threads.
inline void block_signals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace aon::cluster
