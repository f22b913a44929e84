#include "writers/assemble/beat_thread.h"

#include <condition_variable>
#include <mutex>
#include <utility>

namespace aon::writers {

BeatThread::BeatThread(std::chrono::milliseconds every, std::function<void()> tell)
    : thread_([every, tell = std::move(tell)](const std::stop_token& stop) {
        std::mutex mutex;
        std::condition_variable_any changed;
        std::unique_lock lock(mutex);
        while (!changed.wait_for(lock, stop, every, [&stop] { return stop.stop_requested(); })) {
          try {
            tell();
          } catch (...) {  // no memory: next time
          }
        }
      }) {}

}  // namespace aon::writers
