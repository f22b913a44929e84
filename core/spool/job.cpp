#include "core/spool/job.h"

#include <aon/record.h>
#include <aon/ring.h>

#include <algorithm>
#include <system_error>

#include "core/base/file.h"
#include "core/spool/block_reader.h"
#include "core/spool/definitions.h"
#include "core/spool/files.h"
#include "core/spool/text.h"

namespace aon::spool {
namespace {

template <class Enum>
Enum bounded(Enum value, Enum largest, Enum otherwise) {
  return value > largest ? otherwise : value;
}

/// Applies definitions to a node, in file order.
class NodeBuilder {
 public:
  explicit NodeBuilder(Node* node) : node_(*node) {}

  void apply(uint32_t process, const DefinitionView& view);

 private:
  template <class T>
  std::optional<T> take(const DefinitionView& view) {
    struct_bytes_ = sizeof(T);
    payload_ = view.payload;
    return definition_struct<T>(view.payload);
  }
  std::string_view string(size_t index) const {
    return definition_string(payload_, struct_bytes_, index);
  }
  std::string text(size_t index) const { return clean_text(string(index)); }
  Process& process(uint32_t number);

  void apply_of_process(uint32_t number, const DefinitionView& view);
  void apply_communicator(uint32_t number, const DefinitionView& view);
  void apply_window(uint32_t number, const DefinitionView& view);
  void apply_nccl_sums(uint32_t number, const DefinitionView& view);
  void apply_provider(uint32_t number, const DefinitionView& view);
  void apply_metric(uint32_t number, const DefinitionView& view);
  void apply_of_agent(uint32_t number, const DefinitionView& view);
  void apply_node(const DefinitionView& view);
  void apply_start(const DefinitionView& view);
  void apply_loss(const DefinitionView& view);
  void apply_budget(const DefinitionView& view);
  void apply_stream(const StreamDefinition& stream);
  void apply_stack(const DefinitionView& view);
  void apply_of_samples(const DefinitionView& view);

  Node& node_;
  std::span<const uint8_t> payload_;
  size_t struct_bytes_ = 0;
};

Process& NodeBuilder::process(uint32_t number) {
  const auto [at, is_new] = node_.processes.try_emplace(number);
  if (is_new) {
    at->second.start.process = number;
    at->second.start.rank = -1;
  }
  return at->second;
}

void NodeBuilder::apply(uint32_t number, const DefinitionView& view) {
  if (view.type == DefinitionType::kNcclSums) {
    if (number != kNodeProcess) apply_nccl_sums(number, view);
  } else if (static_cast<uint32_t>(view.type) < static_cast<uint32_t>(DefinitionType::kNode)) {
    apply_of_process(number, view);
  } else {
    apply_of_agent(number, view);
  }
}

void NodeBuilder::apply_of_process(uint32_t number, const DefinitionView& view) {
  switch (view.type) {
    case DefinitionType::kRegion:
      if (const auto d = take<RegionDefinition>(view); d && number != kNodeProcess) {
        process(number).regions[d->id] = {
            text(0), bounded(d->role, RegionRole::kStep, RegionRole::kFunction),
            bounded(d->paradigm, Paradigm::kNvtx, Paradigm::kUser)};
      }
      break;
    case DefinitionType::kCommunicator:
    case DefinitionType::kCommunicatorName:
    case DefinitionType::kCartesian:
    case DefinitionType::kNeighbors:
      if (number != kNodeProcess) apply_communicator(number, view);
      break;
    case DefinitionType::kWindow:
    case DefinitionType::kWindowName:
      if (number != kNodeProcess) apply_window(number, view);
      break;
    case DefinitionType::kGroup:
      if (const auto d = take<GroupDefinition>(view); d && number != kNodeProcess) {
        process(number).rank_groups[d->id] = definition_ranks(view.payload, *d);
      }
      break;
    case DefinitionType::kIdentity:
      if (const auto d = take<IdentityDefinition>(view); d && number != kNodeProcess) {
        process(number).identity = *d;
      }
      break;
    case DefinitionType::kProvider:
      apply_provider(number, view);
      break;
    case DefinitionType::kMetric:
      apply_metric(number, view);
      break;
    case DefinitionType::kFile:
      if (const auto d = take<FileDefinition>(view); d && number != kNodeProcess) {
        process(number).files[d->id] = {*d, text(0)};
      }
      break;
    case DefinitionType::kDevice:
      if (const auto d = take<DeviceDefinition>(view)) {
        auto& devices = number == kNodeProcess ? node_.devices : process(number).devices;
        devices[d->id] = {*d, text(0), text(1)};
      }
      break;
    case DefinitionType::kDeviceStream:
      if (const auto d = take<DeviceStreamDefinition>(view); d && number != kNodeProcess) {
        process(number).device_streams[d->id] = {*d, text(0)};
      }
      break;
    case DefinitionType::kThreadName:
      if (const auto d = take<IdDefinition>(view); d && number != kNodeProcess) {
        process(number).thread_names[d->id] = text(0);
      }
      break;
    default:  // ...Free and ...Close: ids are never used again; others: a newer format
      break;
  }
}

void NodeBuilder::apply_communicator(uint32_t number, const DefinitionView& view) {
  auto& communicators = process(number).communicators;
  if (view.type == DefinitionType::kCommunicatorName) {
    const auto d = take<IdDefinition>(view);
    const auto found = d ? communicators.find(d->id) : communicators.end();
    if (found != communicators.end()) found->second.name = text(0);
    return;
  }
  if (view.type == DefinitionType::kCartesian) {
    const auto d = take<CartesianDefinition>(view);
    const auto found = d ? communicators.find(d->communicator_id) : communicators.end();
    if (found != communicators.end())
      found->second.cartesian = Cartesian{definition_extents(view.payload, *d), d->periodic};
    return;
  }
  if (view.type == DefinitionType::kNeighbors) {
    const auto d = take<NeighborsDefinition>(view);
    const auto found = d ? communicators.find(d->communicator_id) : communicators.end();
    if (found != communicators.end()) found->second.sources = definition_sources(view.payload, *d);
    return;
  }
  auto d = take<CommunicatorDefinition>(view);
  if (!d) return;
  d->kind = bounded(d->kind, CommunicatorKind::kNccl, CommunicatorKind::kIntra);
  communicators[d->id] = {*d, text(0)};
  if (d->kind == CommunicatorKind::kNccl) communicators[d->id].nccl_id = text(1);
}

void NodeBuilder::apply_window(uint32_t number, const DefinitionView& view) {
  auto& windows = process(number).windows;
  if (view.type == DefinitionType::kWindowName) {
    const auto d = take<IdDefinition>(view);
    const auto found = d ? windows.find(d->id) : windows.end();
    if (found != windows.end()) found->second.name = text(0);
    return;
  }
  auto d = take<WindowDefinition>(view);
  if (!d) return;
  d->flavour = bounded(d->flavour, WindowFlavour::kDynamic, WindowFlavour::kCreate);
  windows[d->id] = {*d, text(0)};
}

void NodeBuilder::apply_nccl_sums(uint32_t number, const DefinitionView& view) {
  const auto d = take<NcclSumsDefinition>(view);
  if (!d) return;
  process(number).nccl_sums[{d->communicator_id, d->region_id, d->log2_bytes}] = {
      *d, definition_counts(view.payload, *d)};
}

void NodeBuilder::apply_provider(uint32_t number, const DefinitionView& view) {
  const auto d = take<ProviderDefinition>(view);
  if (!d) return;
  const Provider provider{text(0), bounded(d->state, ProviderState::kDegraded, ProviderState::kOff),
                          text(1), text(2)};
  auto& providers = number == kNodeProcess ? node_.providers : process(number).providers;
  providers[provider.name] = provider;
}

void NodeBuilder::apply_metric(uint32_t number, const DefinitionView& view) {
  auto d = take<MetricDefinition>(view);
  if (!d) return;
  d->mode = bounded(d->mode, MetricMode::kAbsolute, MetricMode::kAbsolute);
  auto& metrics = number == kNodeProcess ? node_.metrics : process(number).metrics;
  metrics[d->id] = {*d, text(0), text(1), text(2)};
}

void NodeBuilder::apply_of_agent(uint32_t number, const DefinitionView& view) {
  switch (view.type) {
    case DefinitionType::kNode:
      apply_node(view);
      break;
    case DefinitionType::kProcessStart:
      apply_start(view);
      break;
    case DefinitionType::kProcessExit:
      if (const auto d = take<ProcessExitDefinition>(view)) process(d->process).exit = *d;
      break;
    case DefinitionType::kClock:
      if (const auto d = take<ClockDefinition>(view)) node_.clock.push_back(*d);
      break;
    case DefinitionType::kClockPing:
      if (const auto d = take<ClockPingDefinition>(view))
        node_.clock_pings.push_back({*d, text(0)});
      break;
    case DefinitionType::kStream:
      if (const auto d = take<StreamDefinition>(view)) apply_stream(*d);
      break;
    case DefinitionType::kCounts:
      if (const auto d = take<CountsDefinition>(view)) {
        process(d->process).counts[{d->slot, d->region}] = d->call_count;
      }
      break;
    case DefinitionType::kOpenCall:
      if (const auto d = take<OpenCallDefinition>(view))
        process(d->process).open_calls[d->slot] = *d;
      break;
    case DefinitionType::kStack:
      apply_stack(view);
      break;
    case DefinitionType::kEviction:
      apply_loss(view);
      break;
    case DefinitionType::kTopology:
      node_.topology_xml = definition_string(view.payload, 0, 0);
      break;
    case DefinitionType::kBinding:
      if (number != kNodeProcess) {
        process(number).binding = clean_text(definition_string(view.payload, 0, 0));
      }
      break;
    case DefinitionType::kBudget:
      apply_budget(view);
      break;
    case DefinitionType::kUsage:
      if (const auto d = take<UsageDefinition>(view)) node_.usage = *d;
      break;
    default:
      apply_of_samples(view);
      break;
  }
}

void NodeBuilder::apply_stream(const StreamDefinition& stream) {
  if (stream.slot == kDefinitionSlot) {
    auto& refused = stream.process == kNodeProcess ? node_.refused_definitions
                                                   : process(stream.process).refused_definitions;
    refused = {stream.refused, stream.stream_cut};
    return;
  }
  process(stream.process).streams[{stream.slot, stream.context}] = stream;
}

void NodeBuilder::apply_stack(const DefinitionView& view) {
  const auto d = take<StackDefinition>(view);
  if (!d) return;
  Stack stack{*d, {}, text(1)};
  std::string_view lines = definition_string(view.payload, sizeof(StackDefinition), 0);
  while (!lines.empty()) {
    const size_t end = std::min(lines.find('\n'), lines.size());
    if (end != 0) stack.frames.push_back(clean_text(lines.substr(0, end)));
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  process(d->process).stacks[d->tid] = std::move(stack);
}

void NodeBuilder::apply_budget(const DefinitionView& view) {
  const auto d = take<BudgetDefinition>(view);
  if (!d) return;
  auto& changes =
      d->process == kNodeProcess ? node_.budget_changes : process(d->process).budget_changes;
  changes.push_back(*d);
}

void NodeBuilder::apply_of_samples(const DefinitionView& view) {
  switch (view.type) {
    case DefinitionType::kMapping:
      if (auto d = take<MappingDefinition>(view)) {
        d->build_id_bytes = std::min<uint8_t>(d->build_id_bytes, sizeof(d->build_id));
        process(d->process).mappings[d->id] = {*d, std::string(string(0))};
      }
      break;
    case DefinitionType::kCallPaths:
      if (const auto d = take<CallPathsDefinition>(view)) {
        process(d->process)
            .call_paths.push_back({d->first_id, definition_call_paths(view.payload, *d)});
      }
      break;
    case DefinitionType::kTaskName:
      if (const auto d = take<TaskNameDefinition>(view)) {
        process(d->process).task_names[d->tid] = text(0);
      }
      break;
    case DefinitionType::kSampling:
      if (auto d = take<SamplingDefinition>(view)) {
        d->source = bounded(d->source, SamplingSource::kTimer, SamplingSource::kTimer);
        process(d->process).sampling.push_back(*d);
        process(d->process).sampled_event = text(0);
      }
      break;
    case DefinitionType::kJitSymbol:
      if (const auto d = take<JitSymbolDefinition>(view)) {
        process(d->process).jit_symbols[d->start] = {d->end, text(0)};
      }
      break;
    default:  // of a newer format
      break;
  }
}

void NodeBuilder::apply_node(const DefinitionView& view) {
  const auto d = take<NodeDefinition>(view);
  if (!d) return;
  node_.definition = *d;
  if (std::string host = text(0); !host.empty()) node_.host = std::move(host);
  if (std::string launch = text(1); !launch.empty()) node_.launch_id = std::move(launch);
}

void NodeBuilder::apply_start(const DefinitionView& view) {
  const auto d = take<ProcessStartDefinition>(view);
  if (!d) return;
  Process& started = process(d->process);
  started.start = *d;
  started.program = text(0);
}

void NodeBuilder::apply_loss(const DefinitionView& view) {
  auto d = take<LossDefinition>(view);
  if (!d) return;
  if (d->reason >= kLossReasonCount) d->reason = static_cast<uint32_t>(LossReason::kDamaged);
  process(d->process).losses.push_back(*d);
}

/// Reads the definitions file of one node. A missing one is no error: the rest can be read.
Status read_definitions(Node* node, Job* job) {
  Result<BlockFileReader> reader =
      BlockFileReader::open((node->folder / kDefinitionsFile).string());
  if (!reader && reader.error().code == Code::kNotFound) return {};
  if (!reader) return reader.error();
  NodeBuilder builder(node);
  BlockPosition position;
  uint64_t damaged_blocks = 0;
  bool is_torn = false;  // the last block so far
  for (;;) {
    const Result<bool> more = reader->next(&position);
    if (!more) return more.error();
    if (!*more) break;
    const Result<std::span<const uint8_t>> payload = reader->payload();
    is_torn = !payload && payload.error().code == Code::kDamaged;
    if (is_torn) continue;
    if (!payload) return payload.error();
    DefinitionCursor cursor(*payload);
    while (const auto view = cursor.next()) builder.apply(position.header.process, *view);
    if (cursor.is_damaged()) ++damaged_blocks;
  }
  // Its series have a stream, but it is no process.
  if (auto own = node->processes.extract(kNodeProcess); !own.empty())
    node->series = std::move(own.mapped());
  damaged_blocks += reader->scan().damaged_blocks;
  job->damaged_blocks += damaged_blocks;
  job->has_damaged_definitions |= damaged_blocks > (is_torn ? 1 : 0);
  return {};
}

/// Processes whose definitions are gone still have their segments. The first segment of a process
/// may be there before its definitions are.
void add_processes_of_segments(const std::map<uint32_t, std::vector<SegmentName>>& segments,
                               Node* node, Job* job) {
  const bool is_told = !node->processes.empty();
  for (const auto& [number, names] : segments) {
    if (number == kNodeProcess) continue;
    const auto [at, is_new] = node->processes.try_emplace(number);
    if (!is_new) continue;
    at->second.start.process = number;
    at->second.start.rank = -1;
    if (is_told || job->has_damaged_definitions) continue;
    ++job->damaged_blocks;
    job->has_damaged_definitions = true;
  }
}

/// What is damaged is said as the agent says what it could not find out.
void read_topology(Node* node) {
  const auto text = read_text_file((node->folder / kTopologyFile).string(), kMaxTopologyBytes);
  if (!text) return;
  Result<std::string> xml = topology_xml(*text);
  if (xml) {
    node->topology_xml = std::move(*xml);
    return;
  }
  node->providers["topology"] = {"topology", ProviderState::kDegraded, xml.error().message,
                                 "lstopo shows what the node has"};
}

}  // namespace

Result<Job> read_job(const std::filesystem::path& folder) {
  Job job;
  job.folder = folder;
  std::error_code error;
  const std::filesystem::path spool = folder / "spool";
  std::vector<std::filesystem::path> node_folders;
  std::filesystem::directory_iterator at(spool, error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    const bool is_unfinished = at->path().filename().native().front() == '.';  // see joining
    std::error_code ignored;  // of a link to where only that node gets (find_missing_links())
    if (at->is_directory(ignored) && !is_unfinished) node_folders.push_back(at->path());
  }
  if (error)
    return Error{Code::kNotFound, "read folder " + spool.string() + ": " + error.message()};
  std::sort(node_folders.begin(), node_folders.end());
  for (const std::filesystem::path& path : node_folders) {
    Node node{};
    node.folder = path;
    node.host = path.filename().string();
    const auto segments = list_segments(node.folder);  // before what is told of them
    if (!segments) return segments.error();
    if (Status status = read_definitions(&node, &job); !status) return status.error();
    add_processes_of_segments(*segments, &node, &job);
    std::sort(node.clock.begin(), node.clock.end(),
              [](const auto& a, const auto& b) { return a.ticks < b.ticks; });
    std::sort(node.clock_pings.begin(), node.clock_pings.end(), [](const auto& a, const auto& b) {
      return a.definition.sent_ticks < b.definition.sent_ticks;
    });
    read_topology(&node);
    job.nodes.push_back(std::move(node));
  }
  return job;
}

}  // namespace aon::spool
