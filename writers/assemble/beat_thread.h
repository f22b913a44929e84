/// A thread that calls a function again and again, whatever else the process does: others are told
/// that it lives. What is called is to be short and must not wait for a lock of another thread's. A
/// fork() of the process has no such thread, and is to be a fork_alone(), which waits for the call.
/// Owner: who works.   Thread: one of its own; its end is waited for.
/// Errors: std::system_error, where the process may have no more threads.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace aon::writers {

class BeatThread {
 public:
  BeatThread(std::chrono::milliseconds every, std::function<void()> tell);

 private:
  std::jthread thread_;
};

}  // namespace aon::writers
