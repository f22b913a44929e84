/// The definitions of the archive: global ones in Score-P's order and numbering, and per location
/// the mapping of its local ids. Owner: Otf2Writer.   Thread: one.   Cost: proportional to
/// definitions.
#pragma once

#include <otf2/otf2.h>

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/result.h"
#include "writers/otf2/device_windows.h"
#include "writers/otf2/nccl_timelines.h"
#include "writers/writer.h"

namespace aon::writers::otf2 {

/// What was written for one location.
struct WrittenLocation {
  const Location* location;
  uint64_t event_count;
};

/// First and last time of any event.
struct TimeRange {
  uint64_t start_ns;
  uint64_t end_ns;
};

/// Paradigms whose regions are a group, in the archive's order.
constexpr Paradigm kGroupedParadigms[] = {Paradigm::kMpi, Paradigm::kUser, Paradigm::kNccl,
                                          Paradigm::kNvtx, Paradigm::kCuda};

/// Numbers of the groups in the archive. Groups of regions come first.
struct GroupIds {
  GroupIds(const Model& model, const NcclTimelines& timelines);

  uint32_t locations;                      ///< COMM_LOCATIONS
  uint32_t nccl_locations = 0;             ///< those of CUDA, where NCCL is not shown as MPI
  std::vector<uint32_t> of_communicators;  ///< by global id
  uint32_t first_rank_group;               ///< Model::rank_groups follow each other
  uint32_t first_device_group;             ///< COMM_LOCATIONS of CUDA, unless NCCL has it; groups
};

/// Windows of copies stand behind those of MPI and of NCCL.
inline uint32_t first_device_window(const Model& model, const NcclTimelines& timelines) {
  return static_cast<uint32_t>(model.windows.size() + timelines.communicators_with_window().size());
}

/// What OTF2 wants as room for the largest definition, but for texts. It clears as much for each
/// location's file of definitions.
uint64_t largest_definition_bytes(const Model& model, const NcclTimelines& timelines);

/// Mapping tables (regions, communicators, windows, groups) and clock offsets of one location.
/// `clock_error_ns` goes into the offsets as their standard deviation.
Status write_local_definitions(OTF2_DefWriter* file, const Model& model,
                               const NcclTimelines& timelines, const DeviceWindows& devices,
                               const GroupIds& groups, const Location& location,
                               const TimeRange& range, double clock_error_ns);

/// The counters at the borders of calls are one synchronous class, the first; every other metric is
/// a class of its own.
constexpr uint32_t kCounterClass = 0;
constexpr size_t kMaxClassMembers = 10;  ///< readers tell members by one digit
inline uint32_t metric_class(const Model& model, uint32_t metric) {
  return model.counter_count == 0 ? metric : metric - model.counter_count + 1;
}

/// The metric of waiting time: what a thread has waited so far, in seconds, told where a call that
/// waited begins and ends.
inline uint32_t wait_metric(const Model& model) {
  return static_cast<uint32_t>(model.metrics.size());
}

/// The same of a process in the operations of a communicator of NCCL. `has_waits`: wait_metric() is
/// there as well.
inline uint32_t nccl_wait_metric(const Model& model, bool has_waits) {
  return wait_metric(model) + (has_waits ? 1 : 0);
}

/// Which metrics of waiting time there are.
struct WaitMetrics {
  bool has_calls;  ///< wait_metric()
  bool has_nccl;   ///< nccl_wait_metric()
};

/// Writes all global definitions, once.
class GlobalDefinitions {
 public:
  GlobalDefinitions(OTF2_GlobalDefWriter* file, const Model& model, const NcclTimelines& timelines,
                    const DeviceWindows& devices, WaitMetrics waits)
      : file_(file),
        model_(model),
        timelines_(timelines),
        devices_(devices),
        groups_(model, timelines),
        waits_(waits) {}

  Status write(const std::vector<WrittenLocation>& locations, const TimeRange& range);

  /// Behind write(), of a node by its index in Job::nodes.
  uint32_t tree_node(uint32_t node) const { return tree_nodes_[node]; }

 private:
  void write_clock(const TimeRange& range);
  void write_paradigms();
  void write_attributes();
  void write_system_tree();
  void write_hardware(uint32_t node_id, const spool::Node& node);
  void write_node_properties(uint32_t tree_node, const spool::Node& node);
  void write_groups_of_locations(const std::vector<WrittenLocation>& locations);
  void write_group_properties(const Group& group);
  void write_device_properties(uint32_t id, const Group& group, uint32_t device);
  void write_devices(const std::vector<WrittenLocation>& locations);
  uint32_t location_group_of(const Location& location) const;
  void write_regions();
  void write_own_region(const std::string& name);
  void write_region_groups();
  void write_communicators();
  void write_communicator(uint32_t id, const GlobalCommunicator& communicator);
  void write_cartesian_topologies();
  void write_nccl_group(uint32_t id, const GlobalCommunicator& communicator);
  std::vector<uint64_t> member_indices(const GlobalCommunicator& communicator) const;
  void write_windows();
  std::vector<uint64_t> cuda_locations() const;
  void write_device_windows();
  void write_files();
  void write_metrics();
  void write_counters();
  void write_wait_metric(uint32_t id, const char* name, const char* description);
  void add_property(uint32_t tree_node, const char* name, const std::string& value);

  uint32_t string_id(const std::string& text);
  void note(OTF2_ErrorCode code) {
    if (code != OTF2_SUCCESS && error_ == OTF2_SUCCESS) error_ = code;
  }

  OTF2_GlobalDefWriter* file_;
  const Model& model_;
  const NcclTimelines& timelines_;
  const DeviceWindows& devices_;
  const GroupIds groups_;
  WaitMetrics waits_;
  OTF2_ErrorCode error_ = OTF2_SUCCESS;
  std::unordered_map<std::string, uint32_t> strings_;
  /// Location groups of the devices that have streams, by process and device (kNoDevice: NCCL's).
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> device_groups_;
  std::vector<uint32_t> tree_nodes_;  ///< by index in Job::nodes; folders of one host share one
  uint32_t next_tree_node_ = 0;
  std::vector<uint32_t> guesses_;  ///< who may be in a place nobody told: all groups
  size_t hardware_count_ = 0;
  uint32_t own_regions_written_ = 0;
};

}  // namespace aon::writers::otf2
