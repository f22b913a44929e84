/// Statistics of single processes -> what is said of each loop, and how sure it is.
/// Thread: one.   Cost: a sort of the processes per loop.
#pragma once

#include "writers/steps/steps.h"

namespace aon::writers::steps {

/// Fills in loops, coverage and confidence; loops without steps go. `run_ns`: of all ranks, from
/// the start to the end of MPI.
void sum_up(const StepPlan& plan, const Model& model, double run_ns, StepSummary* summary);

}  // namespace aon::writers::steps
