#include "core/agent/encoder.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "core/base/log.h"
#include "core/topology/topology.h"

namespace aon::agent {
namespace {

constexpr const char* kNearlyFull = "nearly full: oldest records went to leave the rest to others";
constexpr uint64_t kStreamBytesPerBlock = uint64_t{spool::kMaxBlockRecords} * 2 * kSlotBytes;

/// What adds up over agents; the rest is as it is now.
void add_usage(const UsageDefinition& earlier, std::span<uint8_t> payload) {
  UsageDefinition usage{};
  if (payload.size() < sizeof(usage)) return;
  std::memcpy(&usage, payload.data(), sizeof(usage));
  usage.agent_cpu_ns += earlier.agent_cpu_ns;
  usage.ranks_cpu_ns += earlier.ranks_cpu_ns;
  usage.application_cost_ns += earlier.application_cost_ns;
  std::memcpy(payload.data(), &usage, sizeof(usage));
}

LossDefinition eviction_of(uint32_t process, const StreamKey& stream, const SequenceRange& range) {
  LossDefinition loss{};
  loss.process = process;
  loss.slot = stream.first;
  loss.context = stream.second;
  loss.reason = static_cast<uint32_t>(LossReason::kEvictedByCap);
  loss.first_sequence = range.first_sequence;
  loss.count = range.count;
  loss.start_ticks = range.first_ticks;
  loss.end_ticks = range.last_ticks;
  return loss;
}

}  // namespace

std::shared_ptr<Activity> ActivityTable::of(uint32_t process) {
  const MutexLock lock(&m_);
  std::shared_ptr<Activity>& entry = table_[process];
  if (!entry) entry = std::make_shared<Activity>();
  return entry;
}

void ActivityTable::forget(uint32_t process) {
  const MutexLock lock(&m_);
  table_.erase(process);
}

Encoder::Encoder(const EncoderSettings& settings, State* state, const Staging* staging,
                 FileSink* sink, Inbox* inbox, ActivityTable* activity)
    : settings_(settings),
      state_(state),
      staging_(staging),
      inbox_(inbox),
      activity_(activity),
      segments_(state, sink, settings.limits),
      log_(state, sink, settings.definitions_bytes) {}

bool Encoder::wants_flush() const noexcept {
  const uint64_t taken = read_ - tail_.load(std::memory_order_relaxed);
  return taken > std::min(staging_->capacity_bytes() / 4, settings_.limits.segment_bytes * 4);
}

StreamLog& Encoder::stream(uint32_t cell_index) {
  const auto it = streams_.find(cell_index);
  if (it != streams_.end()) return it->second;
  const StreamCell& cell = state_->stream(cell_index);
  return streams_
      .try_emplace(cell_index, cell.process, cell.slot, cell.context,
                   cell.progress.at(state_->commit()))
      .first->second;
}

void Encoder::consume() {
  take_staging();
  take_inbox();
}

void Encoder::take_staging() {
  const uint64_t head =
      state_->header().staging_head.load(std::memory_order_acquire);  // pairs with agent:staging
  const uint64_t base = state_->header().staging_base.load(std::memory_order_relaxed);
  // Everything before a base is committed; one above the head is published with the next head.
  if (read_ < base && base <= head) {
    read_ = base;
    tail_.store(base, std::memory_order_release);  // pairs with agent:tail
  }
  while (read_ < head) {
    const StagingEntry& entry = *staging_->entry(read_);
    const StreamCell& cell = state_->stream(entry.stream);
    if (cell.slot == kDefinitionSlot) {
      take_definitions(cell.process, entry);
    } else {
      StreamLog& log = stream(entry.stream);
      log.push({reinterpret_cast<const uint8_t*>(&entry + 1), entry.record_bytes, entry.counted});
      if (log.pending_bytes() >= kStreamBytesPerBlock) encode(&log);
    }
    read_ += entry.entry_bytes;
  }
}

uint32_t Encoder::agent_cell(uint32_t process, uint16_t slot) {
  const auto it = agent_cells_.find({process, slot});
  if (it != agent_cells_.end()) return it->second;
  const uint32_t cell = state_->find_or_add_stream(process, slot, 0);
  agent_cells_[{process, slot}] = cell;
  return cell;
}

void Encoder::take_inbox() {
  std::map<uint32_t, uint64_t> refused;
  inbox_->take(&inbox_definitions_, &refused);
  for (const auto& [process, count] : refused) log_.count_dropped(process, count);
  for (InboxDefinition& definition : inbox_definitions_) {
    if (definition.type == DefinitionType::kUsage)
      add_usage(state_->header().earlier.usage, definition.payload);
    if (is_outdated(definition)) continue;
    log_.of(definition.process).add(static_cast<uint32_t>(definition.type), definition.payload);
  }
}

bool Encoder::are_samples_many() const noexcept {
  const uint64_t head =
      state_->header().sample_head.load(std::memory_order_acquire);  // pairs with agent:samples
  return head - samples_read_ > state_->sizes().samples / 8;
}

/// A cell stays as it is until the commit moves the tail behind it: runs point into it.
void Encoder::take_samples() {
  const uint64_t head =
      state_->header().sample_head.load(std::memory_order_acquire);  // pairs with agent:samples
  for (; samples_read_ < head; ++samples_read_) {
    const SampleCell& sample = counted_on(state_->sample(samples_read_));
    const uint32_t cell = agent_cell(sample.process, sample.slot);
    if (cell == kNoCell) continue;
    const uint32_t byte_count = sample.head.slot_count * kSlotBytes;
    const uint32_t counted = is_counted(sample.head.kind) ? 1 : 0;
    stream(cell).push({reinterpret_cast<const uint8_t*>(&sample.head), byte_count, counted});
  }
}

/// A count of the node goes on where an earlier agent left it.
const SampleCell& Encoder::counted_on(const SampleCell& sample) {
  if (sample.process != spool::kNodeProcess || sample.head.kind != RecordKind::kSample)
    return sample;
  const auto earlier = earlier_metrics_.find(sample.head.id);
  if (earlier == earlier_metrics_.end()) return sample;
  SampleCell& sum = counted_on_.emplace_back(sample);
  sum.head.a64 =
      std::bit_cast<uint64_t>(std::bit_cast<double>(sample.head.a64) + earlier->second->value);
  sum.words[0] += earlier->second->enabled_ns;
  sum.words[1] += earlier->second->running_ns;
  return sum;
}

void Encoder::encode(StreamLog* log) {
  const std::shared_ptr<Activity> activity =
      spool::is_agent_slot(log->slot()) ? nullptr : activity_->of(log->process());
  while (log->is_pending()) {
    const bool is_chatty =
        segments_.is_chatty(log->progress().file_bytes) && !spool::is_agent_slot(log->slot());
    auto header = segments_.append(
        log->process(), log->slot(), is_chatty, [&](uint64_t sequence, std::vector<uint8_t>* out) {
          return log->seal_block(&block_writer_, activity.get(), sequence, out);
        });
    if (!header) {
      AON_LOG_ERROR("block of process %u slot %u: %s", log->process(), log->slot(),
                    header.error().message.c_str());
      log->drop_pending();
      break;
    }
    log->progress().file_bytes += header->compressed_bytes;
  }
}

void Encoder::flush(FlushExtent extent) {
  std::vector<uint32_t> ending;
  const uint32_t process_count =
      state_->header().process_count.load(std::memory_order_acquire);  // pairs with agent:cells
  for (uint32_t i = 0; i < process_count; ++i) {
    const uint32_t phase =
        state_->process(i).phase.load(std::memory_order_acquire);  // pairs with agent:phase
    if (phase == static_cast<uint32_t>(ProcessPhase::kDrained)) ending.push_back(i);
  }
  consume();
  if (extent != FlushExtent::kEvents || !ending.empty() || are_samples_many()) take_samples();
  for (auto& [cell, log] : streams_) {
    if (log.is_pending()) encode(&log);
  }
  std::vector<spool::BlockHeader> lost;
  const int error = segments_.flush(extent == FlushExtent::kLast, &lost);
  write_losses(lost);
  write_processes();
  write_streams();
  write_refused_definitions();
  for (uint32_t index : ending) finish_process(index);
  const int definitions_error = log_.flush();
  if (definitions_error == 0) retry_failed();
  report_disk(error != 0 ? error : definitions_error);
  commit();
  forget(ending);
  // Not while definitions wait to be written: what is evicted is told behind them.
  if (definitions_error == 0) evict();
  if (log_.wants_compaction()) {
    if (Status status = log_.compact(settings_.folder); !status)
      AON_LOG_WARNING("%s", status.error().message.c_str());
    commit();
  }
  disk_bytes_.store(segments_.total_bytes() + log_.file_bytes(), std::memory_order_relaxed);
}

void Encoder::write_losses(const std::vector<spool::BlockHeader>& lost) {
  for (const spool::BlockHeader& header : lost) {
    const uint32_t cell = state_->find_or_add_stream(header.process, header.slot, header.context);
    if (cell != kNoCell) stream(cell).add_failed(header);
  }
}

void Encoder::retry_failed() {
  bool is_any = false;
  for (auto& [cell, log] : streams_) {
    if (!log.has_failed()) continue;
    for (const LossDefinition& loss : log.failed())
      log_.of(log.process()).add(DefinitionType::kEviction, loss);
    is_any = true;
  }
  if (!is_any) return;
  if (log_.flush() != 0) {
    log_.discard_buffered();  // the counts stay in the state
    return;
  }
  for (auto& [cell, log] : streams_) {
    if (!log.has_failed()) continue;
    log.clear_failed();
  }
}

void Encoder::write_processes() {
  if (progress_.node_written == 0) {
    log_.of(spool::kNodeProcess)
        .add(DefinitionType::kNode, settings_.node, {settings_.host, settings_.launch_id});
    progress_.node_written = 1;
  }
  StateHeader& header = state_->header();
  const uint32_t count =
      header.process_count.load(std::memory_order_acquire);  // pairs with agent:cells
  for (uint32_t i = 0; i < count; ++i) {
    ProcessCell& cell = state_->process(i);
    if (cell.phase.load(std::memory_order_acquire) == 0) continue;  // pairs with agent:phase
    const uint64_t last = state_->commit();
    const bool is_new = cell.written.at(last) == 0;
    const uint32_t program = cell.program.number();
    if (!is_new && cell.written_program.at(last) == program) continue;
    write_process_start(cell);
    if (is_new) cell.written.set(last, static_cast<uint32_t>(ProcessPhase::kAttached));
    cell.written_program.set(last, program);
  }
}

void Encoder::write_process_start(const ProcessCell& cell) {
  ProcessStartDefinition start{};
  start.process = cell.process;
  start.pid = cell.pid;
  start.start_time_ticks = cell.start_time_ticks;
  start.attach_ticks = cell.attach_ticks;
  start.rank = cell.rank.load(std::memory_order_relaxed);
  start.world_size = cell.world_size.load(std::memory_order_relaxed);
  spool::DefinitionBlockWriter& writer = log_.of(cell.process);
  writer.add(DefinitionType::kProcessStart, start, {cell.program.get(), settings_.host});
  if (cell.is_elsewhere != 0) return;
  if (const auto binding = topology::binding_of(cell.pid))
    writer.add_text(DefinitionType::kBinding, *binding);
}

void Encoder::write_streams() {
  const uint32_t count =
      state_->header().stream_count.load(std::memory_order_acquire);  // pairs with agent:cells
  for (uint32_t i = 0; i < count; ++i) {
    const StreamCell& cell = state_->stream(i);
    if (cell.in_use.load(std::memory_order_acquire) == 0) continue;  // pairs with agent:cells
    if (cell.slot == kDefinitionSlot) {
      const bool is_first = cell.process != spool::kNodeProcess && cell.context == 0;
      if (is_first) count_refused_definitions(i);
      continue;
    }
    const bool is_agents = spool::is_agent_slot(cell.slot);
    const RefusedSamples& samples = state_->refused_samples(cell.process, cell.slot);
    const uint64_t earlier = is_agents ? state_->earlier_refused(cell.process, cell.slot) : 0;
    const uint64_t refused =
        earlier + (is_agents ? samples.count : cell.refused).load(std::memory_order_relaxed);
    const auto it = streams_.find(i);
    const uint64_t cut_count = cell.cut_count.load(std::memory_order_relaxed);
    if (it == streams_.end() && refused == 0 && cut_count == 0) continue;
    StreamLog& log = stream(i);
    if (refused > log.progress().refused || cut_count > log.progress().ring_cut) {
      log.progress().refused = std::max(log.progress().refused, refused);
      if (is_agents) {
        if (earlier == 0)
          log.progress().first_refused_ticks = samples.first_ticks.load(std::memory_order_relaxed);
        log.progress().last_refused_ticks = samples.last_ticks.load(std::memory_order_relaxed);
      }
      log.progress().ring_cut = std::max(log.progress().ring_cut, cut_count);
      log.is_changed = true;
    }
    if (log.is_changed) log_.of(log.process()).add(DefinitionType::kStream, log.definition());
  }
}

void Encoder::finish_process(uint32_t index) {
  ProcessCell& cell = state_->process(index);
  cell.written.set(state_->commit(), static_cast<uint32_t>(ProcessPhase::kFinished));
  if (cell.is_cut_off != 0) return;  // as if the agent had been killed: the end is not known
  ProcessExitDefinition end{};
  end.process = cell.process;
  end.exit_code = cell.exit_code;
  end.signal = cell.exit_signal;
  end.end_ticks = cell.end_ticks;
  end.memory_bytes = cell.memory_bytes;
  end.cpu_time_ns = cell.cpu_time_ns;
  log_.of(cell.process).add(DefinitionType::kProcessExit, end);
}

void Encoder::forget(const std::vector<uint32_t>& ended) {
  for (uint32_t index : ended) {
    ProcessCell& cell = state_->process(index);
    const uint32_t process = cell.process;
    assemblies_.erase(process);
    segments_.close_process(process);
    activity_->forget(process);
    cell.phase.store(static_cast<uint32_t>(ProcessPhase::kFinished),
                     std::memory_order_release);  // pairs with agent:phase
  }
  if (!ended.empty()) forget_finished();
}

/// Of those that ended earlier, too: last samples of one may have come behind its end.
void Encoder::forget_finished() {
  const auto is_finished = [&](uint32_t process) {
    const uint32_t index = process - state_->header().first_process;
    return index < state_->sizes().processes &&
           state_->process(index).phase.load(std::memory_order_relaxed) ==
               static_cast<uint32_t>(ProcessPhase::kFinished);
  };
  std::erase_if(streams_, [&](const auto& entry) {
    const StreamLog& log = entry.second;
    const bool is_over = is_finished(log.process()) && !log.is_pending() && !log.has_failed();
    if (is_over) segments_.close_process(log.process());
    return is_over;
  });
  std::erase_if(agent_cells_, [&](const auto& entry) { return is_finished(entry.first.first); });
}

void Encoder::commit() {
  StateHeader& header = state_->header();
  const uint64_t last = header.commit.load(std::memory_order_relaxed);
  for (auto& [cell, log] : streams_) {
    if (!log.is_changed) continue;
    state_->stream(cell).progress.set(last, log.progress());
    log.is_changed = false;
  }
  save_assemblies(last);
  segments_.stage_commit(last);
  progress_.staging_tail = read_;
  progress_.sample_tail = samples_read_;
  log_.stage_commit(&progress_);
  header.progress.set(last, progress_);
  counted_on_.clear();
  header.commit.store(last + 1, std::memory_order_release);            // pairs with agent:commit
  tail_.store(read_, std::memory_order_release);                       // pairs with agent:tail
  header.sample_tail.store(samples_read_, std::memory_order_release);  // pairs with agent:sampled
}

void Encoder::evict() {
  segments_.measure_room();
  // What was told meanwhile, as that the disk is full, stays: it is told once.
  if (log_.flush() != 0) return;
  while (auto victim = segments_.next_victim()) {
    for (const auto& [key, ranges] : victim->losses) {
      for (const SequenceRange& range : ranges)
        log_.of(victim->name.process)
            .add(DefinitionType::kEviction, eviction_of(victim->name.process, key, range));
    }
    const bool is_news = victim->is_for_room && !is_room_told_;
    if (is_news) tell_disk(kNearlyFull);
    if (log_.flush() != 0) {
      log_.discard_buffered();
      return;  // the disk is full: another time
    }
    is_room_told_ = is_room_told_ || is_news;
    progress_.evicting = 1;
    progress_.evicted_process = victim->name.process;
    progress_.evicted_slot = victim->name.slot ? uint32_t{*victim->name.slot} : kSharedFile;
    progress_.evicted_segment = victim->name.segment;
    commit();
    segments_.remove(victim->name);
    progress_.evicting = 0;
  }
}

const char* disk_remedy(int error) {
  const bool is_forbidden = error == EACCES || error == EPERM || error == EROFS;
  return is_forbidden ? "make the job directory writable, or set --spool-dir"
                      : "free space, or set --spool-dir or --disk";
}

void Encoder::report_disk(int error) {
  if (error == disk_error_.load(std::memory_order_relaxed)) return;
  disk_error_.store(error, std::memory_order_relaxed);
  is_room_told_ = false;
  tell_disk(error == 0 ? "" : std::string("cannot write: ") + strerror(error), disk_remedy(error));
}

/// Of the provider "disk"; empty: it can be written again.
void Encoder::tell_disk(const std::string& reason, const char* remedy) {
  ProviderDefinition state{};
  state.state = reason.empty() ? ProviderState::kOn : ProviderState::kDegraded;
  log_.of(spool::kNodeProcess)
      .add(DefinitionType::kProvider, state, {"disk", reason, reason.empty() ? "" : remedy});
  AON_LOG_WARNING("spool: %s", reason.empty() ? "can be written again" : reason.c_str());
}

}  // namespace aon::agent
