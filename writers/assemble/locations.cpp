// Locations of the model: one timeline per thread slot, one for the series of a process, one for
// each stream of its devices, one for the series of a node.

#include <aon/ring.h>

#include <algorithm>
#include <set>
#include <string>

#include "core/spool/format.h"
#include "core/spool/process_index.h"
#include "writers/assemble/model_parts.h"

namespace aon::writers {
namespace {

class LocationBuilder {
 public:
  explicit LocationBuilder(JobModel* parts)
      : parts_(parts), node_series_told_(parts->job.nodes.size(), false) {}

  Status add_group(const Group& group) {
    if (group.process == nullptr) {
      add(group, LocationType::kThread, 0, "Master thread", 0, kMainThreadSlot);
      return {};
    }
    const uint32_t number = group.process->start.process;
    const auto& by_process = parts_->segments[group.node];
    std::set<uint16_t> slots{kMainThreadSlot};
    bool has_series = false;
    for (const auto& [key, stream] : group.process->streams) slots.insert(key.first);
    if (const auto found = by_process.find(number); found != by_process.end()) {
      Result<spool::ProcessIndex> index =
          spool::ProcessIndex::build(parts_->job.nodes[group.node].folder, number, found->second);
      if (!index) return index.error();
      for (const uint16_t slot : index->slots()) {
        slots.insert(slot);
        if (slot == spool::kSeriesSlot) {
          note_series(*index);
        } else {
          note_load(group.node, *index, slot);
        }
      }
      note_range(group.node, index->tick_range());
    }
    has_series = slots.erase(spool::kSeriesSlot) != 0;
    const bool has_samples = slots.erase(spool::kCallSampleSlot) != 0;
    slots.erase(kDefinitionSlot);
    add_threads(group, slots);
    uint64_t next = *slots.rbegin();
    if (has_series) {
      add(group, LocationType::kMetric, next++, "Counters", number, spool::kSeriesSlot);
    }
    if (has_samples) {
      add(group, LocationType::kSamples, next++, "Samples", number, spool::kCallSampleSlot);
    }
    next = add_device_streams(group, next);
    return add_node_series(group, next);
  }

  void note_process(const Group& group) {
    if (group.process == nullptr) return;
    const uint64_t end = group.process->exit ? group.process->exit->end_ticks : 0;
    note_range(group.node, {group.process->start.attach_ticks, end});
  }

  void finish(uint32_t otf2_locations) {
    Model& model = parts_->model;
    if (model.groups.empty()) note_agents();
    model.start_ns = start_ns_ == UINT64_MAX ? 0 : start_ns_;
    model.end_ns = std::max(end_ns_, model.start_ns);
    if (count_in_archive() <= otf2_locations) return;
    // Timelines of NCCL show again what threads and GPUs do: they go first.
    for (Location& location : model.locations)
      location.in_archive &= !is_nccl_timeline(model, location);
    if (count_in_archive() <= otf2_locations) return;
    for (Location& location : model.locations) {
      const bool is_stream =
          location.type == LocationType::kAcceleratorStream && location.device != kNoDevice;
      location.in_archive &= is_stream || location.id < (1ull << 32);
    }
  }

 private:
  uint64_t count_in_archive() const {
    const std::vector<Location>& all = parts_->model.locations;
    return static_cast<uint64_t>(std::count_if(
        all.begin(), all.end(), [](const Location& location) { return location.in_archive; }));
  }

  void add_threads(const Group& group, const std::set<uint16_t>& slots) {
    for (const uint16_t slot : slots) {
      const uint64_t k = slot - 1u;
      std::string name = k == 0 ? "Master thread" : "Thread " + std::to_string(k);
      add(group, LocationType::kThread, k, name + own_name(*group.process, slot),
          group.process->start.process, slot);
    }
  }

  /// " (NAME)" where the program gave the slot's last thread a name.
  static std::string own_name(const spool::Process& process, uint16_t slot) {
    const auto stream = process.streams.find({slot, 0});
    if (stream == process.streams.end()) return {};
    const auto found = process.thread_names.find(static_cast<uint32_t>(stream->second.tid));
    return found == process.thread_names.end() ? "" : " (" + found->second + ")";
  }

  /// Returns the next free k.
  uint64_t add_device_streams(const Group& group, uint64_t k) {
    for (const auto& [id, stream] : group.process->device_streams) {
      add(group, LocationType::kAcceleratorStream, k++, name_of(stream),
          group.process->start.process, kDefinitionSlot);
      parts_->model.locations.back().device_stream = id;
      parts_->model.locations.back().device = stream.definition.device;
    }
    return k;
  }

  /// "CUDA[device:stream]" as Score-P has it; what has no device is named.
  static std::string name_of(const spool::DeviceStream& stream) {
    const DeviceStreamDefinition& d = stream.definition;
    if (d.device != kNoDevice) {
      return "CUDA[" + std::to_string(d.device) + ":" + std::to_string(d.stream) + "]" +
             (stream.name.empty() ? "" : " " + stream.name);
    }
    if (d.stream != 0) return stream.name + " of thread " + std::to_string(d.stream);
    return stream.name + (d.context != 0 ? " of context " + std::to_string(d.context) : "");
  }

  /// The series of a node hang below its first process.
  Status add_node_series(const Group& group, uint64_t k) {
    if (node_series_told_[group.node]) return {};
    node_series_told_[group.node] = true;
    const bool has_segments = parts_->segments[group.node].count(spool::kNodeProcess) != 0;
    if (!has_segments && parts_->job.nodes[group.node].series.streams.empty()) return {};
    add(group, LocationType::kMetric, k, "Counters of " + parts_->job.nodes[group.node].host,
        spool::kNodeProcess, spool::kSeriesSlot);
    return {};
  }

  void add(const Group& group, LocationType type, uint64_t k, std::string name, uint32_t process,
           uint16_t slot) {
    parts_->model.locations.push_back({.id = (k << 32) | group.id,
                                       .group = group.id,
                                       .type = type,
                                       .name = std::move(name),
                                       .process = process,
                                       .slot = slot,
                                       .in_archive = type != LocationType::kSamples,
                                       .device_stream = 0,
                                       .device = kNoDevice});
  }

  void note_load(uint32_t node, const spool::ProcessIndex& index, uint16_t slot) {
    const clock::ClockMap& clock = parts_->clocks[node];
    for (const uint16_t context : {0, 1}) {
      for (const spool::BlockEntry& block : index.blocks(slot, context)) {
        parts_->load.add(clock.to_ns(block.first_ticks), clock.to_ns(block.last_ticks),
                         block.record_count);
      }
    }
  }

  void note_series(const spool::ProcessIndex& index) {
    for (const spool::BlockEntry& block : index.blocks(spool::kSeriesSlot, 0))
      parts_->series_record_count += block.record_count;
  }

  void note_range(uint32_t node, std::pair<uint64_t, uint64_t> ticks) {
    const clock::ClockMap& clock = parts_->clocks[node];
    if (ticks.first != 0) start_ns_ = std::min(start_ns_, clock.to_ns(ticks.first));
    if (ticks.second != 0) end_ns_ = std::max(end_ns_, clock.to_ns(ticks.second));
  }

  /// Without a process the job is what its agents saw: their first and last look at the clock.
  void note_agents() {
    for (const spool::Node& node : parts_->job.nodes) {
      if (node.clock.empty()) continue;
      start_ns_ = std::min(start_ns_, node.clock.front().realtime_ns);
      end_ns_ = std::max(end_ns_, node.clock.back().realtime_ns);
    }
  }

  JobModel* parts_;
  std::vector<bool> node_series_told_;
  uint64_t start_ns_ = UINT64_MAX;
  uint64_t end_ns_ = 0;
};

}  // namespace

Status build_locations(JobModel* parts, uint32_t otf2_locations) {
  LocationBuilder builder(parts);
  for (const Group& group : parts->model.groups) {
    Status status = builder.add_group(group);
    if (!status) return status;
    builder.note_process(group);
  }
  builder.finish(otf2_locations);
  return {};
}

}  // namespace aon::writers
