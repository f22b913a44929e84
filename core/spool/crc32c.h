/// CRC-32C (Castagnoli, RFC 3720), with SSE4.2's instruction where the CPU has it.
/// Thread: any.   Cost: 0.1 ns per byte, by table 1 ns.
#pragma once

#include <cstddef>
#include <cstdint>

namespace aon::spool {

uint32_t crc32c(const void* data, size_t bytes) noexcept;

/// The table version, for CPUs without SSE4.2 and for the test that compares both.
uint32_t crc32c_by_table(const void* data, size_t bytes) noexcept;

}  // namespace aon::spool
