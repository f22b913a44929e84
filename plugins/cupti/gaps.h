/// Times in which work of devices may be missing, as intervals on a timeline of their own. Any
/// thread may tell one: at the end of the program that is the one that exits, when ours does not
/// answer.
/// Thread: any; locks, where the name is new.   Cost: a record.
#pragma once

#include <aon/device_gaps.h>

#include <cstdint>

namespace aon::cupti {

/// Name of an interval that has work, but not its calls.
constexpr char kGapOfCalls[] = "[CUDA calls not recorded]";

/// [start, end) in ticks, no longer than the program; `name` lives for ever.
void write_gap(const char* name, uint64_t start, uint64_t end);
inline void write_gap(GapCause cause, uint64_t start, uint64_t end) {
  write_gap(gap_name(cause), start, end);
}

}  // namespace aon::cupti
