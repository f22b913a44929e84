#include "node/pmu.h"

#include <aon/perf_refusal.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "node/text.h"

namespace aon::node {
namespace {

const std::string kDevices = "/sys/bus/event_source/devices/";

/// Puts the lowest bits of `value` where "config:0-7,32-35" says. False: it does not fit.
bool place(std::string_view format, uint64_t value, uint64_t* config) {
  format = trimmed(format);
  if (!format.starts_with("config:")) return false;
  format.remove_prefix(strlen("config:"));
  for (const std::string_view range : split(format, ",")) {
    const auto low = number_in(range);
    const size_t dash = range.find('-');
    const auto high = dash == std::string_view::npos ? low : number_in(range.substr(dash + 1));
    if (!low || !high || *high < *low || *high > 63) return false;
    const uint64_t width = *high - *low + 1;
    const uint64_t mask = width == 64 ? UINT64_MAX : (uint64_t{1} << width) - 1;
    *config |= (value & mask) << *low;
    value = width == 64 ? 0 : value >> width;
  }
  return value == 0;
}

}  // namespace

std::optional<Pmu> find_pmu(const System& system, const std::string& name) {
  const File type = system.read(kDevices + name + "/type");
  const auto number = number_in(type.text);
  if (!type || !number) return std::nullopt;
  Pmu pmu{name, static_cast<uint32_t>(*number), {}};
  pmu.cpus = cpus_in(system.read(kDevices + name + "/cpumask").text);
  if (pmu.cpus.empty()) return std::nullopt;
  return pmu;
}

std::vector<std::string> pmu_names(const System& system, const std::string& prefix) {
  std::vector<std::string> names;
  for (const std::string& name : system.list(kDevices)) {
    if (!name.starts_with(prefix)) continue;
    const std::string rest = name.substr(prefix.size());
    const bool is_numbered = rest.size() > 1 && rest[0] == '_' &&
                             rest.find_first_not_of("0123456789", 1) == std::string::npos;
    if (rest.empty() || is_numbered) names.push_back(name);
  }
  return names;
}

std::optional<EventFile> event_file(const System& system, const Pmu& pmu,
                                    const std::string& event) {
  const std::string path = kDevices + pmu.name + "/events/" + event;
  const File terms = system.read(path);
  if (!terms) return std::nullopt;
  EventFile file;
  file.terms = trimmed(terms.text);
  if (const File scale = system.read(path + ".scale")) {
    file.scale = fraction_in(scale.text).value_or(1);
  }
  file.unit = trimmed(system.read(path + ".unit").text);
  return file;
}

std::optional<uint64_t> encode(const System& system, const Pmu& pmu, const std::string& terms) {
  uint64_t config = 0;
  for (const std::string_view term : split(terms, ",")) {
    const size_t equals = term.find('=');
    const std::string name(term.substr(0, equals));
    const auto value =
        equals == std::string_view::npos ? uint64_t{1} : number_in(term.substr(equals + 1));
    const File format = system.read(kDevices + pmu.name + "/format/" + name);
    if (!value || !format || !place(format.text, *value, &config)) return std::nullopt;
  }
  return config;
}

int package_of(const System& system, int cpu) {
  const File file = system.read("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                                "/topology/physical_package_id");
  return static_cast<int>(number_in(file.text).value_or(0));
}

SocketEvent::~SocketEvent() {
  if (fd_ >= 0) system_->close_event(fd_);
}

SocketEvent::SocketEvent(SocketEvent&& other) noexcept
    : system_(other.system_),
      fd_(std::exchange(other.fd_, -1)),
      raw_(other.raw_),
      total_(other.total_),
      enabled_ns_(other.enabled_ns_),
      running_ns_(other.running_ns_) {}

int SocketEvent::open(uint32_t type, uint64_t config, int cpu) {
  perf_event_attr attr{};
  attr.size = sizeof(attr);
  attr.type = type;
  attr.config = config;
  attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  const int fd = system_->open_event(attr, cpu);
  if (fd < 0) return -fd;
  fd_ = fd;
  return 0;
}

double SocketEvent::read() {
  uint64_t words[3] = {};  // value, enabled, running
  if (system_->read_event(fd_, words, sizeof(words)) != sizeof(words)) return total_;
  const uint64_t enabled_ns = words[1] - enabled_ns_;
  const uint64_t running_ns = words[2] - running_ns_;
  if (running_ns == 0 || words[0] < raw_) return total_;  // its turn has not come
  const double scale = running_ns < enabled_ns
                           ? static_cast<double>(enabled_ns) / static_cast<double>(running_ns)
                           : 1;
  total_ += static_cast<double>(words[0] - raw_) * scale;
  raw_ = words[0];
  enabled_ns_ = words[1];
  running_ns_ = words[2];
  return total_;
}

Refusal explain_refusal(int error_number, int paranoid_level) {
  const bool is_forbidden = error_number == EACCES || error_number == EPERM;
  if (is_forbidden && paranoid_level > static_cast<int>(PerfReach::kWholeCpu)) {
    return {"kernel.perf_event_paranoid is " + std::to_string(paranoid_level) +
                ": events of a whole socket may not be counted",
            perf_paranoid_remedy(PerfReach::kWholeCpu)};
  }
  const PerfRefusal refusal = perf_refusal(error_number, PerfReach::kWholeCpu, paranoid_level);
  if (error_number == EBUSY)
    return {"another tool holds the counters of the socket", refusal.remedy};
  // The PMU is there: it is the event that is not.
  if (is_perf_absence(error_number) || *refusal.reason == '\0')
    return {std::string("perf_event_open: ") + strerror(error_number), ""};
  return {refusal.reason, refusal.remedy};
}

}  // namespace aon::node
