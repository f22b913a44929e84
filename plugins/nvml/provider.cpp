// The provider ABI around a Poller: what its thread has read becomes samples of the node, in series
// "gpu_UUID/FOLDER/NAME", and each GPU a definition of the node.
#include <aon/definition.h>
#include <aon/provider.h>
#include <aon/provider_config.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "nvml/poller.h"

namespace {

constexpr uint32_t kTickPeriodMs = 250;
constexpr uint32_t kDefaultWaitMs = 500;
constexpr uint32_t kFlushTimeoutMs = 1000;
constexpr uint64_t kNsPerMs = 1'000'000;
constexpr const char* kWaitKey = "nvml-wait-ms";
constexpr const char* kBudgetKey = "budget";
constexpr double kDefaultBudgetPercent = 1;
constexpr const char* kDeviceWide = " (device-wide, not this job)";

double number_of(const char* config, const char* key, double otherwise) {
  const std::string value = aon::config_value(config, key);
  return value.empty() ? otherwise : std::strtod(value.c_str(), nullptr);
}

}  // namespace

struct aon_provider {
  aon_provider(aon_core* its_core, const aon_core_api* its_api, double budget_percent)
      : core(its_core),
        api(its_api),
        output(its_core, its_api),
        poller(
            aon::nvml::kLibraryName, [its_core, its_api] { return its_api->now_ticks(its_core); },
            aon::nvml::rest_per_gpu(budget_percent)) {}

  /// False: off, and told.
  bool start(uint32_t timeout_ms);
  /// Hands on what the poller's thread has. A driver that owes an answer for `patience_ns` hangs.
  void take(uint64_t patience_ns = aon::nvml::kHangNs);

 private:
  void define_gpus();
  void tell(const aon::node::StateText& state);
  const aon::node::Series& series_of(const aon::nvml::GpuValue& value);

  aon_core* core;
  const aon_core_api* api;
  aon::node::Output output;
  aon::nvml::Poller poller;
  std::vector<aon::nvml::Gpu> gpus;  ///< empty until they are found
  std::map<std::pair<uint32_t, const aon::nvml::SeriesText*>, aon::node::Series> series;
  std::string told;  ///< the last state, as text
  uint64_t dropped_count = 0;

 public:
  void flush();
};

bool aon_provider::start(uint32_t timeout_ms) {
  if (!poller.start()) {
    output.set_state(AON_PROCESS_NODE, poller.take().state);
    return false;
  }
  if (!poller.wait_found(timeout_ms)) {
    tell({AON_STATE_DEGRADED, "NVML does not answer yet",
          "nvidia-smi -pm 1, or the service nvidia-persistenced, keeps them awake"});
    return true;
  }
  take();
  return !gpus.empty();
}

void aon_provider::tell(const aon::node::StateText& state) {
  const std::string text = std::to_string(state.state) + state.reason + state.remedy;
  if (text == std::exchange(told, text)) return;
  output.set_state(AON_PROCESS_NODE, state);
}

void aon_provider::define_gpus() {
  gpus = poller.gpus();
  for (uint32_t i = 0; i < gpus.size(); ++i) {
    aon::DeviceDefinition definition = {};
    definition.id = i;
    aon::nvml::parse_uuid(gpus[i].uuid, definition.uuid);
    std::string payload(reinterpret_cast<const char*>(&definition), sizeof definition);
    payload.append(gpus[i].name).push_back('\0');
    payload.append(gpus[i].address).push_back('\0');
    api->define(core, AON_PROCESS_NODE, static_cast<uint32_t>(aon::DefinitionType::kDevice),
                payload.data(), static_cast<uint32_t>(payload.size()));
  }
}

const aon::node::Series& aon_provider::series_of(const aon::nvml::GpuValue& value) {
  const auto [found, is_new] = series.try_emplace({value.gpu, value.value.series});
  if (is_new) {
    const aon::nvml::SeriesText& text = *value.value.series;
    found->second = {"gpu_" + gpus[value.gpu].uuid + "/" + text.name, text.unit,
                     text.description + std::string(kDeviceWide)};
  }
  return found->second;
}

void aon_provider::take(uint64_t patience_ns) {
  aon::nvml::Taken taken = poller.take();
  if (!taken.is_found) return;
  if (gpus.empty()) define_gpus();
  dropped_count += taken.dropped_count;
  if (dropped_count != 0) {
    taken.state.add(AON_STATE_DEGRADED, std::to_string(dropped_count) + " values were dropped",
                    "the agent was stopped for long: give it CPU time");
  }
  if (taken.asking_ns >= patience_ns) {
    taken.state.add(
        AON_STATE_DEGRADED,
        std::string("the driver does not answer (") + taken.query + "): no values from " +
            std::to_string(taken.asked_at_ns / aon::nvml::kNsPerSecond) + " s behind the start on",
        "dmesg | grep NVRM; nvidia-smi --gpu-reset, or reboot");
  }
  tell(taken.state);
  for (const aon::nvml::Round& round : taken.rounds) {
    output.set_time(round.ticks);
    for (const aon::nvml::GpuValue& value : round.values) {
      const aon::nvml::Value& v = value.value;
      if (v.is_count) {
        output.count(AON_PROCESS_NODE, series_of(value), v.raw, v.number);
      } else {
        output.value(AON_PROCESS_NODE, series_of(value), v.number);
      }
    }
  }
}

void aon_provider::flush() {
  const bool has_answered = poller.read_now(kFlushTimeoutMs);
  take(has_answered ? aon::nvml::kHangNs : kFlushTimeoutMs * kNsPerMs / 2);
}

namespace {

aon_status start_provider(aon_core* core, const aon_core_api* api, aon_host, const char* config,
                          aon_provider** self) {
  auto provider = std::make_unique<aon_provider>(
      core, api, number_of(config, kBudgetKey, kDefaultBudgetPercent));
  const double wait_ms = number_of(config, kWaitKey, kDefaultWaitMs);
  if (!provider->start(static_cast<uint32_t>(wait_ms))) return AON_UNAVAILABLE;
  *self = provider.release();
  return AON_OK;
}

}  // namespace

const aon_provider_api aon_provider_v1 = {
    .abi = AON_PROVIDER_ABI,
    .size = sizeof(aon_provider_api),
    .hosts = AON_HOST_NODE,
    .tick_period_ms = kTickPeriodMs,
    .name = "nvml",
    .description = "GPUs of NVIDIA: power, clocks, memory, errors, use of their units",
    .start = start_provider,
    .flush = [](aon_provider* provider) { provider->flush(); },
    .stop = [](aon_provider* provider) { delete provider; },
    .process_started = nullptr,
    .process_ended = nullptr,
    .tick = [](aon_provider* provider, uint64_t) { provider->take(); },
    .message = nullptr,
};
