/// The energy provider: what processor packages, their memory and cores have used, in joules, by
/// RAPL (Running Average Power Limit; Intel SDM volume 3B, "Platform specific power management
/// support"; AMD has package and cores).
///
/// Two ways to the same counters, the first that works is taken: perf's PMU "power"
/// (arch/x86/events/rapl.c: 64 bits wide, scaled by the .scale files), or the power capping zones
/// (Documentation/power/powercap/powercap.rst: microjoules that wrap at max_energy_range_uj).
/// Since PLATYPUS (CVE-2020-8694) both are for root, CAP_PERFMON or whom the administrator lets.
///
/// Owner: the provider.   Thread: the provider's.   Cost: 2 us per domain and reading (perf), 15 us
/// (powercap).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "node/pmu.h"
#include "node/session.h"

namespace aon::node {

constexpr uint32_t kEnergyPeriodMs = 200;

class EnergySession : public Session {
 public:
  using Session::Session;

 protected:
  StateText find() override;
  void read() override;

 private:
  /// One event of perf; those of the dies of one package make one series.
  struct PerfDomain {
    SocketEvent event;
    std::string name;  ///< "package-0"
    double joules_per_count;
  };
  struct Zone {
    std::string path;  ///< of energy_uj
    std::string name;
    uint64_t range_uj;
    Total total;
  };

  /// Error number, 0: `domains_` are open, ENOENT: there are none.
  int open_perf(StateText* state);
  int open_zones(StateText* state);
  int open_zone(const std::string& path, const std::string& name);
  StateText why_off(int perf_error, int zone_error) const;
  /// Some virtual machines have a counter that never counts, or not from the start on.
  void tell_stillness(bool has_moved);

  std::vector<PerfDomain> domains_;
  std::vector<Zone> zones_;
  StateText found_;              ///< what find() said
  uint32_t still_readings_ = 0;  ///< without a joule since the start
  bool counts_ = false;          ///< there was one
};

/// Series of a RAPL domain: "package-0", "dram-1" ...
Series energy_series(const std::string& name);

}  // namespace aon::node
