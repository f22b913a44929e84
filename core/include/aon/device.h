/// Words of a kDeviceSpan record (record.h): a kernel, a copy, or other work of an accelerator.
///
/// | word | content                                                                              |
/// |------|--------------------------------------------------------------------------------------|
/// | 0    | low half: correlation id of the starting call, 0 unknown; byte 4: DeviceOperation    |
/// | 1    | low half: graph, 0 none; high half: its node                                         |
/// | 2    | low half: thread blocks of a kernel (at most 2^32 - 1); high half: threads per block |
/// | 3    | bytes 0 and 1: DeviceMemory from and to; bytes 4 to 7: shared memory per block       |
///
/// A wide duration (kWideDuration) adds a slot and is its last word. Its start and duration are in
/// ticks of the process's clock: whoever writes the record has converted them from the device's.
/// Depends on record.h only.
#pragma once

#include <aon/record.h>

#include <cstdint>

namespace aon {

enum class DeviceOperation : uint8_t { kKernel = 0, kCopy, kSet, kGraph, kSynchronize, kOther };
constexpr uint32_t kDeviceOperationCount = 6;

enum class DeviceMemory : uint8_t { kUnknown = 0, kPageable, kPinned, kDevice, kArray, kManaged };
constexpr uint32_t kDeviceMemoryCount = 6;

/// What the thread is called that writes the records of devices: what it loses is their work.
constexpr char kDeviceRecordsThread[] = "records of CUPTI";

}  // namespace aon
