/// The GPUs that this job may use, and the parts of them (MIG instances), which the driver shows as
/// devices of their own.
/// Thread: the poller's.   Cost: 1 ms per GPU, once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nvml/library.h"

namespace aon::nvml {

struct Gpu {
  Handle handle = nullptr;
  Handle whole = nullptr;            ///< of a part: the GPU it is of, else `handle`
  std::optional<uint32_t> instance;  ///< of a part: its GPU instance
  std::string uuid;                  ///< "GPU-..." or "MIG-..."
  std::string name;                  ///< "NVIDIA H100 80GB HBM3"
  std::string address;               ///< "0000:17:00.0", of the whole; as hwloc writes it
  bool has_gpm = false;
};

/// Adds to `state` what was found; OFF: nothing.
std::vector<Gpu> find_gpus(const Library& library, node::StateText* state);

/// The 16 bytes of "GPU-5d2c...": false when it is none.
bool parse_uuid(const std::string& text, uint8_t (&bytes)[16]);

}  // namespace aon::nvml
