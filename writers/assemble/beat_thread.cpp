#include "writers/assemble/beat_thread.h"

#include <condition_variable>
#include <latch>
#include <memory>
#include <mutex>
#include <utility>

#include "core/base/fork_alone.h"

namespace aon::writers {

BeatThread::BeatThread(std::chrono::milliseconds every, std::function<void()> tell) {
  const auto has_begun = std::make_shared<std::latch>(1);  // a thread that begins takes memory
  thread_ = std::jthread([every, tell = std::move(tell), has_begun](const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any changed;
    std::unique_lock lock(mutex);
    has_begun->count_down();
    while (!changed.wait_for(lock, stop, every, [&stop] { return stop.stop_requested(); })) {
      const MutexLock no_fork(held_at_no_fork());
      try {
        tell();
      } catch (...) {  // no memory: next time
      }
    }
  });
  has_begun->wait();
}

}  // namespace aon::writers
