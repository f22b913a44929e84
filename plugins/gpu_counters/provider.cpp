// Counters of the GPUs' hardware by PM sampling, where `--gpu-counters` asks for it: a helper
// process samples, this half makes samples of the node of its frames, in series
// "gpu_UUID/counters/NAME".
#include <aon/gpu_counter_access.h>
#include <aon/provider.h>
#include <aon/provider_config.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <ctime>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "gpu_counters/child.h"
#include "gpu_counters/frames.h"
#include "gpu_counters/metrics.h"
#include "gpu_counters/time_line.h"
#include "gpu_counters/visible.h"
#include "node/output.h"

namespace {

using namespace aon::gpu_counters;

constexpr uint32_t kTickPeriodMs = 250;
constexpr const char* kHelper = "aon-gpu-counters";
constexpr const char* kOption = "gpu-counters";
constexpr const char* kDeviceWide = " (device-wide, not this job)";
constexpr const char* kAnswerText = "the GPUs' counters are still being set up";

/// What --gpu-counters stands for, as arguments of the helper.
struct Choice {
  const char* name;
  const char* interval_us;
  const char* window_ms;
  const char* rest_ms;
};
constexpr Choice kChoices[] = {
    {"core", "10000", "0", "0"}, {"wide", "10000", "0", "0"}, {"burst", "1000", "500", "9500"}};

const aon::node::Series kCpuTime{"helper-cpu-time", "s", "CPU time of the helper process"};
const aon::node::Series kMemory{"helper-memory", "By", "memory of the helper process"};

/// Beside the folder of this library: lib/aon/aon-gpu-counters.
std::string helper_path() {
  Dl_info here = {};
  if (dladdr(reinterpret_cast<const void*>(&aon_provider_v1), &here) == 0) return {};
  std::string path = here.dli_fname;
  for (int i = 0; i < 2; ++i) path = path.substr(0, path.find_last_of('/'));
  return path + "/" + kHelper;
}

uint64_t realtime_ns() {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

struct Series {
  Formula formula;
  aon::node::Series text;
};

struct Device {
  std::string uuid;
  std::string label;
  std::string left_out;
  std::vector<Series> series;
  std::pair<std::string, std::string> problem;  ///< reason and remedy
  uint64_t overflow_count = 0;
};

}  // namespace

struct aon_provider {
  aon_provider(aon_core* its_core, const aon_core_api* its_api, const Choice& its_choice)
      : core(its_core), api(its_api), output(its_core, its_api), choice(its_choice) {}

  /// False: the helper cannot be started, and that is told.
  bool start();
  void finish();
  void tick();
  void add_process(int32_t pid) { visible.add_process(pid); }

 private:
  void take(const Frame& frame);
  void define(uint16_t number, const Frame& frame);
  void sample(const Device& device, const Frame& frame);
  void add_pair();
  void tell();
  aon::node::StateText state() const;

  aon_core* core;
  const aon_core_api* api;
  aon::node::Output output;
  const Choice& choice;
  Child child;
  VisibleDevices visible;
  FrameReader reader;
  TimeLine time_line;
  std::map<uint16_t, Device> devices;
  std::pair<std::string, std::string> problem;  ///< of the helper
  std::pair<std::string, std::string> remark;
  uint64_t foreign_count = 0;  ///< samples of another clock than the host's
  bool has_ended = false;
  std::string told;
};

bool aon_provider::start() {
  const std::string path = helper_path();
  const int error =
      child.start({path, choice.name, choice.interval_us, choice.window_ms, choice.rest_ms});
  add_pair();
  if (error == 0) {
    tell();
    return true;
  }
  output.set_state(AON_PROCESS_NODE,
                   {AON_STATE_OFF, "cannot start " + path + ": " + strerror(error), ""});
  return false;
}

void aon_provider::add_pair() {
  const uint64_t before = api->now_ticks(core);
  const uint64_t now_ns = realtime_ns();
  time_line.add(now_ns, before + (api->now_ticks(core) - before) / 2);
}

void aon_provider::define(uint16_t number, const Frame& frame) {
  if (frame.texts.size() < 4) return;
  Device& device = devices[number];
  device = Device{};
  device.uuid = frame.texts[0];
  device.label = frame.texts[1] + " " + frame.texts[0] + " (" + frame.texts[2] + ")";
  device.left_out = frame.texts.size() > 4 ? frame.texts[4] : "";
  // Only names that we know become series.
  std::map<std::string, const Metric*> known;
  for (const Metric& metric : metric_set(choice.name)) known[metric.series] = &metric;
  const std::string& names = frame.texts[3];
  for (size_t begin = 0; begin < names.size();) {
    const size_t end = std::min(names.find(',', begin), names.size());
    const auto found = known.find(names.substr(begin, end - begin));
    if (found == known.end()) {
      devices.erase(number);
      return;
    }
    const Metric& metric = *found->second;
    device.series.push_back({metric.formula,
                             {"gpu_" + frame.texts[0] + "/counters/" + metric.series, metric.unit,
                              std::string(metric.description) + ", " + metric.name + kDeviceWide}});
    begin = end + 1;
  }
}

void aon_provider::sample(const Device& device, const Frame& frame) {
  if (frame.values.size() != device.series.size()) return;
  const std::optional<uint64_t> ticks = time_line.ticks_of(frame.head.end_ns);
  if (!ticks) {
    ++foreign_count;
    return;
  }
  output.set_time(*ticks);
  const uint64_t duration_ns = frame.head.end_ns - frame.head.start_ns;
  for (size_t i = 0; i < device.series.size(); ++i) {
    const double value =
        aon::gpu_counters::value_of(device.series[i].formula, frame.values[i], duration_ns);
    if (std::isfinite(value)) output.value(AON_PROCESS_NODE, device.series[i].text, value);
  }
}

void aon_provider::take(const Frame& frame) {
  const uint16_t number = frame.head.device;
  switch (frame.head.kind) {
    case FrameKind::kDevice:
      define(number, frame);
      break;
    case FrameKind::kSample:
      if (const auto found = devices.find(number); found != devices.end())
        sample(found->second, frame);
      break;
    case FrameKind::kProblem: {
      if (frame.texts.size() < 2) break;
      auto& where = number == kAllDevices ? problem : devices[number].problem;
      where = {frame.texts[0], frame.texts[1]};
      break;
    }
    case FrameKind::kRemark:
      if (frame.texts.size() >= 2) remark = {frame.texts[0], frame.texts[1]};
      break;
    case FrameKind::kUsage:
      // Not by add_cost(): the budget would take what somebody asked for away again.
      output.set_time(api->now_ticks(core));
      output.total(AON_PROCESS_NODE, kCpuTime, static_cast<double>(frame.head.start_ns) * 1e-9);
      output.value(AON_PROCESS_NODE, kMemory, static_cast<double>(frame.head.end_ns));
      break;
    case FrameKind::kLost:
      if (const auto found = devices.find(number); found != devices.end())
        found->second.overflow_count = frame.head.end_ns;
      break;
  }
}

aon::node::StateText aon_provider::state() const {
  aon::node::StateText state;
  if (!problem.first.empty()) state.add(AON_STATE_OFF, problem.first, problem.second);
  if (!remark.first.empty()) state.add(AON_STATE_DEGRADED, remark.first, remark.second);
  uint32_t working = 0;
  for (const auto& [number, device] : devices) {
    const std::string label = device.label.empty() ? "GPU " + std::to_string(number) : device.label;
    if (!device.series.empty() && device.problem.first.empty()) {
      ++working;
      state.add(AON_STATE_ON, label, "");
    }
    if (!device.series.empty() && visible.is_hidden(number, device.uuid))
      state.add(AON_STATE_ON,
                label +
                    " is hidden from all processes of this job (CUDA_VISIBLE_DEVICES): its "
                    "counters are others'",
                "");
    if (!device.left_out.empty()) state.add(AON_STATE_ON, label + " has no " + device.left_out, "");
    if (!device.problem.first.empty())
      state.add(AON_STATE_DEGRADED, label + ": " + device.problem.first, device.problem.second);
    if (device.overflow_count != 0)
      state.add(AON_STATE_DEGRADED,
                label + ": samples are missing, its buffer was full " +
                    std::to_string(device.overflow_count) + " times",
                "--gpu-counters core");
  }
  if (foreign_count != 0)
    state.add(AON_STATE_DEGRADED,
              std::to_string(foreign_count) + " samples have times of another clock", "");
  if (has_ended && problem.first.empty())
    state.add(AON_STATE_DEGRADED, "the helper process ended: " + child.ending(),
              "the agent's log has its words");
  if (devices.empty() && state.reason.empty()) state.add(AON_STATE_ON, kAnswerText, "");
  if (working == 0 && !devices.empty()) state.state = AON_STATE_OFF;
  return state;
}

void aon_provider::tell() {
  const aon::node::StateText now = state();
  const std::string text = std::to_string(now.state) + now.reason + now.remedy;
  if (text == std::exchange(told, text)) return;
  output.set_state(AON_PROCESS_NODE, now);
}

void aon_provider::tick() {
  if (has_ended) return;
  add_pair();
  if (!time_line.is_ready()) return;  // the pipe keeps what comes
  std::string bytes;
  has_ended = !child.read(&bytes);
  const bool is_whole =
      reader.add(bytes.data(), bytes.size(), [this](const Frame& frame) { take(frame); });
  if (!is_whole && problem.first.empty()) {
    problem = {"the helper process told nonsense and was ended", ""};
    child.stop();
    has_ended = true;
  }
  tell();
}

/// The helper's last words: what its devices had since the last tick.
void aon_provider::finish() {
  if (has_ended) return;
  add_pair();
  std::string bytes;
  child.stop(&bytes);
  has_ended = true;
  reader.add(bytes.data(), bytes.size(), [this](const Frame& frame) { take(frame); });
}

namespace {

/// For `aon doctor`: without touching the hardware.
void answer(aon_core* core, const aon_core_api* api) {
  const aon::GpuCounterAccess access = aon::gpu_counter_access();
  const bool has_driver = access != aon::GpuCounterAccess::kNoDriver;
  const bool is_restricted = access == aon::GpuCounterAccess::kAdministratorsOnly;
  const char* reason = !has_driver     ? "no driver of NVIDIA"
                       : is_restricted ? "counters are for administrators only"
                                       : "only on request";
  const std::string ask = "aon-run --gpu-counters core";
  const std::string remedy = !has_driver     ? ""
                             : is_restricted ? std::string(aon::kGpuCounterRemedy) + "; " + ask
                                             : ask;
  api->set_state(core, AON_PROCESS_NODE, AON_STATE_OFF, reason, remedy.c_str());
}

aon_status start_provider(aon_core* core, const aon_core_api* api, aon_host, const char* config,
                          aon_provider** self) {
  const std::string wanted = aon::config_value(config, kOption);
  const Choice* chosen = nullptr;
  for (const Choice& choice : kChoices) {
    if (wanted == choice.name) chosen = &choice;
  }
  if (chosen == nullptr) {
    // Nobody misses what nobody asked for; `aon doctor` asks whether it would work.
    if (wanted == "ask") answer(core, api);
    return AON_UNAVAILABLE;
  }
  auto provider = std::make_unique<aon_provider>(core, api, *chosen);
  if (!provider->start()) return AON_UNAVAILABLE;
  *self = provider.release();
  return AON_OK;
}

}  // namespace

const aon_provider_api aon_provider_v1 = {
    .abi = AON_PROVIDER_ABI,
    .size = sizeof(aon_provider_api),
    .hosts = AON_HOST_NODE,
    .tick_period_ms = kTickPeriodMs,
    .name = "gpu-counters",
    .description = "counters of NVIDIA's GPUs, 100 times a second and more",
    .start = start_provider,
    .flush = [](aon_provider* provider) { provider->tick(); },
    .stop =
        [](aon_provider* provider) {
          provider->finish();
          delete provider;
        },
    .process_started = [](aon_provider* provider, uint32_t, int32_t pid,
                          int32_t) { provider->add_process(pid); },
    .process_ended = nullptr,
    .tick = [](aon_provider* provider, uint64_t) { provider->tick(); },
    .message = nullptr,
};
