/// Tables of what operations take when nobody is late: /true_times of MPI's collectives and
/// /nccl/true_times of NCCL's operations.
/// Thread: one.   Errors: H5Error.
#pragma once

#include <functional>
#include <vector>

#include "writers/hdf5/h5.h"
#include "writers/lateness/true_times.h"
#include "writers/writer.h"

namespace aon::writers::hdf5 {

/// `communicators` names the table that `row_of` gives rows of. Bandwidths are those of nccl-tests,
/// of the usual time, NaN where they are not defined. `left_out_count`: operations without a row.
void write_true_times(hid_t file, const char* path, const char* communicators, const Model& model,
                      const std::vector<TrueTimes>& rows, uint64_t left_out_count,
                      const std::function<int64_t(uint32_t)>& row_of);

}  // namespace aon::writers::hdf5
