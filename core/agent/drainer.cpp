#include "core/agent/drainer.h"

#include <algorithm>
#include <cstring>

#include "core/base/log.h"
#include "core/clock/snapshot.h"

namespace aon::agent {
namespace {

constexpr uint64_t kRateWindowNs = 50'000'000;
constexpr uint32_t kActiveChunks = 1024;  ///< 4 MiB: most of first_growth()
constexpr uint32_t kGrowChunks = 64;
constexpr uint32_t kAdvanceChunks = 4096;   ///< room made in advance by one pass: 16 MiB, some 5 ms
constexpr uint64_t kStartBytes = 16 << 10;  ///< of kRateWindowNs: a start is told in less
constexpr uint64_t kBusyBytes = 256 << 10;  ///< of one pass
constexpr uint64_t kCacheBytes = 1u << 20;  ///< that the encode thread reads before memory has to
constexpr int kBusyPeriodMs = 5;
constexpr int kPeriodMs = 20;
/// Each turn interrupts a rank where all cores are busy. A process that has been calm for a while
/// is looked at less often; what it then writes at once has 4 MiB of room, and rings at half of it.
constexpr int kCalmPeriodMs = 100;
constexpr uint64_t kCalmAfterNs = 2'000'000'000;
constexpr uint64_t kCalmBytesPerSecond = 2u << 20;
constexpr uint64_t kBurstBytesPerSecond = 16u << 20;  ///< that any process may start at any time

/// True when `next` is further than `position`.
bool is_ahead(const ring::StreamPosition& next, const ring::StreamPosition& position) {
  if (position.has_chunk == 0) return true;
  if (next.chunk_sequence != position.chunk_sequence)
    return next.chunk_sequence > position.chunk_sequence;
  return committed_bytes(next.committed) > committed_bytes(position.committed);
}

/// Of a new ring: header, slots and the first chunks.
uint64_t first_bytes() {
  return ring_geometry(kRingSlots, 0).total_bytes + uint64_t{kFirstChunks} * kChunkBytes;
}

}  // namespace

void ModeTable::add(uint32_t process, std::atomic<uint32_t>* modes) {
  const MutexLock lock(&m_);
  table_[process] = modes;
}

void ModeTable::remove(uint32_t process) {
  const MutexLock lock(&m_);
  table_.erase(process);
}

Drainer::Drainer(const DrainSettings& settings, State* state, const Staging* staging,
                 const std::atomic<uint64_t>* tail, Inbox* inbox, ModeTable* modes)
    : settings_(settings),
      state_(state),
      staging_(staging),
      tail_(tail),
      inbox_(inbox),
      modes_(modes) {}

void Drainer::restore() {
  const uint64_t base = state_->header().staging_base.load(std::memory_order_relaxed);
  const uint64_t head = state_->header().staging_head.load(std::memory_order_relaxed);
  if (head <= base) {  // no entry since; killed between the two stores where it is less
    state_->header().staging_head.store(base, std::memory_order_relaxed);
    return;
  }
  const StagingEntry* last = staging_->last_entry(head);
  if (last == nullptr || last->stream >= state_->sizes().streams) return;
  StreamCell& cell = state_->stream(last->stream);
  if (last->has_position == 0) {
    cell.open_calls_written = 1;  // write_open_calls() alone gives none
    return;
  }
  if (is_ahead(last->position, cell.position.get())) cell.position.set(last->position);
}

Result<int> Drainer::create(uint32_t cell_index) {
  ProcessCell& cell = state_->process(cell_index);
  const uint64_t chunk_count = std::max<uint64_t>(settings_.ring_bytes / kChunkBytes, kFirstChunks);
  const uint64_t used = node_bytes_.load(std::memory_order_relaxed);
  if (used + first_bytes() > settings_.node_bytes)
    return Error{Code::kUnavailable, "no room for one more ring in the node's " +
                                         std::to_string(settings_.node_bytes) + " bytes"};
  cell.ring_chunks = kFirstChunks;
  auto memory =
      ring::RingMemory::create(cell.process, kRingSlots, static_cast<uint32_t>(chunk_count),
                               kFirstChunks, settings_.clock_is_tsc);
  if (!memory) return memory.error();
  const int fd = memory->fd();
  adopt(ring_of(cell_index, std::move(*memory)));  // nothing of it was read yet
  return fd;
}

Status Drainer::attach(uint32_t cell_index, UniqueFd fd) {
  const ProcessCell& cell = state_->process(cell_index);
  const uint64_t chunk_count = std::max<uint64_t>(settings_.ring_bytes / kChunkBytes, kFirstChunks);
  auto memory = ring::RingMemory::attach(std::move(fd), kRingSlots,
                                         static_cast<uint32_t>(chunk_count), cell.ring_chunks);
  if (!memory) return memory.error();
  Ring ring = ring_of(cell_index, std::move(*memory));
  restore_streams(&ring);
  adopt(std::move(ring));
  return {};
}

/// Where an earlier worker was in the streams of a process.
void Drainer::restore_streams(Ring* ring) const {
  const uint32_t process = state_->process(ring->cell).process;
  const uint32_t count =
      state_->header().stream_count.load(std::memory_order_acquire);  // pairs with agent:cells
  for (uint32_t i = 0; i < count && i < state_->sizes().streams; ++i) {
    const StreamCell& cell = state_->stream(i);
    if (cell.in_use.load(std::memory_order_acquire) == 0 ||  // pairs with agent:cells
        cell.process != process || cell.slot >= kRingSlots || cell.context >= kContexts)
      continue;
    ring->streams[size_t{cell.slot} * kContexts + cell.context] = i;
    ring->reader->restore(cell.slot, cell.context, cell.position.get());
  }
}

Drainer::Ring Drainer::ring_of(uint32_t cell, ring::RingMemory memory) const {
  Ring ring{};
  ring.cell = cell;
  ring.process = state_->process(cell).process;
  ring.memory = std::make_unique<ring::RingMemory>(std::move(memory));
  ring.reader = std::make_unique<ring::RingReader>(ring.memory->base(), ring.memory->geometry());
  ring.streams.assign(size_t{kRingSlots} * kContexts, kNoCell);
  return ring;
}

void Drainer::adopt(Ring ring) {
  add_node_bytes(ring.memory->committed_bytes());
  state_->process(ring.cell).memory_bytes = ring.memory->committed_bytes();
  modes_->add(ring.process, ring.memory->modes());
  if (stacks_ != nullptr) stacks_->add(ring.process, ring.memory->base(), ring.memory->geometry());
  rings_[ring.cell] = std::move(ring);
}

void Drainer::add_node_bytes(uint64_t bytes) noexcept {
  const uint64_t now = node_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (now > peak_node_bytes_.load(std::memory_order_relaxed))
    peak_node_bytes_.store(now, std::memory_order_relaxed);
}

uint32_t Drainer::stream_cell(uint32_t slot, uint32_t context) {
  uint32_t& cell = current_->streams[size_t{slot} * kContexts + context];
  if (cell == kNoCell)
    cell = state_->add_stream(current_->process, static_cast<uint16_t>(slot),
                              static_cast<uint16_t>(context));
  return cell;
}

/// Before it, staging may be written.
uint64_t Drainer::staging_tail() const noexcept {
  return std::max(tail_->load(std::memory_order_acquire),  // pairs with agent:tail
                  state_->header().staging_base.load(std::memory_order_relaxed));
}

void Drainer::rewind_staging() noexcept {
  StateHeader& header = state_->header();
  const uint64_t head = header.staging_head.load(std::memory_order_relaxed);
  const uint64_t start = staging_->next_start(head);
  if (start == head || staging_tail() != head) return;
  header.staging_base.store(start, std::memory_order_relaxed);
  header.staging_head.store(start, std::memory_order_release);  // pairs with agent:staging
}

bool Drainer::append(uint32_t stream, std::span<const uint8_t> bytes, uint32_t counted,
                     const ring::StreamPosition* position) {
  StateHeader& header = state_->header();
  const uint64_t head = header.staging_head.load(std::memory_order_relaxed);
  const auto record_bytes = static_cast<uint32_t>(bytes.size());
  StagingEntry* entry = staging_->reserve(head, staging_tail(), record_bytes);
  if (entry == nullptr) return false;
  entry->stream = stream;
  entry->counted = counted;
  entry->has_position = position != nullptr ? 1 : 0;
  if (position != nullptr) entry->position = *position;
  std::memcpy(Staging::records_of(entry), bytes.data(), record_bytes);
  const uint32_t moved_by = Staging::seal(entry, record_bytes);
  header.staging_head.store(head + moved_by,
                            std::memory_order_release);  // pairs with agent:staging
  return true;
}

bool Drainer::take(const ring::Piece& piece) {
  const uint32_t stream = stream_cell(piece.slot, piece.context);
  if (stream == kNoCell || is_giving_up_) {
    drop(piece.slot, piece.context, piece.counted);
    if (stream != kNoCell) state_->stream(stream).position.set(piece.after);
    return true;
  }
  if (!append(stream, piece.bytes, piece.counted, &piece.after)) return false;
  if (piece.slot != kDefinitionSlot && !is_told_by_us(piece.bytes)) current_->has_recorded = true;
  state_->stream(stream).position.set(piece.after);
  return true;
}

/// A stream for which the state has no cell has no place to be counted but the main thread's.
void Drainer::drop(uint32_t slot, uint32_t context, uint64_t count) {
  const bool has_cell = stream_cell(slot, context) != kNoCell;
  const uint32_t stream = has_cell ? slot * kContexts + context : kMainThreadSlot * kContexts;
  if (count != 0 && current_->dropped.empty())
    AON_LOG_WARNING("process %u: records are dropped, %s", current_->process,
                    has_cell ? "the disk takes nothing" : "too many threads on this node");
  current_->dropped[stream] += count;
}

void Drainer::moved(uint32_t slot, uint32_t context, const ring::StreamPosition& position) {
  const uint32_t stream = stream_cell(slot, context);
  if (stream == kNoCell) return;
  state_->stream(stream).position.set(position);
  if (position.cut == ring::Cut::kNone) return;
  AON_LOG_WARNING("process %u slot %u: stream cut, %s", current_->process, slot,
                  ring::cut_name(position.cut));
}

DrainPass Drainer::drain(uint64_t now_ns) {
  DrainPass pass;
  pass.has_rings = !rings_.empty();
  if (pass.has_rings) pass.period_ms = kCalmPeriodMs;
  advance_chunks_ = kAdvanceChunks;
  note_pass(now_ns);
  rewind_staging();
  for (auto& [cell, ring] : rings_) {
    current_ = &ring;
    if (ring.first_drain_ns == 0) ring.first_drain_ns = now_ns;
    ring.has_recorded = false;
    const ring::DrainResult result = ring.reader->drain(*this);
    pass.bytes += result.bytes;
    pass.is_complete = pass.is_complete && result.is_complete;
    const uint32_t phase =
        state_->process(cell).phase.load(std::memory_order_relaxed);  // of this thread
    const bool is_first = ring.window_start_ns == 0;
    if (phase < static_cast<uint32_t>(ProcessPhase::kEnded)) grow(ring, now_ns, result.bytes);
    if (result.bytes != 0 || is_first) ring.memory->wake_at_half();
    if (ring.has_recorded || ring.last_record_ns == 0) note_records(&ring, now_ns);
    const bool is_calm = phase < static_cast<uint32_t>(ProcessPhase::kEnded) &&
                         ring.peak_bytes_per_s < kCalmBytesPerSecond &&
                         now_ns - ring.first_drain_ns > kCalmAfterNs;
    pass.period_ms = std::min(pass.period_ms, period_ms(ring, is_calm));
    // The lowest free chunk is taken first: drained often, a busy process stays in memory that it
    // has touched before, and in its cache.
    if (result.bytes > kBusyBytes) pass.period_ms = std::min(pass.period_ms, kBusyPeriodMs);
    if (result.bytes != 0) read_refused(ring);
    if (ring.has_recorded) pass.left_init |= has_left_init(ring);
  }
  current_ = nullptr;
  if (!pass.is_complete) pass.period_ms = 1;
  return pass;
}

/// Whether the process has left MPI_Init in what was drained: the end of a call is a record. (Where
/// an earlier worker took the process on, any record counts.)
bool Drainer::has_left_init(const Ring& ring) const {
  std::atomic<uint32_t>& is_in_init = state_->process(ring.cell).is_in_init;
  if (is_in_init.load(std::memory_order_relaxed) == 0) return false;
  const std::optional<ring::OpenCall> call = ring.reader->open_call(kMainThreadSlot);
  if (call && ring.init_region == call->region) return false;
  is_in_init.store(0, std::memory_order_relaxed);
  return true;
}

void Drainer::note_records(Ring* ring, uint64_t now_ns) const {
  ring->last_record_ns = awake_ns(now_ns);
  ring->last_record_ticks = clock::now_ticks(
      settings_.clock_is_tsc ? clock::TickSource::kTsc : clock::TickSource::kMonotonicRaw);
  ring->is_quiet = false;
}

/// A third of the time in which a burst fills what is free now; half of it, as the bell, where none
/// is expected.
int Drainer::period_ms(const Ring& ring, bool is_calm) {
  const uint64_t free_bytes = uint64_t{ring.memory->free_chunk_count()} * kChunkCapacityBytes;
  const uint64_t rate = std::max(ring.peak_bytes_per_s, kBurstBytesPerSecond);
  const uint64_t most_ms = is_calm ? kCalmPeriodMs : kPeriodMs;
  const uint64_t part = is_calm ? 2 : 3;
  return static_cast<int>(std::clamp<uint64_t>(free_bytes * 1000 / rate / part, 5, most_ms));
}

bool Drainer::wants_encoding() noexcept {
  const uint64_t head = state_->header().staging_head.load(std::memory_order_relaxed);
  const uint64_t tail = staging_tail();
  // What was encoded stays until it is written.
  const bool is_filling = head - tail > staging_->capacity_bytes() / 8;
  if (!is_filling && head - std::max(tail, encoding_from_) <= kCacheBytes) return false;
  encoding_from_ = head;
  return true;
}

void Drainer::read_refused(Ring& ring) {
  const uint32_t used = ring.reader->slots_used();
  for (uint32_t slot = 0; slot < used; ++slot) {
    for (uint32_t context = 0; context < kContexts; ++context) {
      uint64_t refused = ring.reader->refused(slot, context);
      // Threads without a slot have no location; the main thread's bears their losses.
      if (slot == kMainThreadSlot && context == 0) refused += ring.reader->refused_no_slot();
      const auto dropped = ring.dropped.find(slot * kContexts + context);
      if (dropped != ring.dropped.end()) refused += dropped->second;
      const bool is_cut = ring.reader->position(slot, context).cut != ring::Cut::kNone;
      // Definitions that were refused may find room later.
      const bool may_fall = slot == kDefinitionSlot && context == 0;
      if (refused == 0 && !is_cut && !may_fall) continue;
      const uint32_t stream = stream_cell(slot, context);
      if (stream == kNoCell) continue;
      StreamCell& cell = state_->stream(stream);
      cell.refused.store(refused, std::memory_order_relaxed);
      if (!is_cut) continue;
      const uint32_t offered = ring.memory->offered_chunk_count();
      cell.cut_count.store(ring.reader->cut_count(slot, context, offered),
                           std::memory_order_relaxed);
    }
  }
}

/// For the first chunks of ranks that are still to come.
uint64_t Drainer::reserved_bytes() const noexcept {
  const uint32_t expected = state_->header().expected_ranks.load(std::memory_order_relaxed);
  const size_t missing = expected > rings_.size() ? expected - rings_.size() : 0;
  return missing * first_bytes();
}

/// What a ring gets before anything is known of its process: of many ranks each its part of a half
/// of the node's memory. Its pages take a core a third of a millisecond for each MiB.
uint32_t Drainer::first_growth(const Ring& ring, uint64_t now_ns) const noexcept {
  // Most that are followed never say Hello, and write nothing.
  const ProcessCell& cell = state_->process(ring.cell);
  if (cell.is_followed.load(std::memory_order_relaxed) != 0) return kFirstChunks;
  const bool is_starting = ring.bytes_in_window < kStartBytes &&
                           ring.peak_bytes_per_s < kStartBytes * (1'000'000'000 / kRateWindowNs);
  if (is_starting && now_ns - ring.first_drain_ns < kStartNs && ranks_are_coming(state_->header()))
    return kFirstChunks;
  const uint32_t expected = state_->header().expected_ranks.load(std::memory_order_relaxed);
  const uint64_t ranks = std::max<uint64_t>(std::max<uint64_t>(expected, rings_.size()), 1);
  const uint64_t part = settings_.node_bytes / 2 / ranks / kChunkBytes;
  return static_cast<uint32_t>(std::clamp<uint64_t>(part, kFirstChunks, kActiveChunks));
}

void Drainer::grow(Ring& ring, uint64_t now_ns, uint64_t bytes) {
  ring.bytes_in_window += bytes;
  const uint64_t window_ns = now_ns - ring.window_start_ns;
  if (window_ns >= kRateWindowNs) {
    const uint64_t rate = ring.bytes_in_window * 1'000'000'000u / window_ns;
    if (ring.window_start_ns != 0) ring.peak_bytes_per_s = std::max(ring.peak_bytes_per_s, rate);
    ring.bytes_in_window = 0;
    ring.window_start_ns = now_ns;
  }
  const uint32_t offered = ring.memory->offered_chunk_count();
  // Not only when something came: a tight loop behind MPI_Init would fill the first chunks between
  // two passes, and small rings have to be looked at more often.
  const uint32_t first = first_growth(ring, now_ns);
  if (bytes == 0 && offered >= first) return;
  const uint32_t limit = ring.memory->geometry().chunk_count;
  if (offered >= limit) return;
  const uint64_t gap_bytes = ring.peak_bytes_per_s * (kDrainGapNs / 1'000'000u) / 1000u;
  // Twice what this pass brought: the next one may come late.
  const uint64_t wanted = std::max(gap_bytes, 2 * bytes) / kChunkCapacityBytes + 1;
  const uint32_t free_count = ring.memory->free_chunk_count();
  uint64_t more = wanted > free_count ? wanted - free_count : 0;
  if (offered < first) {
    const uint32_t part = std::min(first - offered, advance_chunks_);
    const uint32_t in_advance = bytes >= kStartBytes ? first - offered : part;
    advance_chunks_ -= std::min(in_advance, advance_chunks_);
    more = std::max<uint64_t>(more, in_advance);
  }
  if (more == 0) return;
  more = std::min<uint64_t>(round_up(more, kGrowChunks), limit - offered);
  const uint64_t used = node_bytes_.load(std::memory_order_relaxed) + reserved_bytes();
  const uint64_t room = settings_.node_bytes > used ? settings_.node_bytes - used : 0;
  more = std::min(more, room / kChunkBytes);
  if (more == 0) return;
  ProcessCell& cell = state_->process(ring.cell);
  cell.ring_chunks = offered + static_cast<uint32_t>(more);  // before: never offered twice
  if (!ring.memory->offer(static_cast<uint32_t>(more))) return;
  add_node_bytes(more * kChunkBytes);
  cell.memory_bytes = ring.memory->committed_bytes();
}

bool Drainer::drain_to_end(uint32_t cell, uint64_t end_ticks) {
  const auto it = rings_.find(cell);
  if (it == rings_.end()) return true;
  Ring& ring = it->second;
  current_ = &ring;
  bool is_done = ring.reader->drain(*this).is_complete;
  if (is_done) is_done = write_open_calls(ring, end_ticks);
  read_refused(ring);
  if (is_done) report_counts(ring);
  current_ = nullptr;
  return is_done;
}

void Drainer::give_up(uint32_t cell, uint64_t end_ticks) {
  const auto it = rings_.find(cell);
  if (it == rings_.end()) return;
  Ring& ring = it->second;
  current_ = &ring;
  is_giving_up_ = true;
  ring.reader->drain(*this);
  for (uint32_t slot = kMainThreadSlot; slot < ring.reader->slots_used(); ++slot) {
    const uint32_t stream = stream_cell(slot, 0);
    if (stream != kNoCell && state_->stream(stream).open_calls_written != 0) continue;
    const size_t count = ring.reader->open_calls(slot, end_ticks).size();
    if (count != 0) drop(slot, 0, count);
  }
  is_giving_up_ = false;
  read_refused(ring);
  report_counts(ring);
  current_ = nullptr;
}

bool Drainer::write_open_calls(Ring& ring, uint64_t end_ticks) {
  for (uint32_t slot = kMainThreadSlot; slot < ring.reader->slots_used(); ++slot) {
    const std::vector<Record> calls = ring.reader->open_calls(slot, end_ticks);
    if (calls.empty()) continue;
    const uint32_t stream = stream_cell(slot, 0);
    if (stream == kNoCell) continue;
    StreamCell& stream_state = state_->stream(stream);
    if (stream_state.open_calls_written != 0) continue;
    std::vector<uint8_t> bytes;
    // Inner calls end first: order of commit.
    for (auto call = calls.rbegin(); call != calls.rend(); ++call) {
      const auto* from = reinterpret_cast<const uint8_t*>(&*call);
      bytes.insert(bytes.end(), from, from + size_t{call->head.slot_count} * kSlotBytes);
    }
    if (!append(stream, bytes, static_cast<uint32_t>(calls.size()), nullptr)) return false;
    stream_state.open_calls_written = 1;
  }
  return true;
}

std::vector<int32_t> Drainer::thread_ids(uint32_t cell) const {
  std::vector<int32_t> tids;
  const auto it = rings_.find(cell);
  if (it == rings_.end()) return tids;
  const RingGeometry& geometry = it->second.memory->geometry();
  const auto* slots = reinterpret_cast<const ThreadSlot*>(
      static_cast<const char*>(it->second.memory->base()) + geometry.slots_offset);
  const uint32_t used = std::min(it->second.reader->slots_used(), geometry.slot_count);
  for (uint32_t slot = kMainThreadSlot; slot < used; ++slot)
    tids.push_back(static_cast<int32_t>(slots[slot].tid.load(std::memory_order_relaxed)));
  return tids;
}

uint32_t Drainer::crash_place(uint32_t cell) const {
  const auto it = rings_.find(cell);
  if (it == rings_.end()) return 0;
  const auto* header = static_cast<const RingHeader*>(it->second.memory->base());
  return header->crash_place.load(std::memory_order_relaxed);
}

bool Drainer::has_counts(uint32_t cell) const {
  const auto it = rings_.find(cell);
  return it != rings_.end() && it->second.has_counts;
}

void Drainer::remove(uint32_t cell) {
  const auto it = rings_.find(cell);
  if (it == rings_.end()) return;
  modes_->remove(it->second.process);
  if (stacks_ != nullptr) stacks_->remove(it->second.process);
  node_bytes_.fetch_sub(it->second.memory->committed_bytes(), std::memory_order_relaxed);
  rings_.erase(it);
}

void Drainer::report_counts() {
  for (auto& [cell, ring] : rings_) {
    report_counts(ring);
    current_ = &ring;
    read_refused(ring);
  }
  current_ = nullptr;
}

void Drainer::report_counts(Ring& ring) {
  std::array<uint64_t, kMaxCounters> now;
  uint64_t counted_calls = 0;
  for (uint32_t slot = kMainThreadSlot; slot < ring.reader->slots_used(); ++slot) {
    if (!ring.reader->counters(slot, now)) continue;
    std::array<uint64_t, kMaxCounters>& last = ring.counts[slot];
    for (uint32_t site = 0; site < kMaxCounters; ++site) {
      counted_calls += now[site];
      if (now[site] <= last[site]) continue;
      last[site] = now[site];
      CountsDefinition counts{};
      counts.process = ring.process;
      counts.slot = slot;
      counts.region = site;
      counts.call_count = now[site];
      inbox_->define_counts(counts);
    }
  }
  ring.has_counts = counted_calls != 0;
  state_->process(ring.cell).counted_calls.store(counted_calls, std::memory_order_relaxed);
}

}  // namespace aon::agent
