/// Clock frequency, throttling and temperature of the CPUs that the job may use.
///
/// Sources: cpufreq/scaling_cur_freq (kHz), else "cpu MHz" of /proc/cpuinfo;
/// thermal_throttle/core_throttle_count and package_throttle_count (Documentation/ABI/testing/
/// sysfs-devices-system-cpu); temperature of the package from hwmon (coretemp, k10temp, zenpower;
/// Documentation/hwmon/sysfs-interface.rst: millidegrees).
/// Owner: a session.   Thread: the provider's.   Cost: one file per CPU, 5 us each, at most
/// kMaxReadCpus; one file per package and core for throttling.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "node/output.h"
#include "node/system.h"

namespace aon::node {

constexpr size_t kMaxReadCpus = 64;  ///< of more CPUs every second, third ... is read

class Clocks {
 public:
  explicit Clocks(const System& system) : system_(&system) {}

  /// Looks at the machine once; again when the CPUs of the job change.
  void find(const std::set<int>& cpus);
  void read(Output& output);
  /// What this machine does not tell; empty when it tells all.
  std::string missing() const;

 private:
  struct Sensor {
    std::string path;
    std::string series;
  };

  /// Counters of the kernel of which the job's CPUs choose some, each counted by itself: the choice
  /// changes, and what they hold is from before the job.
  class Throttles {
   public:
    void choose(const std::vector<std::string>& paths);
    bool empty() const { return chosen_.empty(); }
    /// What was counted in each while it was chosen.
    uint64_t read(const System& system);

   private:
    std::map<std::string, Total> chosen_;  ///< by path
    uint64_t left_ = 0;                    ///< what those counted that are chosen no more
  };

  void find_sensors();
  void read_frequency(Output& output) const;
  void read_throttling(Output& output);
  void add_frequency(std::vector<double>* found_hz) const;

  const System* system_;
  std::vector<int> cpus_;  ///< whose frequency is read
  bool has_cpufreq_ = false;
  bool has_cpuinfo_ = false;
  Throttles core_throttles_;     ///< one thread of each core
  Throttles package_throttles_;  ///< one CPU of each package
  std::vector<Sensor> sensors_;
};

}  // namespace aon::node
