/// What GPUs were not used for, each GPU once, whoever used it, and the sentence about it.
///
/// A GPU that several processes use at the same time is idle only while none of them has work on
/// it. Their work is not brought together, so of such a one it is told what is left of its time
/// when the work of all of them is taken off: no more than it was idle. That communication or
/// copies of one had nothing beside them, and why it waited, is not told then.
/// Thread: any.   Cost: a sort of the uses.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "writers/devices/devices.h"
#include "writers/writer.h"

namespace aon::writers::ledger {

struct DeviceWaste {
  uint32_t group = 0;   ///< of the first of those that used it
  uint32_t device = 0;  ///< as that one counts
  uint32_t process_count = 1;
  uint64_t span_ns = 0;  ///< in which at least one used it, without times that are not recorded
  uint64_t idle_ns = 0;
  uint64_t late_ns = 0;     ///< of it: until the host had launched
  uint64_t starved_ns = 0;  ///< of it: work that was launched waited
  uint64_t starved_count = 0;
  bool has_gaps = false;  ///< some of its time is not recorded
  uint64_t exposed_ns = 0;
  uint64_t only_copying_ns = 0;

  uint64_t sum_ns() const { return idle_ns + exposed_ns + only_copying_ns; }
};

/// "GPU 0 of MPI Rank 3 (5d2c0011-...)": its ordinal there and its UUID, where that is known.
std::string device_text(const Model& model, uint32_t group, uint32_t device);

/// By GPU: those of one node with one UUID are one. `uses` in the order of their groups.
std::vector<std::vector<const DeviceUse*>> uses_by_device(const Model& model,
                                                          const std::vector<DeviceUse>& uses);

/// Without those of which too little is recorded (kLeastRecordedOfUse).
std::vector<DeviceWaste> device_waste(const Model& model, const std::vector<DeviceUse>& uses);

/// Empty: nothing that stands out.
std::string waste_text(const Model& model, const std::vector<DeviceWaste>& devices);

}  // namespace aon::writers::ledger
