/// profile.h5 of a job: its nodes, ranks, regions and communicators, the profile by rank, location
/// and region, the message matrix, the hardware, and every metric over time. Opens in h5py, xarray
/// (netcdf4 and h5netcdf), ncdump, silx and HDFView; docs/viewers.md describes it.
///
///     /nodes /ranks /regions /communicators /topology    tables.h
///     /profile     rank location region count timed_count inclusive_ns exclusive_ns min_ns max_ns
///                  bytes histogram[40]                   figures: writers/profile/profile.h
///     /waits       rank process location region kind count wait_ns max_ns uncertain_ns (waits.h)
///     /messages    source destination count bytes        at most 64 destinations each
///     /steps /step_statistics                            steps.h
///     /series/rank_N/PROVIDER                            series.h
///
/// Of processes that a share (hdf5_share.h) went through, load() takes the rows, as if their events
/// had come, and makes links to their series.
///
/// Thread: one.   Cost: about 10 ns per event; memory for one location and 64 rows per rank.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>

#include "writers/devices/devices.h"
#include "writers/nccl/lateness.h"
#include "writers/nccl/proxy_waits.h"
#include "writers/profile/profile.h"
#include "writers/steps/steps.h"
#include "writers/waits/waits.h"
#include "writers/writer.h"

namespace aon::writers {

/// Told the rows of each location when it is complete, and those of threads that only counted
/// (`location` is null then).
using ProfileListener = std::function<void(const Group& group, const Location* location,
                                           std::span<const profile::RegionStatistics> rows)>;

struct ProfileNotes {
  std::vector<std::string> left_out;  ///< what its tables lack, a line each
  nccl::ProxyWaits proxies;
};

/// A writer that makes the file `path`; an old one is replaced. `waits` goes into /waits and
/// outlives the writer; null: there is no such table. So do `steps`, `devices` and `lateness` (of
/// NCCL), which finish before it; `devices` also tells it times of NCCL while events pass. What the
/// ledger should know of its tables is put into `notes`, which outlive it, by finish().
std::unique_ptr<Writer> make_hdf5_writer(const std::filesystem::path& path,
                                         ProfileListener listener = {},
                                         const WaitSummary* waits = nullptr,
                                         const StepMeter* steps = nullptr,
                                         DeviceAnalysis* devices = nullptr,
                                         nccl::LatenessAnalysis* lateness = nullptr,
                                         ProfileNotes* notes = nullptr);

}  // namespace aon::writers
