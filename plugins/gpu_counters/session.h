/// PM sampling of one GPU: the hardware writes its counters into a buffer at a fixed interval, and
/// read() turns what is there into values.
///
///     start: availability -> Host::configure -> enable -> config -> start
///     read, read ...  decode -> samples -> values
///     stop: stop -> decode -> disable
///
/// Never reconfigured while it runs: CUPTI crashes. The configuration outlives the sampling.
/// Owner: the helper process.   Thread: one.   Cost: about 18 MiB for 1024 samples on the host and
/// kBufferBytes of the device's memory.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gpu_counters/host.h"

namespace aon::gpu_counters {

constexpr size_t kBufferBytes = size_t{64} << 20;  ///< of the hardware's records
constexpr uint32_t kMaxSamples = 1024;             ///< of one decoding

class Session {
 public:
  using Sink = std::function<void(uint64_t start_ns, uint64_t end_ns, std::span<const double>)>;

  Session(const Functions& call, uint32_t device) : call_(call), device_(device) {}
  ~Session() { stop(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Begins to sample.   Errors: as CUPTI says; nothing runs then.
  Problem start(std::span<const Metric> wanted, uint64_t interval_ns);
  /// Hands on what was sampled since the last time, without the first sample and those without a
  /// length.
  Problem read(const Sink& sink);
  /// Ends it, and hands on what was sampled since read(). Without a sink that is dropped.
  Problem stop(const Sink& sink = {});

  const std::string& chip() const { return chip_; }
  const std::vector<Metric>& metrics() const { return host_->metrics(); }
  const std::vector<std::string> left_out() const { return host_->left_out(); }
  /// How often the hardware's buffer was full: samples are missing.
  uint64_t overflow_count() const { return overflow_count_; }

 private:
  Problem find_chip();
  Problem read_availability();
  Problem configure(uint64_t interval_ns);
  Problem reset_data();
  Problem hand_on(size_t count, const Sink& sink);

  const Functions& call_;
  size_t device_;
  std::string chip_;
  std::vector<uint8_t> availability_;
  std::unique_ptr<Host> host_;
  std::vector<uint8_t> data_;
  std::vector<double> values_;
  void* sampling_ = nullptr;
  bool is_started_ = false;
  bool is_first_ = true;
  uint64_t overflow_count_ = 0;
};

}  // namespace aon::gpu_counters
