#include "writers/assemble/event_pass.h"

#include <aon/lost_record.h>

#include <algorithm>

#include "writers/assemble/nccl_record.h"
#include "writers/assemble/sample_sorter.h"
#include "writers/profile/beside_ranks.h"

namespace aon::writers {
namespace {

const std::unordered_map<uint32_t, uint32_t> kNoIds;

/// For what only the agent's counters know, at the end of a stream: nothing says any more what
/// regions are open.
Record lost_at_end(LossReason reason, uint64_t count, uint64_t start_ticks, uint64_t end_ticks) {
  return lost_record(reason, count, start_ticks, end_ticks, pack_lost_regions(kAllRegions, 0));
}

}  // namespace

void EventPass::for_each_writer(const std::function<Status(Writer*)>& action) {
  for (WriterSlot& slot : writers_) {
    if (slot.status) slot.status = action(slot.writer.get());
  }
}

Status EventPass::run(uint64_t alike_failure_count) {
  for_each_writer([&](Writer* writer) { return writer->begin(parts_.model); });
  tallies_.reserve(parts_.model.locations.size());
  for (const Location& location : parts_.model.locations) {
    Status status = run_location(location);
    if (!status) return status;
  }
  end_groups();
  take_out_alike(alike_failure_count, &outcome_);
  outcome_.communication_complete = is_complete(parts_.model, outcome_, tallies_);
  for_each_writer([&](Writer* writer) { return writer->finish(outcome_); });
  return {};
}

Status EventPass::run_groups(const std::vector<bool>& is_own, const GroupSink& done) {
  for_each_writer([&](Writer* writer) { return writer->begin(parts_.model); });
  const std::vector<Location>& locations = parts_.model.locations;
  for (size_t i = 0; i < locations.size(); ++i) {
    const uint32_t group = locations[i].group;
    if (!is_own[group]) continue;
    Status status = run_location(locations[i]);
    const bool is_last = i + 1 == locations.size() || locations[i + 1].group != group;
    if (status && is_last) status = done(group);
    if (!status) return status;
  }
  end_groups();
  return {};
}

void EventPass::end_groups() {
  requests_.settle(&outcome_);
  open_io_.settle(&outcome_);
  outcome_.unplaced_device_count += device_spans_.restart();
  outcome_.uncounted_launch_count += nccl_spans_.restart();
}

/// What lives from the first location of a process to its last one.
void EventPass::begin_group(const Group& group) {
  requests_.settle(&outcome_);
  open_io_.settle(&outcome_);
  outcome_.unplaced_device_count += device_spans_.restart();
  outcome_.uncounted_launch_count += nccl_spans_.restart();
  request_group_ = group.id;
}

/// Work of devices waits for its streams, which come behind the threads of the process.
/// Where its temporary file cannot be written, the process's work of devices is left out and
/// counted.
void EventPass::keep_device_spans(const Group& group, std::span<const Record> records) {
  if (!has_devices_) return;
  for (const Record& record : records) {
    if (record.head.kind == RecordKind::kDeviceSpan) {
      if (!device_spans_.add(record)) device_spans_.drop();
    } else if (group.process != nullptr && is_on_nccl_timeline(*group.process, record)) {
      if (!nccl_spans_.add(record)) nccl_spans_.drop();
    }
  }
}

Status EventPass::run_nccl_timeline(const Location& location, const StreamEvents::Sink& sink) {
  const Group& group = parts_.model.groups[location.group];
  const auto is_transfer = [&](uint32_t region) {
    const auto found = group.region_map.find(region);
    return found != group.region_map.end() &&
           parts_.model.regions[found->second].role == RegionRole::kPointToPoint;
  };
  return nccl_spans_.replay(location.device_stream, parts_.clocks[group.node], group.region_map,
                            is_transfer, &outcome_, sink);
}

void EventPass::run_device_stream(const Location& location) {
  const Group& group = parts_.model.groups[location.group];
  const StreamEvents::Sink sink = [&](std::span<const Event> events) {
    beat_();
    for_each_writer([&](Writer* w) { return w->events(events); });
    return Status();
  };
  if (is_nccl_timeline(parts_.model, location)) {
    if (!run_nccl_timeline(location, sink)) nccl_spans_.drop();
    return;
  }
  const Status status = device_spans_.replay(location.device_stream, parts_.clocks[group.node],
                                             group.region_map, &outcome_, sink);
  if (!status) device_spans_.drop();
}

Status EventPass::run_location(const Location& location) {
  beat_();
  const Group& group = parts_.model.groups[location.group];
  if (request_group_ != group.id) begin_group(group);
  for_each_writer([&](Writer* writer) { return writer->begin_location(location); });
  const bool is_node = location.process == spool::kNodeProcess;
  const IdTables ids{is_node ? &kNoIds : &group.region_map,
                     &parts_.model.regions,
                     is_node ? &kNoIds : &group.communicator_map,
                     is_node ? &parts_.node_metric_maps[group.node] : &group.metric_map,
                     is_node ? &kNoIds : &group.window_map,
                     is_node ? &kNoIds : &group.rank_group_map,
                     is_node ? &kNoIds : &group.file_map,
                     is_node ? &kNoIds : &group.file_name_map,
                     &parts_.model.communicators,
                     &parts_.model.windows,
                     &parts_.model.files};
  LocationTally tally;
  tally.location = &location;
  if (location.type == LocationType::kAcceleratorStream) {
    if (has_devices_) run_device_stream(location);
  } else if (group.process != nullptr || is_node) {
    EventOrder order(parts_.clocks[group.node], ids, &requests_, &open_io_, &outcome_, &tally,
                     [&](std::span<const Event> events) {
                       for_each_writer([&](Writer* w) { return w->events(events); });
                       return Status();
                     });
    const spool::Process* told = is_node ? &parts_.job.nodes[group.node].series : group.process;
    Status status = read_stream(location, told, &order, &tally);
    if (!status) return status;
  }
  tallies_.push_back(tally);
  for_each_writer([&](Writer* writer) { return writer->end_location(); });
  return {};
}

Status EventPass::use_index(uint32_t node, uint32_t process, const spool::Process* told) {
  if (index_ != nullptr && index_node_ == node && index_->process() == process) return {};
  const auto& by_process = parts_.segments[node];
  const auto found = by_process.find(process);
  static const std::vector<spool::SegmentName> kNoSegments;
  Result<spool::ProcessIndex> index =
      spool::ProcessIndex::build(parts_.job.nodes[node].folder, process,
                                 found == by_process.end() ? kNoSegments : found->second);
  if (!index) return index.error();
  index_ = std::make_unique<spool::ProcessIndex>(std::move(index).value());
  index_node_ = node;
  nccl_overwritten_.clear();
  span_window_ = SpanWindow();
  if (told == nullptr) return {};
  if (has_devices_ && !told->device_streams.empty()) {
    const SpanRoom room{device_spans_.most_count(), nccl_spans_.most_count()};
    const Result<SpanWindow> window = find_span_window(*index_, *told, room, beat_);
    if (!window) return window.error();
    span_window_ = *window;
  }
  return nccl_overwritten_.find(*index_, *told, beat_);
}

Status EventPass::read_stream(const Location& location, const spool::Process* process,
                              EventOrder* order, LocationTally* tally) {
  Status status = use_index(parts_.model.groups[location.group].node, location.process, process);
  if (!status) return status;
  device_spans_.begin_window(span_window_.device_ticks);
  nccl_spans_.begin_window(span_window_.nccl_ticks);
  spool::StreamReader reader(*index_, process, location.slot);
  const bool is_series = location.type == LocationType::kMetric;
  SampleSorter sorter;
  for (uint64_t batches = 0;; ++batches) {
    if (batches % 1024 == 1023) beat_();
    Result<spool::StreamBatch> batch = reader.next();
    if (!batch) return batch.error();
    if (batch->records.empty()) break;
    batch->records = nccl_overwritten_.correct(batch->records);
    if (is_series) {
      sorter.add(batch->records);
      const std::vector<Record> ready = sorter.take(false);
      status = order->add({.records = ready, .is_resync = batch->is_resync, .open = batch->open});
    } else {
      status = order->add(*batch);
    }
    if (status) keep_device_spans(parts_.model.groups[location.group], batch->records);
    if (!status) return status;
  }
  if (const std::vector<Record> rest = sorter.take(true); !rest.empty()) {
    status = order->add({.records = rest, .is_resync = false, .open = {}});
    if (!status) return status;
  }
  tally->damaged_blocks = reader.losses().damaged_blocks;
  uint64_t end_ticks = 0;
  if (process != nullptr) {
    status = add_tail(*process, location.slot, tally, order);
    if (!status) return status;
    if (process->exit) end_ticks = process->exit->end_ticks;
  }
  return order->finish(end_ticks);
}

/// Losses that stand in no record: refused ones after which no record came any more, and what lies
/// behind the place where a stream was cut off.
Status EventPass::add_tail(const spool::Process& process, uint16_t slot, LocationTally* tally,
                           EventOrder* order) {
  uint64_t committed = 0;
  uint64_t refused = 0;
  uint64_t cut = 0;
  uint64_t first_refused = UINT64_MAX;
  uint64_t last_refused = 0;
  for (uint16_t context = 0; context < 2; ++context) {
    const auto found = process.streams.find({slot, context});
    if (found == process.streams.end()) continue;
    const StreamDefinition& stream = found->second;
    committed += stream.committed;
    refused += stream.refused;
    cut += stream.stream_cut;
    if (stream.refused == 0) continue;
    // A stream without a record, as of threads for which there was no slot, has no time for it.
    const uint64_t since = std::max(stream.first_refused_ticks, process.start.attach_ticks);
    first_refused = std::min(first_refused, since);
    last_refused = std::max(last_refused, stream.last_refused_ticks);
  }
  order->settle();
  // Before the end, or with damaged definitions, the latest counts may not be there.
  const bool is_final = process.exit.has_value() && process.streams.count({slot, 0}) != 0;
  if (is_final && parts_.job.damaged_blocks == 0) tally->agents_count = committed + refused + cut;
  const uint64_t told = tally->lost[static_cast<uint32_t>(LossReason::kPoolFull)].count;
  std::vector<Record> tail;
  // Nothing newer came from the stream, so the loss is known to be over with its process alone.
  const uint64_t end =
      std::max(last_refused, process.exit ? process.exit->end_ticks : index_->tick_range().second);
  if (refused > told) {
    tail.push_back(lost_at_end(LossReason::kPoolFull, refused - told, first_refused, end));
  }
  if (cut != 0) tail.push_back(lost_at_end(LossReason::kStreamCut, cut, end, end));
  return order->add({.records = tail, .is_resync = false, .open = {}});
}

void take_out_alike(uint64_t alike_failure_count, Outcome* outcome) {
  outcome->unmatched_count -= std::min(alike_failure_count, outcome->unmatched_count);
}

bool is_complete(const Model& model, const Outcome& outcome,
                 std::span<const LocationTally> tallies) {
  if (outcome.open_call_count != 0 || outcome.unmatched_count != 0) return false;
  if (outcome.open_transfer_count != 0 || outcome.pause_count != 0) return false;
  if (outcome.open_io_count != 0 || outcome.unmatched_io_count != 0) return false;
  for (const LocationTally& tally : tallies) {
    if (tally.location->type == LocationType::kSamples) continue;
    if (tally.lost_count() != 0) return false;
  }
  return std::all_of(model.groups.begin(), model.groups.end(), [&model](const Group& group) {
    // A launcher or wrapper that was followed beside the ranks, or without any.
    if (!group.rank && profile::is_silent(group) && profile::may_be_above_its_rank(model, group))
      return true;
    if (group.process == nullptr || !group.process->exit) return false;  // it may have done more
    const auto mpi = group.process->providers.find("mpi");
    return mpi == group.process->providers.end() || mpi->second.state == ProviderState::kOn;
  });
}

}  // namespace aon::writers
