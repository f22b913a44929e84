/// What regions are to the analysis of devices, by their names.
/// Thread: one.   Cost: a byte per region.
#pragma once

#include <aon/device_gaps.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "writers/writer.h"

namespace aon::writers::devices {

class RegionKinds {
 public:
  void begin(const Model& model) {
    for (uint32_t i = 0; i < model.regions.size(); ++i) {
      const std::string& name = model.regions[i].name;
      kinds_.push_back(static_cast<uint8_t>((is_of_nccl(name) ? kCommunication : 0) |
                                            (is_launch_of_graph(name) ? kLaunchesGraph : 0) |
                                            (is_launch_of_kernel(name) ? kLaunchesKernel : 0) |
                                            (is_begin_of_capture(name) ? kBeginsCapture : 0) |
                                            (is_end_of_capture(name) ? kEndsCapture : 0) |
                                            (is_of_runtime(name) ? kIsOfRuntime : 0)));
      for (uint32_t cause = 0; cause < kGapCauseCount; ++cause) {
        if (name == gap_name(static_cast<GapCause>(cause))) gaps_[i] = static_cast<GapCause>(cause);
      }
    }
  }

  // Of a global region.
  bool is_communication(uint32_t region) const { return is(region, kCommunication); }
  bool launches_graph(uint32_t region) const { return is(region, kLaunchesGraph); }
  bool launches_kernel(uint32_t region) const { return is(region, kLaunchesKernel); }
  bool begins_capture(uint32_t region) const { return is(region, kBeginsCapture); }
  bool ends_capture(uint32_t region) const { return is(region, kEndsCapture); }
  bool is_of_runtime(uint32_t region) const { return is(region, kIsOfRuntime); }
  /// Null: it is no time that is not recorded.
  const GapCause* gap_of(uint32_t region) const {
    const auto found = gaps_.find(region);
    return found != gaps_.end() ? &found->second : nullptr;
  }

 private:
  static constexpr uint8_t kCommunication = 1, kLaunchesGraph = 2, kLaunchesKernel = 4;
  static constexpr uint8_t kBeginsCapture = 8, kEndsCapture = 16, kIsOfRuntime = 32;

  /// What NCCL calls its kernels, by their demangled names.
  static bool is_of_nccl(const std::string& name) {
    return name.rfind("nccl", 0) == 0 || name.find("ncclKernel") != std::string::npos ||
           name.find("ncclDevKernel") != std::string::npos;
  }
  /// cuGraphLaunch, cudaGraphLaunch, ...
  static bool is_launch_of_graph(const std::string& name) {
    return name.find("GraphLaunch") != std::string::npos;
  }
  /// cuLaunchKernel, cudaLaunchKernelExC, cuLaunchCooperativeKernel, ...
  static bool is_launch_of_kernel(const std::string& name) {
    return name.find("LaunchKernel") != std::string::npos ||
           name.find("LaunchCooperativeKernel") != std::string::npos;
  }
  /// cuStreamBeginCapture_v2, cudaStreamBeginCaptureToGraph, ...
  static bool is_begin_of_capture(const std::string& name) {
    return name.find("StreamBeginCapture") != std::string::npos;
  }
  static bool is_end_of_capture(const std::string& name) {
    return name.find("StreamEndCapture") != std::string::npos;
  }
  static bool is_of_runtime(const std::string& name) { return name.rfind("cuda", 0) == 0; }
  bool is(uint32_t region, uint8_t kind) const {
    return region < kinds_.size() && (kinds_[region] & kind) != 0;
  }

  std::vector<uint8_t> kinds_;
  std::map<uint32_t, GapCause> gaps_;
};

}  // namespace aon::writers::devices
