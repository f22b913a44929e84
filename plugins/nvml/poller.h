/// Reads the GPUs in a thread of its own: the driver may take tens of milliseconds for an answer,
/// seconds to wake a GPU, and for ever when one has fallen off the bus. The provider only takes
/// what is there.
///
///     poller's thread: find --> read, rest, read ... --> finish --> ended
///     provider's thread: take() <--- at most kMaxWaiting values; more are dropped and counted
///
/// take() also says since when the driver owes an answer, and to which query.
/// Thread: stated per function. A thread that the driver does not give back is left alone with what
/// it needs: it ends with the process.   Cost: one thread, 512 KiB of stack.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nvml/gpus.h"

namespace aon::nvml {

constexpr uint64_t kNsPerSecond = 1'000'000'000;
/// From here on an answer does not only take long.
constexpr uint64_t kHangNs = 5 * kNsPerSecond;
constexpr size_t kMaxWaiting = size_t{1} << 16;  ///< values

struct Round {
  uint64_t ticks;
  std::vector<GpuValue> values;
};

/// What the provider's thread takes over.
struct Taken {
  bool is_found = false;  ///< the GPUs are known and were read once; `state` tells the result
  node::StateText state;
  std::vector<Round> rounds;
  uint64_t dropped_count = 0;  ///< values, since the last time
  uint64_t asking_ns = 0;      ///< for so long the driver has not answered; 0: nothing is asked
  uint64_t asked_at_ns = 0;    ///< begin of that, behind the start of the poller
  const char* query = "";      ///< what is asked
};

class Poller {
 public:
  /// Thread: the provider's. `now_ticks` may be called from any.
  Poller(const char* library_name, std::function<uint64_t()> now_ticks, uint32_t rest);
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;
  /// Asks the thread to end and waits for it, at most 2 s.
  ~Poller();

  /// False: the library is not there, state() says so, and no thread runs.
  bool start();
  /// Waits until it is known what there is and what can be read of it.   False: not in that time.
  bool wait_found(uint32_t timeout_ms);
  /// Waits until everything has been read once more.   False: not in that time.
  bool read_now(uint32_t timeout_ms);
  Taken take();
  /// Valid once it is found.
  std::vector<Gpu> gpus();

 private:
  struct Shared;

  static void* run(void* shared);

  std::shared_ptr<Shared> shared_;
  bool is_running_ = false;
};

}  // namespace aon::nvml
