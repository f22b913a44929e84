/// The GPUs that CUDA's driver shows to this process, without its headers.
/// Thread: one.   Cost: cuInit, 0.1 to some seconds.
#pragma once

#include <string>
#include <vector>

#include "gpu_counters/library.h"

namespace aon::gpu_counters {

struct DriverDevice {
  std::string uuid;  ///< "GPU-5d2c..." or "MIG-...", as NVML has it
  std::string name;
};

/// By CUDA's ordinal. CUPTI's functions may crash before this worked.
Problem find_devices(std::vector<DriverDevice>* devices);

/// "GPU-5d2c...-..." of the 16 bytes; of a part of a GPU "MIG-...".
std::string uuid_text(const unsigned char (&bytes)[16], bool is_part);

}  // namespace aon::gpu_counters
