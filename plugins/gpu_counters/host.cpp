#include "gpu_counters/host.h"

namespace aon::gpu_counters {

Host::~Host() { close(host_); }

void Host::close(void* host) {
  if (host == nullptr) return;
  auto parameters = sized<HostDeinitialize>();
  parameters.host = host;
  call_.host_deinitialize(&parameters);
}

Problem Host::open(const std::string& chip, const uint8_t* availability, void** host) {
  auto parameters = sized<HostInitialize>();
  parameters.type = kPmSampling;
  parameters.chip = chip.c_str();
  parameters.availability = availability;
  const int code = call_.host_initialize(&parameters);
  *host = parameters.host;
  return problem_of("cuptiProfilerHostInitialize", code);
}

int Host::add(void* host, std::vector<const char*> names) {
  auto parameters = sized<AddMetrics>();
  parameters.host = host;
  parameters.names = names.data();
  parameters.count = names.size();
  return call_.add_metrics(&parameters);
}

Problem Host::make_image(void* host, size_t* passes) {
  auto size = sized<ConfigImageSize>();
  size.host = host;
  if (const int code = call_.config_image_size(&size); code != kSuccess)
    return problem_of("cuptiProfilerHostGetConfigImageSize", code);
  config_.assign(size.bytes, 0);
  auto image = sized<ConfigImage>();
  image.host = host;
  image.bytes = config_.size();
  image.image = config_.data();
  if (const int code = call_.config_image(&image); code != kSuccess)
    return problem_of("cuptiProfilerHostGetConfigImage", code);
  auto count = sized<PassCount>();
  count.bytes = config_.size();
  count.image = config_.data();
  const int code = call_.pass_count(&count);
  *passes = count.passes;
  return problem_of("cuptiProfilerHostGetNumOfPasses", code);
}

Problem Host::try_metrics(const std::string& chip, const uint8_t* availability, size_t* passes) {
  close(host_);
  host_ = nullptr;
  if (Problem problem = open(chip, availability, &host_)) return problem;
  names_.clear();
  for (const Metric& metric : metrics_) names_.push_back(metric.name);
  if (const int code = add(host_, names_); code != kSuccess)
    return problem_of("cuptiProfilerHostConfigAddMetrics", code);
  return make_image(host_, passes);
}

Problem Host::configure(const std::string& chip, std::span<const Metric> wanted,
                        const uint8_t* availability) {
  // One try object learns what the chip has: an unknown metric adds nothing to it.
  void* trial = nullptr;
  if (Problem problem = open(chip, availability, &trial)) return problem;
  std::vector<Metric> known;
  for (const Metric& metric : wanted) {
    if (add(trial, {metric.name}) == kSuccess) {
      known.push_back(metric);
    } else {
      left_out_.emplace_back(metric.series);
    }
  }
  close(trial);
  size_t passes = 0;
  metrics_ = known;
  if (Problem problem = try_metrics(chip, availability, &passes)) return problem;
  if (passes == 1) return {};
  // They do not fit together: one after the other, as long as they do.
  metrics_.clear();
  for (const Metric& metric : known) {
    metrics_.push_back(metric);
    if (Problem problem = try_metrics(chip, availability, &passes)) return problem;
    if (passes == 1) continue;
    metrics_.pop_back();
    left_out_.emplace_back(metric.series);
  }
  if (metrics_.empty()) return {"no metric of this set can be sampled on " + chip, ""};
  return try_metrics(chip, availability, &passes);
}

Problem Host::evaluate(std::span<const uint8_t> data, size_t index, double* values) {
  auto parameters = sized<Evaluate>();
  parameters.host = host_;
  parameters.data = data.data();
  parameters.data_bytes = data.size();
  parameters.index = index;
  parameters.names = names_.data();
  parameters.count = names_.size();
  parameters.values = values;
  return problem_of("cuptiProfilerHostEvaluateToGpuValues", call_.evaluate(&parameters));
}

}  // namespace aon::gpu_counters
