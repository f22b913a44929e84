/// The tables of profile.h5 that come from definitions alone: /nodes, /clock_pings, /ranks,
/// /regions, /communicators, /windows, /files and /topology.
/// Thread: one.   Errors: H5Error.
#pragma once

#include "writers/hdf5/h5.h"
#include "writers/writer.h"

namespace aon::writers::hdf5 {

/// A new file, with the attributes of its root that every reader wants.
Handle create_profile(const std::filesystem::path& path);

/// Columns: name, launch, processes, clock_is_tsc, clock_error_ns, clock_worst_case_ns,
/// clock_offset_ns, clock_drift_ppb, agent_cpu_ns, disk_used_bytes.
void write_nodes(hid_t file, const Model& model);

/// Columns: node, peer, and the four ticks of each exchange (ClockPingDefinition). Of more than a
/// million only every so many-th, which the attribute `one_of` tells.
void write_clock_pings(hid_t file, const Model& model);

/// One row per group, in order of its id: rank (-1 without), node, host, pid, program, ...
void write_ranks(hid_t file, const Model& model);

/// Columns: name, role, paradigm; the row is the region's id.
void write_regions(hid_t file, const Model& model);

/// Columns: name, kind, parent (-1 none), size, first_member; the row is the communicator's id. Its
/// members are rows first_member to first_member + size of /communicators/members: world ranks, -1
/// where unknown.
void write_communicators(hid_t file, const Model& model);

/// Columns: name, communicator, flavour; the row is the window's id.
void write_windows(hid_t file, const Model& model);
/// Columns: name, communicator (-1 unknown), mode; the row is the file's id: one per opening.
void write_files(hid_t file, const Model& model);

/// /topology/objects: every object of every node (see topology.h), parent a row of this table;
/// /topology/xml: hwloc's XML by node ("" where it is unknown).
void write_topology(hid_t file, const Model& model);

/// Adds to a finished table what the buckets of its column `histogram` are: a dimension of its own,
/// "bucket", with the shortest duration of each.
void add_duration_buckets(hid_t group, hid_t histogram);

}  // namespace aon::writers::hdf5
