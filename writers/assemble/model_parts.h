/// Steps of build_model, one file each. Internal to writers/assemble.
#pragma once

#include "writers/assemble/model.h"

namespace aon::writers {

/// Fills Model::groups: ranks first, then processes without one. Needs job and segments.
void build_groups(JobModel* parts);

/// Fills regions and metrics, and each group's tables to them. Needs groups.
void build_regions(JobModel* parts);

/// Fills communicators and each group's table to them. Needs groups.
void build_communicators(JobModel* parts);

/// Fills windows and rank groups and each group's tables to them. Needs communicators.
void build_windows(JobModel* parts);
/// Fills file names, files and each group's tables to them. Needs communicators.
void build_files(JobModel* parts);

/// Fills functions and call paths and each group's table to them. Needs groups.
void build_call_paths(JobModel* parts, const symbols::DebugSearch& search);

/// Fills open_calls. Needs communicators and clocks.
void build_open_calls(JobModel* parts);

/// Fills stacks. Needs groups and clocks.
void build_stacks(JobModel* parts, const symbols::DebugSearch& search);

/// Fills locations, start_ns and end_ns. Needs groups and clocks.   Errors: kIo.
Status build_locations(JobModel* parts, uint32_t otf2_locations);

}  // namespace aon::writers
