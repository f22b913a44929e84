#include "nvml/gpm.h"

#include <cmath>
#include <utility>

namespace aon::nvml {
namespace {

constexpr double kPercent = 0.01;
constexpr double kMebi = 1048576;

/// A metric of nvmlGpmMetricId_t and the series it becomes.
struct GpmSeries {
  uint32_t id;
  double scale;
  SeriesText series;
};

constexpr GpmSeries kSeries[] = {
    {1,
     kPercent,
     {"gpm/graphics-active", "1", "share of time in which any part of the GPU worked"}},
    {2, kPercent, {"gpm/sm-active", "1", "multiprocessors with work, of all, mean over time"}},
    {3,
     kPercent,
     {"gpm/sm-occupancy", "1", "warps on the multiprocessors, of the most there can be"}},
    {4, kPercent, {"gpm/integer-active", "1", "use of the integer pipes"}},
    {5, kPercent, {"gpm/tensor-active", "1", "use of the tensor pipes"}},
    {6, kPercent, {"gpm/tensor-dfma-active", "1", "use of the tensor pipes for fp64 multiply-add"}},
    {7,
     kPercent,
     {"gpm/tensor-hmma-active", "1", "use of the tensor pipes for fp16, bf16 and tf32"}},
    {8, kPercent, {"gpm/tensor-dmma-active", "1", "use of the tensor pipes for fp64 matrices"}},
    {9, kPercent, {"gpm/tensor-imma-active", "1", "use of the tensor pipes for integers"}},
    {10, kPercent, {"gpm/dram-active", "1", "use of the memory's bandwidth"}},
    {11, kPercent, {"gpm/fp64-active", "1", "use of the fp64 pipes"}},
    {12, kPercent, {"gpm/fp32-active", "1", "use of the fp32 pipes"}},
    {13, kPercent, {"gpm/fp16-active", "1", "use of the fp16 pipes, tensor pipes apart"}},
    {20, kMebi, {"gpm/pcie-sent-rate", "By/s", "sent over PCIe"}},
    {21, kMebi, {"gpm/pcie-received-rate", "By/s", "received over PCIe"}},
    {60, kMebi, {"gpm/nvlink-received-rate", "By/s", "received over all NVLinks"}},
    {61, kMebi, {"gpm/nvlink-sent-rate", "By/s", "sent over all NVLinks"}},
};

bool has_functions(const Functions& call) {
  return call.gpm_support != nullptr && call.gpm_alloc != nullptr && call.gpm_free != nullptr &&
         call.gpm_sample != nullptr && call.gpm_metrics != nullptr;
}

}  // namespace

bool has_gpm(const Functions& call, Handle gpu) {
  if (!has_functions(call)) return false;
  GpmSupport support = {1, 0};
  return call.gpm_support(gpu, &support) == kSuccess && support.is_supported != 0;
}

Gpm::Gpm(const Functions& call, Handle gpu, std::optional<uint32_t> instance)
    : call_(call), gpu_(gpu), instance_(instance), metrics_(std::make_unique<GpmMetrics>()) {}

Gpm::~Gpm() {
  for (const Sample sample : {earlier_, later_}) {
    if (sample != nullptr) call_.gpm_free(sample);
  }
}

uint32_t Gpm::look(Sample sample) {
  if (!instance_) return call_.gpm_sample(gpu_, sample);
  if (call_.gpm_mig_sample == nullptr) return kFunctionNotFound;
  return call_.gpm_mig_sample(gpu_, *instance_, sample);
}

uint32_t Gpm::read(Values* values) {
  for (Sample* sample : {&earlier_, &later_}) {
    if (*sample != nullptr) continue;
    const uint32_t code = call_.gpm_alloc(sample);
    if (code != kSuccess) return code;
  }
  if (const uint32_t code = look(later_); code != kSuccess) return code;
  std::swap(earlier_, later_);
  if (!std::exchange(has_earlier_, true)) return kSuccess;
  *metrics_ = GpmMetrics{};
  metrics_->version = 1;
  metrics_->count = std::size(kSeries);
  metrics_->earlier = later_;  // they have changed places
  metrics_->later = earlier_;
  for (size_t i = 0; i < std::size(kSeries); ++i) metrics_->metrics[i].id = kSeries[i].id;
  if (const uint32_t code = call_.gpm_metrics(metrics_.get()); code != kSuccess) return code;
  for (size_t i = 0; i < std::size(kSeries); ++i) {
    const GpmMetric& metric = metrics_->metrics[i];
    // What a GPU does not have (no NVLink, say) is its own code; NaN where nothing was counted.
    if (metric.code != kSuccess || !std::isfinite(metric.value)) continue;
    values->value(kSeries[i].series, metric.value * kSeries[i].scale);
  }
  return kSuccess;
}

}  // namespace aon::nvml
