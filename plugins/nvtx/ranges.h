/// Ranges of NVTX: pushed and popped ones, which nest by thread and domain, and those that are
/// started and ended, which may overlap and end on another thread.
///
/// Pushed ranges are kBegin and kEnd. A pop names nothing, so each thread keeps what it has pushed:
/// in an array by the slot of its writer, which is no thread_local of a library that is loaded
/// late. A range of a domain that is popped while one of another domain is open in it ends both in
/// the output, and is counted there.
///
/// A started range is two marks. Its number holds all that its end must know, so that no table is
/// needed: the place of its name, and when it began.
///
///     63              13 12       0
///     | low bits of ticks | index |
///
/// Thread: any.   Signal: safe.   Cost: one clock read and 2 to 3 ns each.
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
/// Ends the range of this number; others are ignored.
void end_range(uint64_t number);

}  // namespace aon::nvtx
