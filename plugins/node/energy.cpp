#include "node/energy.h"

#include <aon/perf_refusal.h>

#include <cerrno>
#include <cstring>

#include "node/text.h"

namespace aon::node {
namespace {

/// A second: RAPL's counters move each millisecond.
constexpr uint32_t kMostStillReadings = 1000 / kEnergyPeriodMs;
const std::string kZones = "/sys/class/powercap/";

/// Domains by their name in perf, in the zones, and in our series.
struct DomainName {
  const char* perf;
  const char* zone;
  const char* series;
  const char* description;
};
constexpr DomainName kDomains[] = {
    {"energy-pkg", "package", "package", "energy of the processor package, its cores included"},
    {"energy-ram", "dram", "dram", "energy of the memory of the package"},
    {"energy-cores", "core", "cores", "energy of the cores, part of the package's"},
    {"energy-gpu", "uncore", "gpu", "energy of the integrated GPU, part of the package's"},
    {"energy-psys", "psys", "platform", "energy of the platform, all packages included"},
};

/// "package-0-die-1" -> 0.
int number_of_package(const std::string& zone_name) {
  const size_t dash = zone_name.find('-');
  if (dash == std::string::npos) return 0;
  return static_cast<int>(number_in(zone_name.substr(dash + 1)).value_or(0));
}

const DomainName* domain_of_zone(const std::string& name) {
  for (const DomainName& domain : kDomains) {
    const size_t n = strlen(domain.zone);
    if (name.starts_with(domain.zone) && (name.size() == n || name[n] == '-')) return &domain;
  }
  return nullptr;
}

bool is_virtual_machine(const System& system) {
  return system.read("/proc/cpuinfo").text.find(" hypervisor") != std::string::npos;
}

}  // namespace

Series energy_series(const std::string& name) {
  const std::string kind = name.substr(0, name.rfind('-'));
  for (const DomainName& domain : kDomains) {
    if (kind == domain.series) return {name, "J", std::string(domain.description) + kShared};
  }
  return {name, "J", "energy" + std::string(kShared)};
}

int EnergySession::open_perf(StateText* state) {
  const auto pmu = find_pmu(system_, "power");
  if (!pmu) return ENOENT;
  int error_number = ENOENT;
  std::string refused;
  for (const DomainName& domain : kDomains) {
    const auto file = event_file(system_, *pmu, domain.perf);
    if (!file || file->unit != "Joules") continue;
    const auto config = encode(system_, *pmu, file->terms);
    if (!config) continue;
    for (const int cpu : pmu->cpus) {
      const std::string name =
          std::string(domain.series) + "-" + std::to_string(package_of(system_, cpu));
      SocketEvent event(system_);
      const int result = event.open(pmu->type, *config, cpu);
      if (result == 0) {
        domains_.push_back({std::move(event), name, file->scale});
        continue;
      }
      error_number = result;
      refused += (refused.empty() ? "" : ", ") + name;
    }
  }
  if (domains_.empty()) return error_number;
  if (!refused.empty()) {
    const Refusal refusal = explain_refusal(error_number, system_.paranoid_level());
    state->add(AON_STATE_DEGRADED, refusal.reason + " (not read: " + refused + ")", refusal.remedy);
  }
  return 0;
}

int EnergySession::open_zone(const std::string& path, const std::string& name) {
  const File energy = system_.read(path + "/energy_uj");
  if (!energy) return energy.error_number;
  const uint64_t range_uj = number_in(system_.read(path + "/max_energy_range_uj").text).value_or(0);
  zones_.push_back({path + "/energy_uj", name, range_uj, {}});
  return 0;
}

/// "intel-rapl:0" is a package or the platform, "intel-rapl:0:1" a part of it; AMD's have the same
/// names. "intel-rapl-mmio:0" is the package once more.
int EnergySession::open_zones(StateText* state) {
  int error_number = ENOENT;
  for (const std::string& zone : system_.list(kZones)) {
    if (!zone.starts_with("intel-rapl:")) continue;
    const std::string path = kZones + zone;
    const std::string name(trimmed(system_.read(path + "/name").text));
    const DomainName* domain = domain_of_zone(name);
    if (domain == nullptr) continue;
    const size_t parent_end = zone.find(':', strlen("intel-rapl:"));
    const std::string parent =
        parent_end == std::string::npos
            ? name
            : std::string(
                  trimmed(system_.read(kZones + zone.substr(0, parent_end) + "/name").text));
    const std::string series =
        std::string(domain->series) + "-" + std::to_string(number_of_package(parent));
    const int result = open_zone(path, series);
    if (result == 0) continue;
    error_number = result;
    state->add(AON_STATE_DEGRADED, "RAPL is readable by root only (not read: " + series + ")",
               "chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj");
  }
  return zones_.empty() ? error_number : 0;
}

StateText EnergySession::why_off(int perf_error, int zone_error) const {
  if (zone_error == EACCES || zone_error == EPERM) {
    return {AON_STATE_OFF, "RAPL is readable by root only",
            std::string("chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj") +
                (perf_error == ENOENT
                     ? std::string()
                     : std::string(", or ") + perf_paranoid_remedy(PerfReach::kWholeCpu))};
  }
  if (perf_error != ENOENT) {
    const Refusal refusal = explain_refusal(perf_error, system_.paranoid_level());
    return {AON_STATE_OFF, "RAPL: " + refusal.reason, refusal.remedy};
  }
  if (is_virtual_machine(system_)) {
    return {AON_STATE_OFF, "no RAPL in this virtual machine", "run on bare metal"};
  }
  return {AON_STATE_OFF, "no RAPL: its drivers are not loaded, or this CPU has none",
          "modprobe rapl; modprobe intel_rapl_msr"};
}

StateText EnergySession::find() {
  StateText state;
  const int perf_error = open_perf(&state);
  const int zone_error = perf_error != 0 ? open_zones(&state) : 0;
  if (zone_error != 0) return why_off(perf_error, zone_error);
  found_ = state;
  return state;
}

void EnergySession::read() {
  std::map<std::string, double> joules;  // dies of a package together
  for (PerfDomain& domain : domains_) {
    joules[domain.name] += domain.event.read() * domain.joules_per_count;
  }
  for (Zone& zone : zones_) {
    const File file = system_.read_again(zone.path);
    const auto energy_uj = number_in(file.text);
    // A zone that is gone for now keeps what it has.
    const uint64_t sum_uj =
        file && energy_uj ? zone.total.advance(*energy_uj, Total::Decrease::kWrapped, zone.range_uj)
                          : zone.total.sum();
    joules[zone.name] += static_cast<double>(sum_uj) * 1e-6;
  }
  bool has_moved = false;
  for (const auto& [name, value] : joules) {
    output_.total(AON_PROCESS_NODE, energy_series(name), value);
    has_moved = has_moved || value > 0;
  }
  tell_stillness(has_moved);
}

void EnergySession::tell_stillness(bool has_moved) {
  if (counts_) return;
  counts_ = has_moved;
  const bool was_told = still_readings_ > kMostStillReadings;
  if (has_moved) {
    if (was_told) output_.set_state(AON_PROCESS_NODE, found_);
  } else if (!was_told && ++still_readings_ > kMostStillReadings) {
    const bool is_virtual = is_virtual_machine(system_);
    output_.set_state(AON_PROCESS_NODE, {AON_STATE_OFF,
                                         std::string("RAPL's counters do not count") +
                                             (is_virtual ? " in this virtual machine" : ""),
                                         is_virtual ? "run on bare metal" : ""});
  }
}

}  // namespace aon::node
