/// The METRIC locations of a node's devices: one for each, with all series that are about it
/// (PROVIDER::gpu_UUID/...). The node's own location keeps the rest.
/// Owner: Otf2Writer.   Thread: one.   Cost: a vector index per sample; two chunks of OTF2's memory
/// per device of the node.
#pragma once

#include <otf2/otf2.h>

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "writers/otf2/definitions.h"
#include "writers/writer.h"

namespace aon::writers::otf2 {

/// "gpu_UUID" of "PROVIDER::gpu_UUID/FOLDER/NAME"; empty: it is about no device.
std::string device_of_metric(const GlobalMetric& metric);

class DeviceSeries {
 public:
  void begin(const Model& model);
  size_t device_count() const { return names_.size(); }

  /// True when the sample is about a device: it is written by write().
  bool takes(const Event& event) const {
    return event.kind == EventKind::kSample && event.region < devices_.size() &&
           devices_[event.region] != kNone;
  }
  Status write(OTF2_Archive* archive, const Location& location, const Event& sample,
               uint32_t metric_class);

  /// Ends the node's locations and appends them to `written`, which points at what lives here.
  Status end_location(OTF2_Archive* archive, const Location& location,
                      std::vector<WrittenLocation>* written);

 private:
  static constexpr uint32_t kNone = 0xffffffffu;

  std::vector<uint32_t> devices_;  ///< by metric: index in names_
  std::vector<std::string> names_;
  std::map<uint32_t, OTF2_EvtWriter*> files_;  ///< of the location, by index in names_
  std::deque<Location> locations_;
};

}  // namespace aon::writers::otf2
