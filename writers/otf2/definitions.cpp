#include "writers/otf2/definitions.h"

#include <algorithm>
#include <memory>
#include <string_view>

#include "writers/devices/device_names.h"
#include "writers/otf2/archive.h"
#include "writers/otf2/ids.h"
#include "writers/otf2/nccl_events.h"

namespace aon::writers::otf2 {
namespace {

constexpr uint64_t kNsPerSecond = 1'000'000'000;

OTF2_RegionRole otf2_role(RegionRole role) {
  switch (role) {
    case RegionRole::kPointToPoint:
      return OTF2_REGION_ROLE_POINT2POINT;
    case RegionRole::kBarrier:
      return OTF2_REGION_ROLE_BARRIER;
    case RegionRole::kOneToAll:
      return OTF2_REGION_ROLE_COLL_ONE2ALL;
    case RegionRole::kAllToOne:
      return OTF2_REGION_ROLE_COLL_ALL2ONE;
    case RegionRole::kAllToAll:
      return OTF2_REGION_ROLE_COLL_ALL2ALL;
    case RegionRole::kCollectiveOther:
      return OTF2_REGION_ROLE_COLL_OTHER;
    case RegionRole::kRma:
      return OTF2_REGION_ROLE_RMA;
    case RegionRole::kFileIo:
      return OTF2_REGION_ROLE_FILE_IO;
    case RegionRole::kUser:
      return OTF2_REGION_ROLE_CODE;
    case RegionRole::kStep:
      return OTF2_REGION_ROLE_LOOP;
    case RegionRole::kFunction:
      break;
  }
  return OTF2_REGION_ROLE_FUNCTION;
}

/// What CUPTI tells comes as functions: copies are known by their name, as are times without
/// records, which are no time in CUDA.
OTF2_RegionRole otf2_role(const GlobalRegion& region) {
  if (region.paradigm == Paradigm::kCuda) {
    if (region.name.rfind("[CUDA memcpy", 0) == 0) return OTF2_REGION_ROLE_DATA_TRANSFER;
    if (region.name.rfind("[GPU work not recorded", 0) == 0) return OTF2_REGION_ROLE_ARTIFICIAL;
  }
  return otf2_role(region.role);
}

/// Streams without a device are work of the host, and stay with their process, but for NCCL's.
bool is_accelerators(const Model& model, const Location& location) {
  return is_of_device(location) || is_nccl_timeline(model, location);
}

struct ParadigmWords {
  OTF2_Paradigm paradigm;
  OTF2_ParadigmClass paradigm_class;
  const char* name;
};

/// NCCL has no paradigm in OTF2; its calls belong to the accelerator's.
ParadigmWords words_of(Paradigm paradigm) {
  switch (paradigm) {
    case Paradigm::kMpi:
      return {OTF2_PARADIGM_MPI, OTF2_PARADIGM_CLASS_PROCESS, "MPI"};
    case Paradigm::kCuda:
    case Paradigm::kNccl:
      return {OTF2_PARADIGM_CUDA, OTF2_PARADIGM_CLASS_ACCELERATOR, "CUDA"};
    case Paradigm::kAon:
      return {OTF2_PARADIGM_MEASUREMENT_SYSTEM, OTF2_PARADIGM_CLASS_PROCESS, "MEASUREMENT SYSTEM"};
    case Paradigm::kNvtx:
    case Paradigm::kUser:
      break;
  }
  return {OTF2_PARADIGM_USER, OTF2_PARADIGM_CLASS_PROCESS, "USER"};
}

/// Of the regions of a paradigm; OTF2 knows fewer paradigms.
const char* group_name(Paradigm paradigm) {
  if (paradigm == Paradigm::kNccl) return "NCCL";
  return paradigm == Paradigm::kNvtx ? "NVTX" : words_of(paradigm).name;
}

OTF2_LocationType otf2_type(const Model& model, const Location& location) {
  if (location.type == LocationType::kMetric) return OTF2_LOCATION_TYPE_METRIC;
  return is_accelerators(model, location) ? OTF2_LOCATION_TYPE_ACCELERATOR_STREAM
                                          : OTF2_LOCATION_TYPE_CPU_THREAD;
}

struct IdMapDeleter {
  void operator()(OTF2_IdMap* map) const { OTF2_IdMap_Free(map); }
};
using IdMap = std::unique_ptr<OTF2_IdMap, IdMapDeleter>;

IdMap make_map(const std::unordered_map<uint32_t, uint32_t>& local_to_global) {
  std::vector<std::pair<uint32_t, uint32_t>> sorted(local_to_global.begin(), local_to_global.end());
  std::sort(sorted.begin(), sorted.end());
  IdMap map(OTF2_IdMap_Create(OTF2_ID_MAP_SPARSE, sorted.size() + kOwnRegionCount + 1));
  for (const auto& [local, global] : sorted) OTF2_IdMap_AddIdPair(map.get(), local, global);
  return map;
}

using Ids = std::unordered_map<uint32_t, uint32_t>;  ///< global by local

/// Those of the process; a timeline of NCCL, of which it may have thousands, has its own alone.
Ids communicators_of(const Model& model, const Location& location) {
  const Group& group = model.groups[location.group];
  if (!is_nccl_timeline(model, location)) return group.communicator_map;
  const auto own = group.communicator_map.find(location.device_stream);
  return own == group.communicator_map.end() ? Ids() : Ids{*own};
}

/// Those of MPI, and of communicators of NCCL, whose windows have their ids.
Ids windows_of(const NcclTimelines& timelines, const Group& group, const Ids& communicators) {
  Ids all = group.window_map;
  for (const auto& [local, global] : communicators) {
    if (timelines.window(global) != kNoWindow) all.try_emplace(local, timelines.window(global));
  }
  return all;
}

/// Local ids of groups: those of epochs, and for each window all its members.
IdMap map_groups(const Model& model, const GroupIds& groups, const Group& group) {
  std::unordered_map<uint32_t, uint32_t> all;
  for (const auto& [local, global] : group.rank_group_map) {
    all[local] = groups.first_rank_group + global;
  }
  for (const auto& [local, global] : group.window_map) {
    all[members_of_window(local)] = groups.of_communicators[model.windows[global].communicator];
  }
  return make_map(all);
}

/// Tables of what only events of the process itself name.
OTF2_ErrorCode write_mappings(OTF2_DefWriter* file, const Model& model,
                              const NcclTimelines& timelines, const DeviceWindows& devices,
                              const GroupIds& groups, const Location& location) {
  const Group& group = model.groups[location.group];
  OTF2_ErrorCode code = OTF2_SUCCESS;
  const auto write = [&](OTF2_MappingType type, const IdMap& map) {
    if (code == OTF2_SUCCESS) code = OTF2_DefWriter_WriteMappingTable(file, type, map.get());
  };
  const Ids own_communicators = communicators_of(model, location);
  if (!own_communicators.empty()) write(OTF2_MAPPING_COMM, make_map(own_communicators));
  Ids own_windows = windows_of(timelines, group, own_communicators);
  if (const std::optional<uint32_t> place = devices.place_of(group.id))
    own_windows[kDeviceWindow] = first_device_window(model, timelines) + *place;
  if (!own_windows.empty()) write(OTF2_MAPPING_RMA_WIN, make_map(own_windows));
  if (!group.window_map.empty()) write(OTF2_MAPPING_GROUP, map_groups(model, groups, group));
  if (!group.file_map.empty()) write(OTF2_MAPPING_IO_HANDLE, make_map(group.file_map));
  if (!group.file_name_map.empty()) write(OTF2_MAPPING_IO_FILE, make_map(group.file_name_map));
  return code;
}

}  // namespace

/// That is a group, of all that communicate or of all regions, a number each, or a mapping table,
/// two for each id: of a process with 300 000 communicators it has 5 MB.
uint64_t largest_definition_bytes(const Model& model, const NcclTimelines& timelines) {
  constexpr uint64_t kNumberBytes = 9;
  const auto is_stream = [](const Location& location) {
    return location.in_archive && location.type == LocationType::kAcceleratorStream;
  };
  const auto stream_count = static_cast<uint64_t>(
      std::count_if(model.locations.begin(), model.locations.end(), is_stream));
  uint64_t id_count = 0;
  for (const Group& group : model.groups) {
    id_count = std::max({id_count, group.region_map.size(),
                         group.window_map.size() + group.communicator_map.size(),  // those of NCCL
                         group.rank_group_map.size() + 2 * group.window_map.size(),
                         group.file_map.size(), group.file_name_map.size()});
  }
  return kNumberBytes * std::max({model.groups.size() + stream_count, model.regions.size(),
                                  timelines.member_count(), 2 * id_count});
}

/// On a METRIC location are values, and regions of the archive's own.
Status write_local_definitions(OTF2_DefWriter* file, const Model& model,
                               const NcclTimelines& timelines, const DeviceWindows& devices,
                               const GroupIds& groups, const Location& location,
                               const TimeRange& range, double clock_error_ns) {
  const bool has_values = location.type == LocationType::kMetric;
  const IdMap regions = make_map(has_values ? Ids() : model.groups[location.group].region_map);
  for (uint32_t i = 0; i < kOwnRegionCount; ++i) {
    OTF2_IdMap_AddIdPair(regions.get(), kFirstOwnRegion + i, model.regions.size() + i);
  }
  OTF2_ErrorCode code = OTF2_DefWriter_WriteMappingTable(file, OTF2_MAPPING_REGION, regions.get());
  if (code == OTF2_SUCCESS && !has_values)
    code = write_mappings(file, model, timelines, devices, groups, location);
  for (const uint64_t time_ns : {range.start_ns, range.end_ns}) {
    if (code != OTF2_SUCCESS) break;
    code = OTF2_DefWriter_WriteClockOffset(file, time_ns, 0, clock_error_ns);
    if (range.start_ns == range.end_ns) break;  // readers refuse two of one time
  }
  return check(code, "write local definitions");
}

Status GlobalDefinitions::write(const std::vector<WrittenLocation>& locations,
                                const TimeRange& range) {
  write_clock(range);
  write_paradigms();
  write_attributes();
  write_system_tree();
  write_groups_of_locations(locations);
  write_regions();
  write_region_groups();
  write_communicators();
  write_cartesian_topologies();
  write_windows();
  write_device_windows();
  write_files();
  write_metrics();
  return check(error_, "write global definitions");
}

/// Strings are written at their first use; readers need them before they are named.
uint32_t GlobalDefinitions::string_id(const std::string& text) {
  const auto [entry, is_new] = strings_.try_emplace(text, static_cast<uint32_t>(strings_.size()));
  if (is_new) note(OTF2_GlobalDefWriter_WriteString(file_, entry->second, text.c_str()));
  return entry->second;
}

void GlobalDefinitions::write_clock(const TimeRange& range) {
  note(OTF2_GlobalDefWriter_WriteClockProperties(file_, kNsPerSecond, range.start_ns,
                                                 range.end_ns - range.start_ns, range.start_ns));
  string_id("");
  if (timelines_.is_empty()) return;
  for (const std::string& text : nccl_strings()) string_id(text);
}

void GlobalDefinitions::write_paradigms() {
  std::vector<OTF2_Paradigm> written;
  auto add = [&](Paradigm paradigm) {
    const ParadigmWords words = words_of(paradigm);
    if (std::find(written.begin(), written.end(), words.paradigm) != written.end()) return;
    written.push_back(words.paradigm);
    note(OTF2_GlobalDefWriter_WriteParadigm(file_, words.paradigm, string_id(words.name),
                                            words.paradigm_class));
  };
  add(Paradigm::kUser);
  add(Paradigm::kMpi);
  add(Paradigm::kAon);
  OTF2_AttributeValue value;
  value.stringRef = string_id("MPI Communicator ${id}");
  note(OTF2_GlobalDefWriter_WriteParadigmProperty(file_, OTF2_PARADIGM_MPI,
                                                  OTF2_PARADIGM_PROPERTY_COMM_NAME_TEMPLATE,
                                                  OTF2_TYPE_STRING, value));
  for (const GlobalRegion& region : model_.regions) add(region.paradigm);
}

void GlobalDefinitions::write_attributes() {
  struct Words {
    const char* name;
    const char* description;
    OTF2_Type type;
  };
  static constexpr char kExternalText[] =
      "External correlation id of this kind that the program gave the call (CUPTI)";
  static constexpr Words kWords[kAttributeCount] = {
      {"lost", "Records lost in this interval", OTF2_TYPE_UINT64},
      {"weight", "Calls of this region that this one stands for", OTF2_TYPE_UINT32},
      {"open at end", "The call had not returned when its thread ended", OTF2_TYPE_UINT8},
      {"failed", "The call returned an error", OTF2_TYPE_UINT8},
      {"value", "Value of the mark or region", OTF2_TYPE_UINT64},
      {"Offset", "Where in the file the operation begins, in bytes", OTF2_TYPE_UINT64},
      {"signed value", "Value of the mark or region", OTF2_TYPE_INT64},
      {"real value", "Value of the mark or region", OTF2_TYPE_DOUBLE},
      {"step", "Number of the step", OTF2_TYPE_INT64},
      {"range", "Number of the range that begins or ends here", OTF2_TYPE_UINT64},
      {"duration", "Nanoseconds since the range began", OTF2_TYPE_UINT64},
      {"nccl.seq", "NCCL's number by communicator and function", OTF2_TYPE_UINT64},
      {"nccl.api_seq", "Number of the call on its communicator", OTF2_TYPE_UINT64},
      {"nccl.algo", "Algorithm", OTF2_TYPE_STRING},
      {"nccl.proto", "Protocol", OTF2_TYPE_STRING},
      {"nccl.dtype", "Type of the elements", OTF2_TYPE_STRING},
      {"nccl.nchannels", "Channels that work on it", OTF2_TYPE_UINT8},
      {"nccl.gpu_timed", "1: its times are the GPU's, 0: the host's", OTF2_TYPE_UINT8},
      {"nccl.busbw", "Bus bandwidth as of nccl-tests, 1e9 bytes per second", OTF2_TYPE_DOUBLE},
      {"cut by a loss", "The end of the region was lost, it took longer", OTF2_TYPE_UINT8},
      {"correlation",
       "Work of a device and the call that started it have the same in their process",
       OTF2_TYPE_UINT32},
      {"external id UNKNOWN", kExternalText, OTF2_TYPE_UINT64},
      {"external id OPENACC", kExternalText, OTF2_TYPE_UINT64},
      {"external id CUSTOM0", kExternalText, OTF2_TYPE_UINT64},
      {"external id CUSTOM1", kExternalText, OTF2_TYPE_UINT64},
      {"external id CUSTOM2", kExternalText, OTF2_TYPE_UINT64},
  };
  for (uint32_t id = 0; id < kAttributeCount; ++id) {
    note(OTF2_GlobalDefWriter_WriteAttribute(file_, id, string_id(kWords[id].name),
                                             string_id(kWords[id].description), kWords[id].type));
  }
}

void GlobalDefinitions::write_groups_of_locations(const std::vector<WrittenLocation>& locations) {
  for (const Group& group : model_.groups) {
    note(OTF2_GlobalDefWriter_WriteLocationGroup(
        file_, group.id, string_id(group.name), OTF2_LOCATION_GROUP_TYPE_PROCESS,
        tree_nodes_[group.node], OTF2_UNDEFINED_LOCATION_GROUP));
    write_group_properties(group);
  }
  write_devices(locations);
  for (const WrittenLocation& written : locations) {
    const Location& location = *written.location;
    note(OTF2_GlobalDefWriter_WriteLocation(file_, location.id, string_id(location.name),
                                            otf2_type(model_, location), written.event_count,
                                            location_group_of(location)));
  }
}

/// A group of locations holds threads or streams, not both: each device of a process is a group
/// that the process made, and so are its communicators of NCCL together.
void GlobalDefinitions::write_devices(const std::vector<WrittenLocation>& locations) {
  for (const WrittenLocation& written : locations) {
    const Location& location = *written.location;
    if (!is_accelerators(model_, location)) continue;
    const auto id = static_cast<uint32_t>(model_.groups.size() + device_groups_.size());
    const bool is_new = device_groups_.try_emplace({location.group, location.device}, id).second;
    if (!is_new) continue;
    const Group& group = model_.groups[location.group];
    const bool is_nccl = location.device == kNoDevice;
    const std::string name =
        (is_nccl ? "NCCL of " : "GPU " + std::to_string(location.device) + " of ") + group.name;
    note(OTF2_GlobalDefWriter_WriteLocationGroup(file_, id, string_id(name),
                                                 OTF2_LOCATION_GROUP_TYPE_ACCELERATOR,
                                                 tree_nodes_[group.node], group.id));
    if (!is_nccl) write_device_properties(id, group, location.device);
  }
}

uint32_t GlobalDefinitions::location_group_of(const Location& location) const {
  if (!is_accelerators(model_, location)) return location.group;
  const auto found = device_groups_.find({location.group, location.device});
  return found == device_groups_.end() ? location.group : found->second;
}

void GlobalDefinitions::write_regions() {
  uint32_t id = 0;
  for (const GlobalRegion& region : model_.regions) {
    const ParadigmWords words = words_of(region.paradigm);
    const uint32_t name = string_id(region.name);
    const uint32_t file = string_id(words.paradigm == OTF2_PARADIGM_USER ? "" : words.name);
    note(OTF2_GlobalDefWriter_WriteRegion(file_, id++, name, name, string_id(""), otf2_role(region),
                                          words.paradigm, OTF2_REGION_FLAG_NONE, file, 0, 0));
  }
  for (uint32_t reason = 0; reason < kLossReasonCount; ++reason) {
    const char* text = loss_reason_name(static_cast<LossReason>(reason));
    write_own_region(std::string("[lost: ") + text + "]");
  }
  write_own_region("[no records]");
}

void GlobalDefinitions::write_own_region(const std::string& name) {
  const uint32_t id = static_cast<uint32_t>(model_.regions.size()) + own_regions_written_++;
  note(OTF2_GlobalDefWriter_WriteRegion(
      file_, id, string_id(name), string_id(name), string_id(""), OTF2_REGION_ROLE_ARTIFICIAL,
      OTF2_PARADIGM_MEASUREMENT_SYSTEM, OTF2_REGION_FLAG_NONE, string_id("AON"), 0, 0));
}

/// One group of regions per paradigm, which viewers use as function groups.
void GlobalDefinitions::write_region_groups() {
  uint32_t group = 0;
  for (const Paradigm paradigm : kGroupedParadigms) {
    std::vector<uint64_t> members;
    for (size_t id = 0; id < model_.regions.size(); ++id) {
      if (model_.regions[id].paradigm == paradigm) members.push_back(id);
    }
    if (members.empty()) continue;
    const char* name = group_name(paradigm);
    note(OTF2_GlobalDefWriter_WriteGroup(file_, group++, string_id(name), OTF2_GROUP_TYPE_REGIONS,
                                         OTF2_PARADIGM_UNKNOWN, OTF2_GROUP_FLAG_NONE,
                                         static_cast<uint32_t>(members.size()), members.data()));
  }
}

/// One asynchronous class per metric, recorded by METRIC locations: ViTE knows no instances, and
/// samples of different metrics come at different times.
void GlobalDefinitions::write_metrics() {
  write_counters();
  for (uint32_t id = model_.counter_count; id < model_.metrics.size(); ++id) {
    const GlobalMetric& metric = model_.metrics[id];
    const OTF2_MetricMode mode = metric.mode == MetricMode::kAccumulated
                                     ? OTF2_METRIC_ACCUMULATED_START
                                     : OTF2_METRIC_ABSOLUTE_POINT;
    note(OTF2_GlobalDefWriter_WriteMetricMember(
        file_, id, string_id(metric.name), string_id(metric.description), OTF2_METRIC_TYPE_OTHER,
        mode, OTF2_TYPE_DOUBLE, OTF2_BASE_DECIMAL, 0, string_id(metric.unit)));
  }
  for (uint32_t member = model_.counter_count; member < model_.metrics.size(); ++member) {
    note(OTF2_GlobalDefWriter_WriteMetricClass(file_, metric_class(model_, member), 1, &member,
                                               OTF2_METRIC_ASYNCHRONOUS,
                                               OTF2_RECORDER_KIND_ABSTRACT));
  }
  if (waits_.has_calls)
    write_wait_metric(wait_metric(model_), "waiting time", "spent in MPI calls for late partners");
  if (waits_.has_nccl) {
    write_wait_metric(nccl_wait_metric(model_, waits_.has_calls), "NCCL waiting time",
                      "spent on the GPU in operations of NCCL for late members");
  }
}

void GlobalDefinitions::write_counters() {
  std::vector<OTF2_MetricMemberRef> members;
  for (uint32_t id = 0; id < model_.counter_count; ++id) {
    const GlobalMetric& metric = model_.metrics[id];
    note(OTF2_GlobalDefWriter_WriteMetricMember(
        file_, id, string_id(devices::name_in_provider(metric)), string_id(metric.description),
        OTF2_METRIC_TYPE_OTHER, OTF2_METRIC_ACCUMULATED_START, OTF2_TYPE_UINT64, OTF2_BASE_DECIMAL,
        0, string_id(metric.unit)));
    members.push_back(id);
  }
  if (members.empty()) return;
  note(OTF2_GlobalDefWriter_WriteMetricClass(
      file_, kCounterClass, static_cast<uint8_t>(std::min(members.size(), kMaxClassMembers)),
      members.data(), OTF2_METRIC_SYNCHRONOUS_STRICT, OTF2_RECORDER_KIND_CPU));
}

void GlobalDefinitions::write_wait_metric(uint32_t id, const char* name, const char* description) {
  note(OTF2_GlobalDefWriter_WriteMetricMember(
      file_, id, string_id(name), string_id(description), OTF2_METRIC_TYPE_OTHER,
      OTF2_METRIC_ACCUMULATED_START, OTF2_TYPE_DOUBLE, OTF2_BASE_DECIMAL, 0, string_id("s")));
  note(OTF2_GlobalDefWriter_WriteMetricClass(file_, metric_class(model_, id), 1, &id,
                                             OTF2_METRIC_ASYNCHRONOUS,
                                             OTF2_RECORDER_KIND_ABSTRACT));
}

}  // namespace aon::writers::otf2
