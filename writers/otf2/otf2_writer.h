/// OTF2 archive of a job: FOLDER/traces.otf2, traces.def and traces/, as Vampir, ViTE, otf2-print
/// and the python reader accept it. The conventions are Score-P's; docs/archive.md lists them.
///
/// One location is open at a time, its buffers are two chunks of 256 KiB: memory and descriptors do
/// not depend on the number of events or locations. Region and communicator ids stay local in the
/// event files; a mapping table per location gives the global ones.
/// Thread: one.   Cost: about 15 ns per OTF2 event record.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "writers/nccl/lateness.h"
#include "writers/otf2/markers.h"
#include "writers/waits/waits.h"
#include "writers/writer.h"

namespace aon::writers {

/// At most `most` markers. `job`, which outlives the writer, has those that are known without
/// events, and gets how many there were; null: there are none (a share has its own alone).
struct MarkerPlan {
  size_t most = otf2::kMostMarkers;
  otf2::JobMarkers* job = nullptr;
};

/// A writer that makes the archive in `folder`, which must exist and hold no `traces*`. What the
/// calls of `waits`, which outlives it, have waited is a metric on a location of its own for each
/// thread; null: no such metric. `nccl_as_mpi`: operations of NCCL are MPI's (nccl_timelines.h).
/// `lateness`, which outlives it and is finished before it, has what these have waited
/// (nccl_waits.h); null: no such metric. What could not be read of both is missing: finish() adds a
/// line to `lacks`, if that is not null. Counters that threads set are on a location of their own
/// for each of these, or with `has_counters` false nowhere. So are series of devices, or with
/// `has_devices` false on the location of their node.
std::unique_ptr<Writer> make_otf2_writer(const std::filesystem::path& folder,
                                         WaitAnalysis* waits = nullptr, bool nccl_as_mpi = false,
                                         nccl::LatenessAnalysis* lateness = nullptr,
                                         std::vector<std::string>* lacks = nullptr,
                                         bool has_counters = true, const MarkerPlan& markers = {},
                                         bool has_devices = true);

/// Locations that series of devices have in it beside those of their nodes.
uint64_t device_series_count(const Model& model);

/// Counters at the borders of calls that their class in the archive has no room for: the last ones.
size_t left_out_counter_count(const Model& model);

/// What the archive claims as MPI_COMMUNICATION_COMPLETE: every message of the job is in it. Tools
/// refuse or warn on an incomplete one by this.
bool has_all_communication(const Model& model, const Outcome& outcome, bool nccl_as_mpi);

}  // namespace aon::writers
