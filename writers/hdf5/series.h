/// Samples over time: /series/rank_N/PROVIDER (and process_N, node_N), one NXdata group per
/// provider: "time" in ns since 1970, one column per metric, all of one length. A metric without a
/// value at some time is NaN there. What is about a device is below /series/gpu_UUID instead
/// (device_series.h).
///
/// A metric that was multiplexed also has "METRIC_scale": enabled / running, the factor that is
/// already in the value (1: it was counted all the time).
///
/// The series of a share are in a file of its own, which looks the same; profile.h5 has links to
/// them, and readers see no difference.
///
/// Owner: the writer.   Thread: one.   Cost: the values of kChunkRows rows of one location.
/// Errors: H5Error.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "writers/hdf5/column.h"
#include "writers/hdf5/device_series.h"
#include "writers/hdf5/sparse_column.h"
#include "writers/writer.h"

namespace aon::writers::hdf5 {

/// The series of one provider on one location.
class Series {
 public:
  /// `path` is that of the group to create below `parent`, `folder` what the names of its metrics
  /// begin with: "gpu_UUID/FOLDER" or "".
  Series(hid_t parent, const std::string& path, const std::string& title, std::string folder);

  /// Adds a value at `time_ns`, which never decreases.
  void add(uint64_t time_ns, uint32_t metric, const GlobalMetric& definition, double value,
           uint64_t enabled_ns, uint64_t running_ns);
  void finish();
  hid_t group() const { return group_.get(); }

 private:
  struct Metric {
    std::string name;
    std::unique_ptr<SparseColumn> values;
    std::unique_ptr<SparseColumn> scales;  ///< null until it was multiplexed once
    const char* mode = "";                 ///< accumulated, absolute
  };

  Metric& metric_of(uint32_t metric, const GlobalMetric& definition);
  /// `name`, or one like it with the metric's id when another column has it.
  std::string claim(const std::string& name, uint32_t metric);
  void end_row();

  Handle group_;
  std::string folder_;
  Column<int64_t> time_;
  std::set<std::string> used_names_;
  std::map<uint32_t, Metric> metrics_;  ///< by global id
  std::optional<uint64_t> row_time_ns_;
  hsize_t rows_ = 0;
};

/// All series of a file, location by location.
class SeriesWriter {
 public:
  SeriesWriter(hid_t file, const Model& model);

  void begin(const Location& location);
  void add(const Event& sample);
  void end();

  /// Puts in links to the series that save_series() told of.
  Status load(StateIn* in);

 private:
  /// A series as others find it: what it is to be called, and its path below /series of its file,
  /// which differs where that name was in use.
  using Place = std::pair<std::string, std::string>;
  friend void save_series(StateOut* out, const std::string& file, SeriesWriter* series);

  std::string path_of(const Location& location, const std::string& provider) const;
  /// Which nodes and ranks the series of a location is about, as attributes of its group.
  void set_coverage(hid_t group, const Location& location) const;
  /// The same of a device.
  void set_device(hid_t group, const Location& location, const std::string& folder);
  /// `path`, or one like it when it is in use. The first one is what a viewer shows first.
  std::string claim(const std::string& path);

  const Model* model_;
  DeviceFinder devices_;
  size_t world_ = 0;  ///< how many have a rank
  Handle root_;
  const Location* location_ = nullptr;
  /// Of the current location, by provider and folder.
  std::map<std::pair<std::string, std::string>, std::unique_ptr<Series>> open_;
  std::map<std::string, uint32_t> used_paths_;  ///< how often others wanted it
  std::vector<Place> new_places_;               ///< since the last save_series()
};

/// Hands over the new series of a share, which are in `file` as seen from profile.h5. `series`
/// null: it has none.
void save_series(StateOut* out, const std::string& file, SeriesWriter* series);

}  // namespace aon::writers::hdf5
