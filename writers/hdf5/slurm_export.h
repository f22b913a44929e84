/// The view of a profile.h5 that Slurm's sh5util reads, for sites whose scripts expect it:
///
///     /Steps/0/Nodes/HOST/Tasks/RANK    table: ElapsedTime s, EpochTime s, CPUUtilization %,
///                                       CPUTime s, then one field per metric of the perf provider
///
/// Of a job in which no rank has samples, its processes are the tasks: N of /series/process_N.
/// One row per second; counts are those of the second. Names are Slurm's way of writing ours
/// ("context-switches" is ContextSwitches). Read it with `sh5util -j 1 -E -l Node:TimeSeries -s
/// Tasks -i FILE -o out.csv`.
/// Thread: one.   Cost: the series of one rank in memory at a time.
#pragma once

#include <filesystem>

#include "core/base/result.h"

namespace aon::writers {

/// Makes `out` from `dir`/profile.h5. After an error in mid-way there is no `out`.
/// Errors: kIo; kNotFound when the job has no samples of the perf provider.
Status export_slurm_hdf5(const std::filesystem::path& dir, const std::filesystem::path& out);

}  // namespace aon::writers
