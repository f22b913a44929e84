/// Patterns of loops on their way from one process of an assembly to another.
/// Thread: one.   Cost: a copy.   Errors: kDamaged, of what could not be used safely.
#pragma once

#include "writers/state.h"
#include "writers/steps/find_loops.h"
#include "writers/writer.h"

namespace aon::writers::steps {

/// `bodies`: of the rank's candidates that went out, or came in, before.
void save_candidate(StateOut* out, const Candidate& candidate, Bodies* bodies);
/// False: `in` has failed.
bool load_candidate(StateIn* in, const Model& model, Candidate* candidate, Bodies* bodies);

}  // namespace aon::writers::steps
