// What the encoder does with definitions in fragments, and how it takes over from a dead worker.
#include <fcntl.h>

#include <algorithm>
#include <cstring>

#include "core/agent/encoder.h"
#include "core/agent/folder_scan.h"
#include "core/base/file.h"
#include "core/spool/block_reader.h"
#include "core/spool/process_index.h"

namespace aon::agent {
namespace {

bool is_state_of_mpi(DefinitionType type, const std::vector<uint8_t>& payload) {
  static constexpr char kName[] = "mpi";
  return type == DefinitionType::kProvider &&
         payload.size() >= sizeof(ProviderDefinition) + sizeof(kName) &&
         std::memcmp(payload.data() + sizeof(ProviderDefinition), kName, sizeof(kName)) == 0;
}

/// A call of MPI begins, a process says who it is there, or how much of it is recorded.
bool is_word_on_mpi(DefinitionType type, const std::vector<uint8_t>& payload) {
  RegionDefinition region{};
  if (type == DefinitionType::kRegion && payload.size() >= sizeof(region))
    std::memcpy(&region, payload.data(), sizeof(region));
  return type == DefinitionType::kIdentity || is_state_of_mpi(type, payload) ||
         (type == DefinitionType::kRegion && region.paradigm == Paradigm::kMpi);
}

}  // namespace

void Encoder::take_definitions(uint32_t process, const StagingEntry& entry) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(&entry + 1);
  for (uint32_t at = 0; at + kSlotBytes <= entry.record_bytes;) {
    RecordHead head;
    std::memcpy(&head, bytes + at, sizeof(head));
    const uint32_t record_bytes = head.slot_count * kSlotBytes;
    if (!is_valid(head) || at + record_bytes > entry.record_bytes) return;
    if (head.kind == RecordKind::kDefinition &&
        !take_fragment(process, head, {bytes + at + kSlotBytes, record_bytes - kSlotBytes})) {
      StreamLog& log = stream(entry.stream);
      ++log.progress().stream_cut;
      log.is_changed = true;
    }
    at += record_bytes;
  }
}

bool Encoder::take_fragment(uint32_t process, const RecordHead& head,
                            std::span<const uint8_t> bytes) {
  Assembly& assembly = assemblies_[process];
  if (head.a64 == 0) {
    assembly = {head.id, std::min(head.a32, kMaxDefinitionBytes), {}};
  } else if (head.a64 != assembly.bytes.size() || head.id != assembly.type) {
    assembly = {};  // the rest of something that was cut
    return true;
  }
  const size_t room = assembly.total_bytes - assembly.bytes.size();
  const size_t take = std::min(room, bytes.size());
  assembly.bytes.insert(assembly.bytes.end(), bytes.begin(), bytes.begin() + take);
  if (assembly.bytes.size() < assembly.total_bytes) return true;
  // Only what a process may define: the agent's own types would let it speak for others.
  const bool is_allowed = assembly.type != 0 && assembly.type < 32;
  const bool has_room = !is_allowed || !log_.is_full();
  if (is_allowed && has_room) log_.of(process).add(assembly.type, assembly.bytes);
  if (is_word_on_mpi(static_cast<DefinitionType>(assembly.type), assembly.bytes)) {
    const uint32_t index = process - state_->header().first_process;
    if (index < state_->sizes().processes)
      state_->process(index).has_told_mpi.store(1, std::memory_order_relaxed);
  }
  assembly = {};
  return has_room;
}

/// What the agent says of a process's MPI calls, and the process has said something itself since.
bool Encoder::is_outdated(const InboxDefinition& definition) const {
  const uint32_t index = definition.process - state_->header().first_process;
  return index < state_->sizes().processes &&
         is_state_of_mpi(definition.type, definition.payload) &&
         state_->process(index).has_told_mpi.load(std::memory_order_relaxed) != 0;
}

/// `cell` is of a slot 0: what its ring and the file refused.
void Encoder::count_refused_definitions(uint32_t cell) {
  const StreamCell& from = state_->stream(cell);
  const uint64_t refused = from.refused.load(std::memory_order_relaxed);
  const uint64_t dropped = log_.take_dropped(from.process);
  const bool is_known = streams_.count(cell) != 0;
  if (!is_known && refused == 0 && dropped == 0) return;
  StreamLog& log = stream(cell);
  if (refused != log.progress().refused || dropped != 0) {
    log.progress().refused = refused;  // the process may have had its way later
    log.progress().stream_cut += dropped;
    log.is_changed = true;
  }
  if (log.is_changed) log_.of(log.process()).add(DefinitionType::kStream, log.definition());
}

/// The node's own; a process has a cell from its first definition on.
void Encoder::write_refused_definitions() {
  const uint64_t dropped = log_.take_dropped(spool::kNodeProcess);
  if (dropped == 0) return;
  const uint32_t cell = state_->find_or_add_stream(spool::kNodeProcess, kDefinitionSlot, 0);
  if (cell == kNoCell) return;
  StreamLog& log = stream(cell);
  log.progress().stream_cut += dropped;
  log.is_changed = true;
  log_.of(spool::kNodeProcess).add(DefinitionType::kStream, log.definition());
}

void Encoder::save_assemblies(uint64_t commit) {
  for (auto& [process, assembly] : assemblies_) {
    const uint32_t index = process - state_->header().first_process;
    if (index >= state_->sizes().processes) continue;
    auto& saved = state_->process(index).partial;
    if (assembly.bytes.empty() && saved.at(commit).byte_count == 0) continue;
    PartialDefinition partial{};
    partial.type = assembly.type;
    partial.total_bytes = assembly.total_bytes;
    partial.byte_count = static_cast<uint32_t>(assembly.bytes.size());
    std::copy(assembly.bytes.begin(), assembly.bytes.end(), partial.bytes);
    saved.set(commit, partial);
  }
}

void Encoder::resume_tail() noexcept {
  state_->discard_uncommitted();
  progress_ = state_->header().progress.at(state_->commit());
  read_ = progress_.staging_tail;
  tail_.store(read_, std::memory_order_release);  // pairs with agent:tail
  samples_read_ = progress_.sample_tail;
  state_->header().sample_tail.store(samples_read_,
                                     std::memory_order_release);  // pairs with agent:sampled
}

Status Encoder::restore() {
  const uint64_t commit = state_->commit();
  if (Status status = segments_.restore(settings_.folder); !status) return status;
  if (Status status = log_.restore(settings_.folder); !status) return status;
  if (progress_.evicting != 0) {
    spool::SegmentName name;
    name.process = progress_.evicted_process;
    if (progress_.evicted_slot != kSharedFile)
      name.slot = static_cast<uint16_t>(progress_.evicted_slot);
    name.segment = progress_.evicted_segment;
    segments_.remove(name);
    progress_.evicting = 0;
  }
  const uint32_t count = state_->header().process_count.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < count; ++i) {
    ProcessCell& cell = state_->process(i);
    if (cell.written.at(commit) == static_cast<uint32_t>(ProcessPhase::kFinished))
      cell.phase.store(static_cast<uint32_t>(ProcessPhase::kFinished), std::memory_order_relaxed);
    const PartialDefinition& partial = cell.partial.at(commit);
    if (partial.byte_count == 0) continue;
    assemblies_[cell.process] = {
        partial.type, partial.total_bytes, {partial.bytes, partial.bytes + partial.byte_count}};
  }
  restore_streams();
  if (commit == 0) continue_earlier_agents();
  find_earlier_metrics();
  return {};
}

/// Committed before anything is written: a later worker finds it in the state, not in the folder,
/// where this agent's own is by then.
void Encoder::continue_earlier_agents() {
  const NodeStand stand = read_node_stand(settings_.folder);
  EarlierAgents& earlier = state_->header().earlier;
  earlier = {};
  earlier.usage = stand.usage;
  for (const auto& [key, told] : stand.streams) {
    const auto [slot, context] = key;
    const uint32_t cell = state_->find_or_add_stream(spool::kNodeProcess, slot, context);
    if (cell == kNoCell) continue;
    StreamLog& log = stream(cell);
    StreamProgress& progress = log.progress();
    progress.committed = told.committed;
    progress.refused = told.refused;
    progress.stream_cut = told.stream_cut;
    progress.first_refused_ticks = told.first_refused_ticks;
    progress.last_refused_ticks = told.last_refused_ticks;
    log.is_changed = true;
    if (spool::is_agent_slot(slot) && context == 0)
      earlier.refused[slot == spool::kSeriesSlot ? 0 : 1] = told.refused;
  }
  for (const auto& [metric, count] : stand.counts) {
    if (earlier.metric_count == state_->sizes().metrics) break;
    state_->earlier_metric(earlier.metric_count++) = {
        1, spool::kNodeProcess, metric, 0, count.value, count.enabled_ns, count.running_ns};
  }
  commit();
}

void Encoder::find_earlier_metrics() {
  for (uint32_t i = 0; i < state_->header().earlier.metric_count; ++i) {
    const MetricCell& cell = state_->earlier_metric(i);
    earlier_metrics_[cell.metric] = &cell;
  }
}

void Encoder::restore_streams() {
  const uint32_t count = state_->header().stream_count.load(std::memory_order_relaxed);
  std::vector<uint32_t> with_open_regions;
  for (uint32_t i = 0; i < count; ++i) {
    const StreamCell& cell = state_->stream(i);
    if (cell.in_use.load(std::memory_order_relaxed) == 0) continue;
    const StreamProgress& progress = cell.progress.at(state_->commit());
    if (progress.failed_range_count != 0) stream(i);
    if (progress.open_count != 0) with_open_regions.push_back(i);
  }
  auto listed = spool::list_segments(settings_.folder);
  if (!listed) return;
  for (uint32_t i : with_open_regions) restore_open_regions(i, *listed);
}

void Encoder::restore_open_regions(uint32_t cell_index, const SegmentList& listed) {
  StreamLog& log = stream(cell_index);
  const auto segments = listed.find(log.process());
  if (segments == listed.end()) return;
  auto index = spool::ProcessIndex::build(settings_.folder, log.process(), segments->second);
  if (!index) return;
  const auto blocks = index->blocks(log.slot(), log.context());
  if (blocks.empty()) return;
  const spool::BlockEntry& last = blocks.back();
  auto file = open_file(index->file(last.file), O_RDONLY | O_NOFOLLOW);
  if (!file) return;
  spool::PayloadReader reader;
  spool::BlockPosition position{last.offset, {}};
  uint8_t prefix[spool::kBlockPrefixBytes];
  auto got = read_at(file->get(), prefix, sizeof(prefix), last.offset);
  if (!got || *got != sizeof(prefix) || !spool::parse_block_prefix(prefix, &position.header))
    return;
  auto payload = reader.read(file->get(), position);
  spool::BlockDecoder decoder;
  if (!payload || !decoder.begin(*payload, last.record_count)) return;
  const auto open = decoder.open_regions();
  log.open().assign({open.begin(), open.end()});
  std::vector<Record> records(512);
  for (;;) {
    auto decoded = decoder.next(records);
    if (!decoded || *decoded == 0) return;
    for (size_t i = 0; i < *decoded; ++i) log.open().follow(records[i].head);
  }
}

}  // namespace aon::agent
