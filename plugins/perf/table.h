/// Which events the perf provider counts, and what it means when one cannot be opened. Names are
/// those of perf(1).
#pragma once

#include <linux/perf_event.h>

#include <cstdint>
#include <span>
#include <string>

namespace aon::perf {

struct EventType {
  const char* name;
  const char* unit;
  const char* description;
  uint32_t type;
  uint64_t config;
  /// Happens inside the kernel: counts nothing when exclude_kernel is set.
  bool in_kernel;
  // Of events that were asked for.
  uint64_t config1 = 0;
  uint64_t config2 = 0;
  bool user_only = false;
  bool kernel_only = false;
};

/// Software events first, then hardware events.
std::span<const EventType> event_types();

/// More software events, counted only where --events names them.
std::span<const EventType> event_types_on_request();

inline bool is_hardware(const EventType& type) { return type.type != PERF_TYPE_SOFTWARE; }

/// The software event `config`, of user and kernel mode together.
inline bool is_software(const EventType& type, uint64_t config) {
  return type.type == PERF_TYPE_SOFTWARE && type.config == config && !type.user_only &&
         !type.kernel_only;
}

/// Why opening failed and the exact command that would help.
struct Obstacle {
  std::string reason;
  std::string remedy;
};

/// `error_number` is positive; `paranoid_level` as in kernel.perf_event_paranoid.
Obstacle explain(int error_number, bool hardware, int paranoid_level);

}  // namespace aon::perf
