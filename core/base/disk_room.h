/// How much of a disk AON leaves to others: a job that records for long would else fill it to the
/// last byte, and the application that writes there meets the full disk at the same time.
///
/// The spool, which `--disk` bounds as well, leaves 5 %, at most 1 GiB (docs/failure.md); the
/// temporary files of an assembly, which no setting bounds, half of that, so that there is room for
/// a result where the spool has filled a disk. A quota does not show.
/// Thread: any.   Cost: none.
#pragma once

#include <algorithm>
#include <cstdint>

namespace aon {

/// Of a disk of `all_bytes`; 0: not known.
constexpr uint64_t left_by_spool_bytes(uint64_t all_bytes) noexcept {
  return std::min(all_bytes / 20, uint64_t{1} << 30);
}

constexpr uint64_t left_by_assembly_bytes(uint64_t all_bytes) noexcept {
  return left_by_spool_bytes(all_bytes) / 2;
}

}  // namespace aon
