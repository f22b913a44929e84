/// Samples over time: /series/rank_N/PROVIDER (and process_N, node_N), one NXdata group per
/// provider: "time" in ns since 1970, one column per metric, all of one length. A metric without a
/// value at some time is NaN there. What is about a device is below /series/gpu_UUID instead
/// (device_series.h).
///
/// A metric that was multiplexed also has "METRIC_scale": enabled / running, the factor that is
/// already in the value (1: it was counted all the time).
///
/// Owner: the writer.   Thread: one.   Cost: a buffer per column of one location at a time.
/// Errors: H5Error.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "writers/hdf5/column.h"
#include "writers/hdf5/device_series.h"
#include "writers/writer.h"

namespace aon::writers::hdf5 {

/// The series of one provider on one location.
class Series {
 public:
  /// `path` is that of the group to create below `parent`.
  Series(hid_t parent, const std::string& path, const std::string& title);

  /// Adds a value at `time_ns`, which never decreases.
  void add(uint64_t time_ns, uint32_t metric, const GlobalMetric& definition, double value,
           uint64_t enabled_ns, uint64_t running_ns);
  void finish();
  hid_t group() const { return group_.get(); }

 private:
  struct Metric {
    std::string name;
    std::unique_ptr<Column<double>> values;
    std::unique_ptr<Column<double>> scales;  ///< null until it was multiplexed once
    std::optional<double> value;             ///< of the row that is being made
    double scale = 1;
  };

  Metric& metric_of(uint32_t metric, const GlobalMetric& definition);
  void end_row();

  Handle group_;
  Column<int64_t> time_;
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
  /// Names the series that a viewer shows first.
  void finish();

 private:
  std::string path_of(const Location& location, const std::string& provider);
  /// Which nodes and ranks the series of a location is about, as attributes of its group.
  void set_coverage(hid_t group, const Location& location) const;
  /// The same of a device.
  void set_device(hid_t group, const Location& location, const std::string& folder);
  std::string unused(const std::string& path);

  const Model* model_;
  DeviceFinder devices_;
  Handle root_;
  const Location* location_ = nullptr;
  /// Of the current location, by provider and folder.
  std::map<std::pair<std::string, std::string>, std::unique_ptr<Series>> open_;
  std::map<std::string, uint32_t> used_paths_;
  std::string first_path_;
};

}  // namespace aon::writers::hdf5
