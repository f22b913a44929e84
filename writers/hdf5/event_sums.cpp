#include "writers/hdf5/event_sums.h"

#include <utility>

namespace aon::writers::hdf5 {

EventSums::EventSums(const Model& model, LocationSink sink)
    : model_(&model),
      sink_(std::move(sink)),
      profile_(model),
      messages_(model),
      transfers_(model),
      io_(model),
      call_samples_(model),
      device_work_(model),
      nccl_(&model) {}

void EventSums::begin(const Location& location) {
  location_ = &location;
  const Group& group = model_->groups[location.group];
  profile_.begin(group, location);
  counters_.begin(group, location);
  messages_.begin(group);
  transfers_.begin(group);
  io_.begin(group);
  call_samples_.begin(group);
  device_work_.begin(group, location);
  nccl_.begin(group);
  nccl_proxy_.begin(group);
}

void EventSums::add(const Event& event) {
  switch (event.kind) {
    case EventKind::kCallSample:
      call_samples_.add(event);
      break;
    case EventKind::kDeviceWork:
      device_work_.add(event);
      break;
    case EventKind::kNcclCall:
      nccl_.add(event.nccl());
      break;
    case EventKind::kNcclProxy:
      nccl_proxy_.add(event.nccl_proxy());
      break;
    default:
      profile_.add(event);
      counters_.add(event);
      messages_.add(event);
      transfers_.add(event);
      io_.add(event);
      break;
  }
}

void EventSums::end() {
  const RegionRows regions = profile_.end();
  std::vector<profile::CounterStatistics> counters = counters_.end();
  if (sink_) {
    sink_(*location_, regions, counters);
  } else if (!regions.empty() || !counters.empty()) {
    const auto index = static_cast<uint32_t>(location_ - model_->locations.data());
    kept_.push_back({index, {regions.begin(), regions.end()}, std::move(counters)});
  }
}

void EventSums::save(StateOut* out) {
  out->put(uint64_t{kept_.size()});
  for (const LocationRows& rows : kept_) {
    out->put(rows.location);
    out->put(rows.regions);
    out->put(rows.counters);
  }
  kept_.clear();
  messages_.save(out);
  transfers_.save(out);
  io_.save(out);
  call_samples_.save(out);
  device_work_.save(out);
  nccl_.save(out);
  nccl_proxy_.save(out);
}

Status EventSums::check(const LocationRows& rows) const {
  if (rows.location >= model_->locations.size()) return unknown_id("location");
  for (const profile::RegionStatistics& row : rows.regions) {
    if (row.region >= model_->regions.size()) return unknown_id("region");
  }
  for (const profile::CounterStatistics& row : rows.counters) {
    if (row.metric >= model_->metrics.size()) return unknown_id("counter");
    if (row.region >= model_->regions.size() && row.region != profile::kOutsideCalls)
      return unknown_id("region");
  }
  return {};
}

Status EventSums::load(StateIn* in) {
  uint64_t count = 0;
  if (!in->get(&count)) return in->status();
  LocationRows rows;
  for (uint64_t i = 0; i < count; ++i) {
    if (!in->get(&rows.location) || !in->get(&rows.regions) || !in->get(&rows.counters))
      return in->status();
    if (Status status = check(rows); !status) return status;
    sink_(model_->locations[rows.location], rows.regions, rows.counters);
  }
  Status status = messages_.load(in);
  if (status) status = transfers_.load(in);
  if (status) status = io_.load(in);
  if (status) status = call_samples_.load(in);
  if (status) status = device_work_.load(in);
  if (status) status = nccl_.load(*model_, in);
  if (status) status = nccl_proxy_.load(*model_, in);
  return status;
}

}  // namespace aon::writers::hdf5
