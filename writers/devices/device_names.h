/// Metrics that are about a device of a node and not about all of it: their name is
/// PROVIDER::gpu_UUID/FOLDER/NAME.
/// Thread: any.   Cost: a few copies of a name.
#pragma once

#include <cstdint>
#include <string>

#include "writers/writer.h"

namespace aon::writers::devices {

/// What a folder's name begins with, before the UUID.
constexpr const char* kDevicePrefix = "gpu_";

/// Name of a metric within its provider: "task-clock" of "perf::task-clock".
std::string name_in_provider(const GlobalMetric& metric);
/// "gpu_UUID/FOLDER" of "gpu_UUID/FOLDER/NAME"; empty: it is about all of its node or process.
std::string folder_of(const std::string& name);
/// "GPU-5d2c..." of "gpu_GPU-5d2c.../FOLDER".
std::string uuid_of(const std::string& folder);

/// The hexadecimal digits alone, which are the same in all ways to write it: "5d2c..." of
/// "GPU-5d2c-...", and of the bytes that CUDA tells.
std::string digits_of(const std::string& uuid);
std::string digits_of(const uint8_t (&bytes)[16]);

/// "GPU-5d2c0011-2233-...", of a part of a GPU "MIG-...", as NVML and the folders of series have
/// it; "": the driver did not tell it.
std::string uuid_text(const spool::Device& device);
/// The same of a device of a process; "" where it is not known.
std::string uuid_text(const Group& group, uint32_t device);

}  // namespace aon::writers::devices
