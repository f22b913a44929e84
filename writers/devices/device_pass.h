/// Work of one device of a process on its way through the analysis, in order of time.
/// Thread: one.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "writers/devices/blind_times.h"
#include "writers/devices/calls.h"
#include "writers/devices/devices.h"
#include "writers/devices/median.h"
#include "writers/devices/sweep.h"

namespace aon::writers::devices {

/// What is summed up of a device while its work passes by.
struct DevicePass {
  DevicePass(uint32_t ordinal, std::vector<Window> windows, std::span<const BlindTime> blind,
             std::span<const uint64_t> missing_launches_ns)
      : device(ordinal), sweep(std::move(windows), blind, missing_launches_ns) {}

  void add_kernel(uint64_t duration_ns, const Call* call) {
    kernels.add(duration_ns);
    if (call == nullptr) return;
    if (call->is_of_graph != 0) {
      ++graph_kernel_count;
      return;
    }
    launches.add(call->end_ns - call->start_ns);
    launched.add(duration_ns);
  }
  /// To be held against the median launch; 0: most kernels are launched by graphs.
  uint64_t median_launched_ns() const {
    return launched.count() >= graph_kernel_count ? launched.value() : 0;
  }

  uint32_t device;
  Sweep sweep;
  Median kernels;
  Median launches;  ///< calls that launch one kernel
  Median launched;  ///< the kernels of these
  uint64_t graph_kernel_count = 0;
  uint64_t unknown_launch_count = 0;
};

}  // namespace aon::writers::devices
