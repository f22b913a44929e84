/// The tables of profile.h5 about steps: /steps and /step_statistics.
/// Thread: one.   Errors: H5Error.
#pragma once

#include <span>

#include "writers/hdf5/h5.h"
#include "writers/steps/steps.h"

namespace aon::writers::hdf5 {

/// /steps: rank, process, loop, step, begin_ns, duration_ns, mpi_ns, compute_ns, wait_ns, and where
/// it is told (by row) nccl_caused_ns; attributes source, confidence, loops and steps_left_out.
/// /step_statistics: by process and loop the count, and of duration, MPI, compute and wait mean,
/// standard deviation, min, median, p95 and max.
void write_steps(hid_t file, const Model& model, const StepSummary& summary,
                 std::span<const uint64_t> nccl_caused_ns);

}  // namespace aon::writers::hdf5
