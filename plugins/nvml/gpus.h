/// Reads all GPUs, each kind of query at its own pace (queries.h). What is asked together makes one
/// row of values; asking never takes more than a fiftieth of the time, for launches of kernels may
/// wait while the driver answers, nor more of a core for each GPU than the budget has for it: GPM
/// took 1.3 ms of an H200's driver, which is CPU time. A slow driver is asked less often.
/// Owner: the poller.   Thread: the poller's.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nvml/events.h"
#include "nvml/faults.h"
#include "nvml/found.h"
#include "nvml/gpm.h"
#include "nvml/queries.h"

namespace aon::nvml {

constexpr uint32_t kRestPerCost = 50;  ///< ns of rest for each ns in the driver, at least
/// And no more in all, where that is still kRestPerCost: an answer that took long has perhaps
/// waited for a program that held the driver's lock, which costs neither it nor a core.
constexpr uint64_t kMaxRestNs = 10'000'000'000;

/// Of a job's budget in percent half is for this, where a core is busy for each GPU: ns of rest for
/// each ns in the driver and GPU.
constexpr uint32_t rest_per_gpu(double budget_percent) {
  return budget_percent < 0.01 ? 20'000 : static_cast<uint32_t>(200 / budget_percent);
}

/// Of CLOCK_MONOTONIC.
uint64_t steady_ns();

struct GpuValue {
  uint32_t gpu;  ///< index in gpus()
  Value value;
  /// When the driver was asked for the first value of the row, by steady_ns(); of GPM, which tells
  /// what happened until it looked, when it had answered: it may have waited long for its lock.
  uint64_t read_ns;
};

class Gpus {
 public:
  /// `clock_ns` tells what asking costs; `rest`: rest_per_gpu().
  Gpus(const char* library_name, std::function<uint64_t()> clock_ns, uint32_t rest);

  /// Initializes the driver's library and finds out what there is. False: state() is OFF.
  bool find();
  const std::vector<Gpu>& gpus() const { return gpus_; }

  /// What is asked at the moment.   Thread: any.
  const char* query() const { return query_.load(std::memory_order_relaxed); }

  /// Asks what is due; values are in order of time. Counts of events that did not happen yet are 0.
  std::vector<GpuValue> read(uint64_t now_ns);
  /// Everything is due but GPM, whose looks have to be apart.
  void hurry();
  /// When something is due next.
  uint64_t next_ns() const;
  /// All that is known of what works and what does not.
  node::StateText state() const;
  /// Ends the use of the driver's library.
  void finish();

 private:
  void read_pace(Pace pace, std::vector<GpuValue>* values);
  Values ask(uint32_t gpu, const char* query, const std::function<uint32_t(Values*)>& read);
  void read_events(std::vector<GpuValue>* values);
  /// GPM is there, and the driver has not refused it.
  bool reads_gpm(uint32_t gpu) const;
  bool asks(const Query& query, uint32_t gpu) const;
  bool has_pace(Pace pace) const;
  /// Behind an answer that took `cost_ns`.
  uint64_t rest_ns(uint64_t cost_ns) const;

  Library library_;
  std::function<uint64_t()> clock_ns_;
  uint32_t rest_;
  node::StateText found_;
  std::vector<Gpu> gpus_;
  std::vector<std::string> labels_;
  std::vector<std::unique_ptr<Gpm>> gpm_;  ///< by GPU; null: none
  std::unique_ptr<Events> events_;
  Faults faults_;
  std::vector<uint64_t> xid_counts_;                           ///< by GPU
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> xids_;     ///< (GPU, number) -> count
  std::map<std::pair<uint32_t, std::string>, bool> finished_;  ///< (GPU, query) not asked any more
  uint64_t due_ns_[kPaceCount] = {};
  uint64_t cost_ns_[kPaceCount] = {};  ///< of the last answer
  std::atomic<const char*> query_{""};
  std::string slow_;  ///< which paces are slower, and why
};

}  // namespace aon::nvml
