#include "writers/otf2/device_series.h"

#include <algorithm>

#include "writers/otf2/archive.h"
#include "writers/otf2/events.h"
#include "writers/otf2/ids.h"

namespace aon::writers::otf2 {

std::string device_of_metric(const GlobalMetric& metric) {
  const std::string prefix = metric.provider + "::gpu_";
  if (metric.name.rfind(prefix, 0) != 0) return {};
  const size_t begin = metric.provider.size() + 2;
  const size_t end = metric.name.find('/', begin);
  return end == std::string::npos ? std::string() : metric.name.substr(begin, end - begin);
}

void DeviceSeries::begin(const Model& model) {
  std::map<std::string, uint32_t> numbers;
  for (const GlobalMetric& metric : model.metrics) {
    const std::string device = device_of_metric(metric);
    uint32_t number = kNone;
    if (const auto found = numbers.find(device); found != numbers.end()) {
      number = found->second;
    } else if (!device.empty() && names_.size() < kMaxDeviceSeries) {
      number = static_cast<uint32_t>(names_.size());
      numbers.emplace(device, number);
      names_.push_back(device);
    }
    devices_.push_back(number);
  }
}

Status DeviceSeries::write(OTF2_Archive* archive, const Location& location, const Event& sample,
                           uint32_t metric_class) {
  const uint32_t device = devices_[sample.region];
  OTF2_EvtWriter*& file = files_[device];
  if (file == nullptr) {
    const uint64_t id = location.id | kDeviceSeriesLocation | uint64_t{device} << kDeviceShift;
    file = OTF2_Archive_GetEvtWriter(archive, id);
    if (file == nullptr) return Error{Code::kIo, "OTF2 archive: cannot create an event file"};
  }
  return check(EventEncoder::write_sample(file, sample, metric_class), "write Metric");
}

Status DeviceSeries::end_location(OTF2_Archive* archive, const Location& location,
                                  std::vector<WrittenLocation>* written) {
  for (const auto& [device, file] : files_) {
    Location& own = locations_.emplace_back(location);
    own.id |= kDeviceSeriesLocation | uint64_t{device} << kDeviceShift;
    own.name = names_[device] + ": " + location.name;
    uint64_t event_count = 0;
    Status status = check(OTF2_EvtWriter_GetNumberOfEvents(file, &event_count), "count events");
    if (!status) return status;
    written->push_back({&own, event_count});
    status = check(OTF2_Archive_CloseEvtWriter(archive, file), "write an event file");
    if (!status) return status;
  }
  files_.clear();
  return {};
}

}  // namespace aon::writers::otf2
