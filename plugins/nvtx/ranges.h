/// Ranges of NVTX: pushed and popped ones, which nest by thread and domain, and those that are
/// started and ended, which may overlap and end on another thread.
///
/// Pushed ranges are kBegin and kEnd. A pop names nothing, so each thread keeps what it has pushed:
/// in an array by the slot of its writer, which is no thread_local of a library that is loaded
/// late. A range of a domain that is popped while one of another domain is open in it ends both in
/// the output, and is counted there.
///
/// A started range is two marks. Its number holds all that its end must know, the place of its name
/// and when it began; that it is open a table says (open_ranges.h).
///
///     63              13 12       0
///     | low bits of ticks | index |
///
/// A pop without a push and the end of no open range are the end of a region that never begins: the
/// assembly counts it (assembly.unbalanced_regions).
///
/// Thread: any.   Signal: safe.   Cost: one clock read and 2 to 3 ns each; of a started range
/// the table costs about 15 ns more at either end.
#pragma once

#include <aon/annotation.h>

#include "nvtx/interface.h"

namespace aon::nvtx {

constexpr int kNotTracked = -2;  ///< what push and pop return when nothing is recorded

/// Begins a range; returns its level within the thread's domain, from 0.
int push_range(const Domain* domain, const Annotation* region, ValueType type, uint64_t value);
/// Ends the innermost range of the domain; returns its level.
int pop_range(const Domain* domain);

/// Begins a range and returns its number; 0 when nothing is recorded.
uint64_t start_range(const Annotation* region, ValueType type, uint64_t value);
/// Ends the range of this number. 0 is ignored.
void end_range(uint64_t number);

}  // namespace aon::nvtx
