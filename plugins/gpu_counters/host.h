/// CUPTI's knowledge of a chip: which metrics it has, what configures the hardware for them, and
/// how what the hardware counted becomes values. Works without a GPU and without a driver.
/// Owner: the session.   Thread: one.   Cost: 0.1 to 0.4 s per chip, once.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gpu_counters/library.h"
#include "gpu_counters/metrics.h"

namespace aon::gpu_counters {

class Host {
 public:
  explicit Host(const Functions& call) : call_(call) {}
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  /// Makes the configuration of as many of `wanted` as the chip has and one pass takes: the first
  /// ones win. `availability` is the device's own image; null: what the chip can at best.
  Problem configure(const std::string& chip, std::span<const Metric> wanted,
                    const uint8_t* availability);

  const std::vector<uint8_t>& config() const { return config_; }
  const std::vector<Metric>& metrics() const { return metrics_; }
  std::vector<std::string> left_out() const { return left_out_; }
  /// NVIDIA's names of metrics(), as CUPTI takes them.
  const char** names() { return names_.data(); }

  /// Values of one sample of a counter data image, in the order of metrics().
  Problem evaluate(std::span<const uint8_t> data, size_t index, double* values);

 private:
  Problem open(const std::string& chip, const uint8_t* availability, void** host);
  void close(void* host);
  /// Code of adding these, in one call, as CUPTI counts passes by calls.
  int add(void* host, std::vector<const char*> names);
  /// The configuration of metrics_, and how many passes it takes.
  Problem try_metrics(const std::string& chip, const uint8_t* availability, size_t* passes);
  Problem make_image(void* host, size_t* passes);

  const Functions& call_;
  void* host_ = nullptr;
  std::vector<uint8_t> config_;
  std::vector<Metric> metrics_;
  std::vector<const char*> names_;
  std::vector<std::string> left_out_;
};

}  // namespace aon::gpu_counters
