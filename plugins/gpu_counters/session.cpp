#include "gpu_counters/session.h"

#include <utility>

namespace aon::gpu_counters {
namespace {

constexpr int kMaxDecodings = 16;  ///< in one read()

/// Turing and GA100 have no trigger by time: theirs counts cycles of the system clock, about 1 GHz.
bool has_time_trigger(const std::string& chip) {
  return chip != "GA100" && chip.rfind("TU", 0) != 0;
}

}  // namespace

Problem Session::find_chip() {
  auto parameters = sized<ChipName>();
  parameters.device = device_;
  const int code = call_.chip_name(&parameters);
  if (code == kSuccess && parameters.name != nullptr) chip_ = parameters.name;
  return problem_of("cuptiDeviceGetChipName", code);
}

Problem Session::read_availability() {
  auto parameters = sized<Availability>();
  parameters.device = device_;
  if (const int code = call_.availability(&parameters); code != kSuccess)
    return problem_of("cuptiPmSamplingGetCounterAvailability", code);
  availability_.assign(parameters.bytes, 0);
  parameters.image = availability_.data();
  return problem_of("cuptiPmSamplingGetCounterAvailability", call_.availability(&parameters));
}

Problem Session::configure(uint64_t interval_ns) {
  auto config = sized<SetConfig>();
  config.sampling = sampling_;
  config.config_bytes = host_->config().size();
  config.config = host_->config().data();
  config.buffer_bytes = kBufferBytes;
  config.interval = interval_ns;
  config.trigger = has_time_trigger(chip_) ? kTimeInterval : kSysclkInterval;
  config.append = chip_.rfind("TU", 0) == 0 ? kKeepOldest : kKeepLatest;
  if (const int code = call_.set_config(&config); code != kSuccess)
    return problem_of("cuptiPmSamplingSetConfig", code);
  auto size = sized<DataSize>();
  size.sampling = sampling_;
  size.names = host_->names();
  size.count = host_->metrics().size();
  size.max_samples = kMaxSamples;
  if (const int code = call_.data_size(&size); code != kSuccess)
    return problem_of("cuptiPmSamplingGetCounterDataSize", code);
  data_.assign(size.bytes, 0);
  values_.assign(host_->metrics().size(), 0);
  return reset_data();
}

Problem Session::reset_data() {
  auto parameters = sized<DataInitialize>();
  parameters.sampling = sampling_;
  parameters.bytes = data_.size();
  parameters.data = data_.data();
  return problem_of("cuptiPmSamplingCounterDataImageInitialize",
                    call_.data_initialize(&parameters));
}

Problem Session::start(std::span<const Metric> wanted, uint64_t interval_ns) {
  if (Problem problem = find_chip()) return problem;
  if (Problem problem = read_availability()) return problem;
  if (host_ == nullptr) {
    auto host = std::make_unique<Host>(call_);
    if (Problem problem = host->configure(chip_, wanted, availability_.data())) return problem;
    host_ = std::move(host);
  }
  auto enable = sized<Enable>();
  enable.device = device_;
  if (const int code = call_.enable(&enable); code != kSuccess)
    return problem_of("cuptiPmSamplingEnable", code);
  sampling_ = enable.sampling;
  Problem problem = configure(interval_ns);
  if (!problem) {
    auto start = sized<OfSampling>();
    start.sampling = sampling_;
    problem = problem_of("cuptiPmSamplingStart", call_.start(&start));
  }
  is_started_ = !problem;
  is_first_ = true;
  if (problem) stop();
  return problem;
}

Problem Session::hand_on(size_t count, const Sink& sink) {
  for (size_t index = 0; index < count; ++index) {
    auto info = sized<SampleInfo>();
    info.sampling = sampling_;
    info.data = data_.data();
    info.bytes = data_.size();
    info.index = index;
    if (const int code = call_.sample_info(&info); code != kSuccess)
      return problem_of("cuptiPmSamplingCounterDataGetSampleInfo", code);
    // The first one covers what was before the start.
    const bool is_first = std::exchange(is_first_, false);
    if (is_first || info.start_ns == 0 || info.end_ns <= info.start_ns) continue;
    if (Problem problem = host_->evaluate(data_, index, values_.data())) return problem;
    sink(info.start_ns, info.end_ns, values_);
  }
  return {};
}

Problem Session::read(const Sink& sink) {
  if (sampling_ == nullptr) return {};
  for (int i = 0; i < kMaxDecodings; ++i) {
    auto decode = sized<Decode>();
    decode.sampling = sampling_;
    decode.data = data_.data();
    decode.bytes = data_.size();
    if (const int code = call_.decode(&decode); code != kSuccess)
      return problem_of("cuptiPmSamplingDecodeData", code);
    if (decode.overflow != 0) ++overflow_count_;
    auto info = sized<DataInfo>();
    info.data = data_.data();
    info.bytes = data_.size();
    if (const int code = call_.data_info(&info); code != kSuccess)
      return problem_of("cuptiPmSamplingGetCounterDataInfo", code);
    if (Problem problem = hand_on(info.completed, sink)) return problem;
    if (Problem problem = reset_data()) return problem;
    if (decode.stop_reason != kDataFull) break;
  }
  return {};
}

Problem Session::stop(const Sink& sink) {
  if (sampling_ == nullptr) return {};
  auto parameters = sized<OfSampling>();
  parameters.sampling = sampling_;
  Problem problem;
  if (std::exchange(is_started_, false)) {
    const int code = call_.stop(&parameters);
    if (sink) problem = read(sink);  // what came before it failed is there all the same
    if (code != kSuccess && !problem) problem = problem_of("cuptiPmSamplingStop", code);
  }
  call_.disable(&parameters);
  sampling_ = nullptr;
  return problem;
}

}  // namespace aon::gpu_counters
