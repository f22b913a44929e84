/// Words of a kDeviceSpan record (record.h): a kernel, a copy, or other work of an accelerator.
///
/// | word | content                                                                              |
/// |------|--------------------------------------------------------------------------------------|
/// | 0    | low half: correlation id of the starting call, 0 unknown; byte 4: DeviceOperation;   |
/// |      | of a kernel, bits 40 to 51 and 52 to 63: x and y of its block; x = 0: not told       |
/// | 1    | low half: graph, 0 none; high half: its node                                         |
/// | 2    | grid of a kernel: low half x, then 16 bits each of y and z                           |
/// | 3    | bytes 0 and 1: DeviceMemory from and to; of a kernel, byte 2: registers per thread   |
/// |      | (255: so many or more, 0: not told), byte 3: z of its block; bytes 4 to 7: shared    |
/// |      | memory per block                                                                     |
///
/// Records without a block's x are of writers that told products of grid (low half of word 2) and
/// block (high half) only.
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

/// How a kernel was launched: blocks of the grid, threads of a block, registers of a thread, and
/// bytes of shared memory of a block.
struct KernelShape {
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t registers;  ///< 0: not told
  uint32_t shared_bytes;

  bool operator==(const KernelShape&) const = default;
};

/// The largest number that `bits` hold stands for what is larger: no device has as many.
constexpr uint32_t at_most_bits(uint32_t value, int bits) {
  const uint32_t most = (uint32_t{1} << bits) - 1;
  return value < most ? value : most;
}
constexpr uint64_t pack_grid(uint32_t x, uint32_t y, uint32_t z) {
  return uint64_t{x} | uint64_t{at_most_bits(y, 16)} << 32 | uint64_t{at_most_bits(z, 16)} << 48;
}
/// x and y in 12 bits each, then z in 8.
constexpr uint32_t pack_block(uint32_t x, uint32_t y, uint32_t z) {
  return at_most_bits(x, 12) | at_most_bits(y, 12) << 12 | at_most_bits(z, 8) << 24;
}
constexpr KernelShape unpack_shape(uint64_t grid, uint32_t block, uint32_t registers,
                                   uint32_t shared_bytes) {
  return {{static_cast<uint32_t>(grid), static_cast<uint32_t>(grid >> 32 & 0xffff),
           static_cast<uint32_t>(grid >> 48)},
          {block & 0xfff, block >> 12 & 0xfff, block >> 24},
          registers,
          shared_bytes};
}

/// A stream of no device: its spans are times in which work is not recorded, told by AON's own
/// threads also while the process does nothing. Those of work count from 1 on, far fewer.
constexpr uint32_t kUnrecordedStream = 0xffff;

/// What the thread is called that writes the records of devices: what it loses is their work.
constexpr char kDeviceRecordsThread[] = "records of CUPTI";

}  // namespace aon
