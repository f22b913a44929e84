/// What operations in which each member needs all others say beside waiting: who comes late, and
/// what they take when nobody is.
///
/// | operations                      | who waits, how long                                        |
/// |---------------------------------|------------------------------------------------------------|
/// | blocking, but for the next      | what it takes the member beyond the shortest duration: no  |
/// |                                 | clocks are compared (lateness.h)                           |
/// | blocking Alltoallv, Alltoallw   | until the last one has entered: who moves less is not late |
/// | started by one call, completed  | in the completing call until the last one has started; who |
/// | by another                      | works until then has not waited, and is not late           |
///
/// Where starts are compared, the bound of the two clocks' error is taken off: these are waits that
/// are sure, and who came before the last one by less than that bound may have been the last one.
/// Nothing of operations with clocks of unknown error. A call that completes several collectives
/// waits once: each has its share. What polls waited nobody knows: nothing is sure.
///
/// Thread: one.   Cost: a pass over the members; memory for them.
#pragma once

#include <span>

#include "writers/waits/match.h"

namespace aon::writers {

/// Whether nobody can leave it before all have entered, where that holds for all members. With
/// counts of its own a member may need nothing, but where each sends something to all, or gets a
/// part of what all reduce, or was seen to get something from everybody.
bool joins_all(const Member& member);

/// Of all members of one operation, of which there are any, within one group.
void note_attendance(std::span<const Member> members, const WaitContext& context,
                     WaitSummary* summary, TrueTimeTable* times);

}  // namespace aon::writers
