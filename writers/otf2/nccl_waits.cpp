#include "writers/otf2/nccl_waits.h"

#include <algorithm>

#include "writers/otf2/archive.h"
#include "writers/otf2/ids.h"

namespace aon::writers::otf2 {

Status NcclWaits::close(OTF2_Archive* archive, std::vector<WrittenLocation>* written) {
  if (file_ == nullptr) return {};
  uint64_t event_count = 0;
  Status status = check(OTF2_EvtWriter_GetNumberOfEvents(file_, &event_count), "count events");
  if (!status) return status;
  written->push_back({&locations_.back(), event_count});
  status = check(OTF2_Archive_CloseEvtWriter(archive, file_), "write an event file");
  file_ = nullptr;
  return status;
}

Status NcclWaits::write(OTF2_Archive* archive, const Model& model, uint32_t metric_class,
                        const TimeRange& range, std::vector<WrittenLocation>* written) {
  if (lateness_ == nullptr || !lateness_->has_waits()) return {};
  Result<nccl::TimelineWaits::Reader> reader = lateness_->read_waits();
  if (!reader) failure_ = reader.error().message;
  const OTF2_Type type = OTF2_TYPE_DOUBLE;
  const Location* timeline = nullptr;
  uint64_t waited_ns = 0;
  while (reader) {
    const Result<const nccl::TimelineWait*> next = reader->next();
    if (!next) failure_ = next.error().message;
    if (!next || *next == nullptr) break;
    const nccl::TimelineWait& wait = **next;
    if (&model.locations[wait.location] != timeline) {
      if (Status status = close(archive, written); !status) return status;
      timeline = &model.locations[wait.location];
      if (!is_nccl_timeline(model, *timeline))
        return Error{Code::kDamaged, "OTF2 archive: a share of another job"};
      waited_ns = lateness_->waited_before_ns(wait.location);
      Location& own = locations_.emplace_back(*timeline);
      own.id |= kWaitingLocation;
      own.type = LocationType::kMetric;
      own.name = "NCCL waiting time: " + timeline->name;
      file_ = OTF2_Archive_GetEvtWriter(archive, own.id);
      if (file_ == nullptr) return Error{Code::kIo, "OTF2 archive: cannot create an event file"};
    }
    waited_ns += wait.wait_ns;
    OTF2_MetricValue value;
    value.floating_point = static_cast<double>(waited_ns) * 1e-9;
    const uint64_t time_ns = std::clamp(wait.time_ns, range.start_ns, range.end_ns);
    Status status =
        check(OTF2_EvtWriter_Metric(file_, nullptr, time_ns, metric_class, 1, &type, &value),
              "write Metric");
    if (!status) return status;
  }
  return close(archive, written);
}

}  // namespace aon::writers::otf2
