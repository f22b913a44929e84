#include "node/clocks.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "node/pmu.h"
#include "node/text.h"

namespace aon::node {
namespace {

const std::string kCpus = "/sys/devices/system/cpu/cpu";
const std::string kHwmon = "/sys/class/hwmon/";
constexpr size_t kCpuinfoBytes = size_t{1} << 20;
constexpr double kKilo = 1e3;
constexpr double kMega = 1e6;

bool is_temperature_of_package(const std::string& label) {
  return label.starts_with("Package id") || label == "Tctl" || label == "Tdie";
}

}  // namespace

void Clocks::find(const std::set<int>& cpus) {
  cpus_.clear();
  std::vector<std::string> core_throttles;
  std::vector<std::string> package_throttles;
  const size_t step = (cpus.size() + kMaxReadCpus - 1) / kMaxReadCpus;
  size_t index = 0;
  std::set<int> packages;
  for (const int cpu : cpus) {
    const std::string folder = kCpus + std::to_string(cpu);
    if (index++ % std::max<size_t>(step, 1) == 0) cpus_.push_back(cpu);
    const std::string throttle = folder + "/thermal_throttle/";
    if (!system_->exists(throttle + "core_throttle_count")) continue;
    const auto siblings = cpus_in(system_->read(folder + "/topology/thread_siblings_list").text);
    const bool is_first_of_core =
        siblings.empty() || std::none_of(siblings.begin(), siblings.end(), [&](int sibling) {
          return sibling < cpu && cpus.count(sibling) != 0;
        });
    if (is_first_of_core) core_throttles.push_back(throttle + "core_throttle_count");
    if (packages.insert(package_of(*system_, cpu)).second) {
      package_throttles.push_back(throttle + "package_throttle_count");
    }
  }
  core_throttles_.choose(core_throttles);
  package_throttles_.choose(package_throttles);
  has_cpufreq_ = !cpus_.empty() && system_->exists(kCpus + std::to_string(cpus_.front()) +
                                                   "/cpufreq/scaling_cur_freq");
  has_cpuinfo_ = system_->read("/proc/cpuinfo", 4096).text.find("cpu MHz") != std::string::npos;
  find_sensors();
}

void Clocks::find_sensors() {
  sensors_.clear();
  for (const std::string& device : system_->list(kHwmon)) {
    const std::string folder = kHwmon + device + "/";
    const std::string name(trimmed(system_->read(folder + "name").text));
    if (name != "coretemp" && name != "k10temp" && name != "zenpower") continue;
    for (const std::string& file : system_->list(folder)) {
      if (!file.starts_with("temp") || !file.ends_with("_label")) continue;
      const std::string label(trimmed(system_->read(folder + file).text));
      if (!is_temperature_of_package(label)) continue;
      const std::string input = file.substr(0, file.size() - 5) + "input";
      sensors_.push_back({folder + input, "temperature-" + std::to_string(sensors_.size())});
      break;  // Tctl and Tdie are the same
    }
  }
}

std::string Clocks::missing() const {
  std::string text;
  const auto add = [&](const char* what) {
    text += (text.empty() ? "" : ", ") + std::string(what);
  };
  if (!has_cpufreq_ && !has_cpuinfo_) add("clock frequency");
  if (core_throttles_.empty()) add("throttling");
  if (sensors_.empty()) add("temperature");
  return text;
}

void Clocks::add_frequency(std::vector<double>* found_hz) const {
  if (has_cpufreq_) {
    for (const int cpu : cpus_) {
      const std::string folder = kCpus + std::to_string(cpu) + "/cpufreq/";
      const File file = system_->read_again(folder + "scaling_cur_freq");
      const auto frequency_khz = number_in(file.text);  // not a number: the CPU is off
      if (file && frequency_khz) found_hz->push_back(static_cast<double>(*frequency_khz) * kKilo);
    }
    return;
  }
  int cpu = -1;
  const std::string text = system_->read("/proc/cpuinfo", kCpuinfoBytes).text;
  for (const std::string_view line : split(text, "\n")) {
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view key = trimmed(line.substr(0, colon));
    if (key == "processor") cpu = static_cast<int>(number_in(line.substr(colon + 1)).value_or(0));
    if (key != "cpu MHz" || !std::binary_search(cpus_.begin(), cpus_.end(), cpu)) continue;
    if (const auto mhz = fraction_in(line.substr(colon + 1))) found_hz->push_back(*mhz * kMega);
  }
}

void Clocks::read_frequency(Output& output) const {
  std::vector<double> hz;
  add_frequency(&hz);
  if (hz.empty()) return;
  const auto [least, most] = std::minmax_element(hz.begin(), hz.end());
  const double mean = std::accumulate(hz.begin(), hz.end(), 0.0) / static_cast<double>(hz.size());
  output.value(AON_PROCESS_NODE, {"frequency", "Hz", "mean clock frequency of the job's CPUs"},
               mean);
  output.value(AON_PROCESS_NODE,
               {"frequency-min", "Hz", "lowest clock frequency of the job's CPUs"}, *least);
  output.value(AON_PROCESS_NODE,
               {"frequency-max", "Hz", "highest clock frequency of the job's CPUs"}, *most);
}

void Clocks::Throttles::choose(const std::vector<std::string>& paths) {
  std::map<std::string, Total> before = std::exchange(chosen_, {});
  for (const std::string& path : paths) {
    if (auto known = before.extract(path))
      chosen_.insert(std::move(known));
    else
      chosen_.try_emplace(path);
  }
  for (const auto& [path, total] : before) left_ += total.sum();
}

uint64_t Clocks::Throttles::read(const System& system) {
  uint64_t sum = left_;
  for (auto& [path, total] : chosen_) {
    // None of a CPU that was taken off.
    if (const auto count = number_in(system.read_again(path).text)) total.advance(*count);
    sum += total.sum();
  }
  return sum;
}

void Clocks::read_throttling(Output& output) {
  if (core_throttles_.empty()) return;
  output.total(AON_PROCESS_NODE,
               {"throttled-cores", "1", "times a core of the job was slowed down for its heat"},
               static_cast<double>(core_throttles_.read(*system_)));
  output.total(
      AON_PROCESS_NODE,
      {"throttled-packages", "1", "times a package of the job was slowed down for its heat"},
      static_cast<double>(package_throttles_.read(*system_)));
}

void Clocks::read(Output& output) {
  read_frequency(output);
  read_throttling(output);
  for (const Sensor& sensor : sensors_) {
    const File file = system_->read_again(sensor.path);
    const auto millidegrees = number_in(file.text);
    if (!file || !millidegrees) continue;
    output.value(
        AON_PROCESS_NODE,
        {sensor.series, "Cel", std::string("temperature of a processor package") + kShared},
        static_cast<double>(*millidegrees) * 1e-3);
  }
}

}  // namespace aon::node
