/// What a share of a job adds to its profile.h5 (writers/writer.h): rows of tables, which save()
/// hands over, and series, which stay in a file of the share's own. The writer of profile.h5 takes
/// the rows and makes links to the series:
///
///     FOLDER/profile.h5                /series/rank_3/perf -> series/node1.h5:/series/rank_3/perf
///     FOLDER/series/node1.h5           a share's
///
/// The links are relative: the folder may be moved as a whole.
///
/// Thread: one.   Cost: as of hdf5_writer.h; memory for the rows of one process.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "writers/devices/devices.h"
#include "writers/writer.h"

namespace aon::writers {

/// `series_path` is made, with its folder (0700), when the first sample comes; an old one is
/// replaced. `link_name` is how profile.h5 names that file: "series/node1.h5". The file is whole
/// after each save() and closed by the destructor; there is no finish(). `devices` (null: none)
/// tells it times of NCCL and outlives it.
std::unique_ptr<Writer> make_hdf5_share(const std::filesystem::path& series_path,
                                        std::string link_name, DeviceAnalysis* devices = nullptr);

}  // namespace aon::writers
