#include <algorithm>
#include <iterator>

#include "writers/devices/devices.h"

namespace aon::writers {

const char* idle_reason_name(IdleReason reason) {
  static constexpr const char* kNames[kIdleReasonCount] = {"host wait", "launch", "starved",
                                                           "unknown", "not recorded"};
  return kNames[static_cast<size_t>(reason)];
}

const char* bound_name(Bound bound) {
  static constexpr const char* kNames[kBoundCount] = {
      "launch", "communication", "copy",   "starved",  "unused",  "not recorded",
      "device", "compute",       "memory", "balanced", "latency", "small grids"};
  return kNames[static_cast<size_t>(bound)];
}

Bound bound_of(const DeviceTimes& times, uint64_t median_kernel_ns, uint64_t median_launch_ns,
               double least_recorded) {
  constexpr double kShare = 0.3;
  constexpr double kFull = 0.9;
  const auto idle_ns = [&](IdleReason reason) {
    return times.idle_ns[static_cast<size_t>(reason)];
  };
  const uint64_t unrecorded_ns = idle_ns(IdleReason::kUnrecorded);
  const auto recorded_ns =
      static_cast<double>(times.span_ns - std::min(times.span_ns, unrecorded_ns));
  // Idle time whose reason is unknown says nothing: in a long job it is all behind the calls that
  // are kept.
  const double known_ns =
      recorded_ns - std::min(recorded_ns, static_cast<double>(idle_ns(IdleReason::kUnknown)));
  const auto is_large = [&](uint64_t ns) { return static_cast<double>(ns) > kShare * known_ns; };
  // Of a time without work medians say nothing, and what ran unseen could be anything.
  if (times.busy_ns == 0) return unrecorded_ns == 0 ? Bound::kUnused : Bound::kUnrecorded;
  if (recorded_ns < least_recorded * static_cast<double>(times.span_ns)) return Bound::kUnrecorded;
  const uint64_t late_ns = idle_ns(IdleReason::kHostWait) + idle_ns(IdleReason::kLaunch);
  if (is_large(late_ns)) return Bound::kLaunch;
  // A device that hardly rests gets its work in time, however long the calls take: they may wait
  // for it themselves. So does one that waits for other things, and longer.
  const bool is_full = static_cast<double>(times.busy_ns) > kFull * recorded_ns;
  const bool is_late = !is_full && late_ns >= idle_ns(IdleReason::kStarved);
  if (is_late && median_kernel_ns != 0 && median_kernel_ns < median_launch_ns)
    return Bound::kLaunch;
  if (is_large(times.exposed_ns)) return Bound::kCommunication;
  if (is_large(times.only_copying_ns)) return Bound::kCopy;
  return is_large(idle_ns(IdleReason::kStarved)) ? Bound::kStarved : Bound::kDevice;
}

Bound bound_of(Bound by_records, const UnitUse& units) {
  static constexpr Bound kBounds[kUnitClassCount] = {Bound::kDevice,  Bound::kCompute,
                                                     Bound::kMemory,  Bound::kBalanced,
                                                     Bound::kLatency, Bound::kSmallGrids};
  if (by_records != Bound::kDevice && by_records != Bound::kUnrecorded) return by_records;
  constexpr size_t kFirstBusy = static_cast<size_t>(UnitClass::kCompute);
  const auto* most =
      std::max_element(std::begin(units.class_ns) + kFirstBusy, std::end(units.class_ns));
  if (*most == 0) return by_records;
  return kBounds[static_cast<size_t>(most - std::begin(units.class_ns))];
}

}  // namespace aon::writers
