/// PMUs of perf that count for a whole socket (RAPL, memory controllers): what their folder below
/// /sys/bus/event_source/devices says, and one open event.
/// Owner: a session.   Thread: the provider's.
/// Cost: some files when it is found; 4 to 10 us to open and 1 to 2 us to read an event, during
/// which a CPU of that socket is interrupted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "node/system.h"

namespace aon::node {

struct Pmu {
  std::string name;
  uint32_t type = 0;
  std::vector<int> cpus;  ///< one of each socket (or die): where its events are opened
};

/// Nothing: it is not there, or it is not one of a whole socket (no cpumask).
std::optional<Pmu> find_pmu(const System& system, const std::string& name);

/// Names of PMUs that are `prefix` followed by nothing, or by an underscore and a number.
std::vector<std::string> pmu_names(const System& system, const std::string& prefix);

/// What an event file says.
struct EventFile {
  std::string terms;  ///< "event=0x04,umask=0x03"
  double scale = 1;
  std::string unit;  ///< "Joules", "MiB", or nothing
};
std::optional<EventFile> event_file(const System& system, const Pmu& pmu, const std::string& event);

/// perf_event_attr::config of "event=0x04,umask=0x03", by the format files of the PMU. Nothing: a
/// term is not known, does not fit, or is not in config.
std::optional<uint64_t> encode(const System& system, const Pmu& pmu, const std::string& terms);

/// The socket a CPU is in; 0 where the kernel does not tell.
int package_of(const System& system, int cpu);

/// One event on one CPU.
class SocketEvent {
 public:
  explicit SocketEvent(System& system) : system_(&system) {}
  ~SocketEvent();
  SocketEvent(SocketEvent&& other) noexcept;
  SocketEvent& operator=(SocketEvent&&) = delete;

  /// Returns 0 or an error number.
  int open(uint32_t type, uint64_t config, int cpu);
  /// Reads; what was counted since open(), scaled by enabled / running interval by interval, so
  /// that it never decreases. An event that cannot be read stays where it was.
  double read();
  uint64_t enabled_ns() const { return enabled_ns_; }
  uint64_t running_ns() const { return running_ns_; }

 private:
  System* system_;
  int fd_ = -1;
  uint64_t raw_ = 0;
  double total_ = 0;
  uint64_t enabled_ns_ = 0;
  uint64_t running_ns_ = 0;
};

/// Why an event of a whole CPU could not be opened, and what helps.
struct Refusal {
  std::string reason;
  std::string remedy;
};
Refusal explain_refusal(int error_number, int paranoid_level);

}  // namespace aon::node
