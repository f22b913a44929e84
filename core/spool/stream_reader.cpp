#include "core/spool/stream_reader.h"

#include <aon/lost_record.h>

#include <algorithm>

#include "core/spool/indexed_block.h"

namespace aon::spool {
namespace {

constexpr size_t kBatchRecords = 256;  ///< 32 KiB: stays in the first-level cache

/// The records of one stream (slot and context), with a look at the next one.
class ContextReader {
 public:
  ContextReader(const ProcessIndex& index, const Process* process, uint16_t slot, uint16_t context);

  /// Makes sure there is a record to look at. False at the end of the stream.
  Result<bool> fill();

  std::span<const Record> rest() const { return {batch_.data() + at_, count_ - at_}; }
  const Record& front() const { return batch_[at_]; }
  void take(size_t count) { at_ += count; }
  /// The rest() starts anew: records before it are missing, or there were none.
  bool is_resync() const { return resync_ && at_ == 0; }
  std::span<const OpenRegion> open_regions() const { return open_; }
  const StreamLosses& losses() const { return losses_; }

 private:
  Result<bool> open_block();
  bool is_duplicate(const BlockEntry& block) const;
  void decode_batch();
  void note_gap(uint64_t end_sequence, uint64_t next_ticks);
  uint64_t earliest_ticks(uint64_t next_ticks) const;
  void add_loss(LossReason reason, uint64_t count, uint64_t start_ticks, uint64_t end_ticks);

  std::span<const BlockEntry> blocks_;
  std::vector<LossDefinition> known_;  ///< by first_sequence
  uint64_t committed_ = 0;             ///< counted records of the stream, as the agent knows them
  uint64_t told_end_ = 0;  ///< the same, of the blocks so far, those that cannot be read as well
  uint64_t attach_ticks_ = 0;
  uint64_t exit_ticks_ = 0;

  size_t next_block_ = 0;
  uint64_t sequence_ = 0;  ///< counted records that came out or were reported missing
  uint64_t skip_before_ = 0;
  uint64_t block_sequence_ = 0;  ///< of the next counted record of the open block
  uint64_t last_ticks_ = 0;
  bool has_block_ = false;
  bool resync_next_ = true;
  bool tail_done_ = false;

  IndexedBlockReader reader_;
  std::vector<OpenRegion> open_;
  std::vector<Record> batch_;
  size_t at_ = 0;
  size_t count_ = 0;
  bool resync_ = false;
  StreamLosses losses_;
};

ContextReader::ContextReader(const ProcessIndex& index, const Process* process, uint16_t slot,
                             uint16_t context)
    : blocks_(index.blocks(slot, context)), reader_(index), batch_(kBatchRecords) {
  if (process == nullptr) return;
  attach_ticks_ = process->start.attach_ticks;
  exit_ticks_ = process->exit ? process->exit->end_ticks : 0;
  const auto stream = process->streams.find({slot, context});
  if (stream != process->streams.end()) committed_ = stream->second.committed;
  for (const LossDefinition& loss : process->losses) {
    if (loss.slot == slot && loss.context == context && loss.count != 0) known_.push_back(loss);
  }
  std::stable_sort(known_.begin(), known_.end(), [](const auto& a, const auto& b) {
    return a.first_sequence < b.first_sequence;
  });
}

bool ContextReader::is_duplicate(const BlockEntry& block) const {
  if (block.counted_count != 0) return block.first_sequence + block.counted_count <= sequence_;
  if (block.first_sequence < sequence_) return true;
  if (next_block_ == 0) return false;
  const BlockEntry& before = blocks_[next_block_ - 1];
  return before.counted_count == 0 && before.first_sequence == block.first_sequence &&
         before.first_ticks == block.first_ticks && before.record_count == block.record_count;
}

void ContextReader::add_loss(LossReason reason, uint64_t count, uint64_t start_ticks,
                             uint64_t end_ticks) {
  losses_.count[static_cast<uint32_t>(reason)] += count;
  if (count_ == batch_.size()) batch_.resize(batch_.size() * 2);
  batch_[count_++] = lost_record(reason, count, start_ticks, end_ticks);
  last_ticks_ = end_ticks;
}

/// Of anything in the stream. A node's own series have no process that attached.
uint64_t ContextReader::earliest_ticks(uint64_t next_ticks) const {
  if (attach_ticks_ != 0) return attach_ticks_;
  const bool is_told = !known_.empty() && known_.front().start_ticks != 0;
  return is_told ? known_.front().start_ticks : next_ticks;
}

/// Reports the counted records from sequence_ to `end_sequence`: those in the known losses under
/// their reason, the others as damaged. `next_ticks` is the earliest time of what follows.
void ContextReader::note_gap(uint64_t end_sequence, uint64_t next_ticks) {
  const uint64_t low =
      last_ticks_ == 0 ? std::min(earliest_ticks(next_ticks), next_ticks) : last_ticks_;
  const uint64_t high = std::max(low, next_ticks);
  last_ticks_ = low;
  for (const LossDefinition& loss : known_) {
    const uint64_t loss_end = loss.first_sequence + std::min(loss.count, ~loss.first_sequence);
    const uint64_t start = std::max(loss.first_sequence, sequence_);
    const uint64_t end = std::min(loss_end, end_sequence);
    if (start >= end) continue;
    if (start > sequence_) {
      add_loss(LossReason::kDamaged, start - sequence_, last_ticks_,
               std::clamp(loss.start_ticks, last_ticks_, high));
    }
    const uint64_t from = std::clamp(loss.start_ticks, last_ticks_, high);
    const auto reason = static_cast<LossReason>(std::min(loss.reason, kLossReasonCount - 1));
    add_loss(reason, end - start, from, std::clamp(loss.end_ticks, from, high));
    sequence_ = end;
  }
  if (sequence_ < end_sequence) {
    add_loss(LossReason::kDamaged, end_sequence - sequence_, last_ticks_, high);
    sequence_ = end_sequence;
  }
  resync_next_ = true;
}

/// Opens the next block that brings something new; reports what is missing before it. False when
/// no block is left.
Result<bool> ContextReader::open_block() {
  for (; next_block_ < blocks_.size(); ++next_block_) {
    const BlockEntry& block = blocks_[next_block_];
    if (is_duplicate(block)) continue;
    const Result<IndexedBlockReader::Opened> opened = reader_.open(block);
    if (!opened) return opened.error();
    if (*opened != IndexedBlockReader::Opened::kGone) {
      told_end_ = std::max(told_end_, block.first_sequence + block.counted_count);
    }
    if (*opened != IndexedBlockReader::Opened::kYes) {
      losses_.damaged_blocks += *opened == IndexedBlockReader::Opened::kDamaged ? 1 : 0;
      resync_next_ = true;
      continue;
    }
    if (block.first_sequence > sequence_) note_gap(block.first_sequence, block.first_ticks);
    skip_before_ = sequence_;
    block_sequence_ = block.first_sequence;
    ++next_block_;
    has_block_ = true;
    return true;
  }
  return false;
}

/// Decodes the next records of the open block behind the ones in the batch.
void ContextReader::decode_batch() {
  Result<size_t> got = reader_.next({batch_.data() + count_, batch_.size() - count_});
  if (!got || *got == 0) {
    has_block_ = false;
    if (got) return;
    ++losses_.damaged_blocks;
    resync_next_ = true;
    return;
  }
  const size_t first = count_;
  for (size_t i = first; i < first + *got; ++i) {
    const bool counted = is_counted(batch_[i].head.kind);
    const bool skipped = block_sequence_ < skip_before_;
    block_sequence_ += counted ? 1 : 0;
    if (skipped) continue;
    if (count_ != i) batch_[count_] = batch_[i];
    ++count_;
  }
  sequence_ = std::max(sequence_, block_sequence_);
  if (count_ > first) last_ticks_ = std::max(last_ticks_, end_ticks(batch_[count_ - 1]));
}

Result<bool> ContextReader::fill() {
  if (at_ < count_) return true;
  at_ = count_ = 0;
  resync_ = false;
  while (count_ == 0) {
    if (has_block_) {
      decode_batch();
      continue;
    }
    const Result<bool> opened = open_block();
    if (!opened) return opened.error();
    if (!*opened) {
      const uint64_t tail_ticks = std::max({last_ticks_, attach_ticks_, exit_ticks_});
      const uint64_t end = std::max(committed_, told_end_);
      if (!tail_done_ && end > sequence_) note_gap(end, tail_ticks);
      // No record says any more what is open.
      for (Record& lost : std::span(batch_).first(count_)) {
        lost.head.a32 = pack_lost_regions(kAllRegions, 0);
      }
      if (tail_done_ || count_ == 0) return false;
      tail_done_ = true;
    }
    if (resync_next_ && *opened) {
      resync_ = true;
      resync_next_ = false;
      const auto regions = reader_.open_regions();
      open_.assign(regions.begin(), regions.end());
    }
  }
  return true;
}

}  // namespace

struct StreamReader::State {
  ContextReader normal;
  ContextReader nested;
  std::vector<Record> merged;
  StreamLosses losses;

  State(const ProcessIndex& index, const Process* process, uint16_t slot)
      : normal(index, process, slot, 0), nested(index, process, slot, 1) {}

  void merge();
};

/// Merges what both contexts have at hand, in order of end time, until one of them runs out, or
/// a gap comes: what is open behind it was not open before.
void StreamReader::State::merge() {
  merged.clear();
  const auto a = normal.rest();
  const auto b = nested.rest();
  size_t i = 0;
  size_t j = 0;
  while (i < a.size() && j < b.size()) {
    const bool take_nested = end_ticks(b[j]) < end_ticks(a[i]);
    if (!take_nested && j != 0 && i == 0 && normal.is_resync()) break;
    merged.push_back(take_nested ? b[j++] : a[i++]);
  }
  normal.take(i);
  nested.take(j);
}

StreamReader::StreamReader(const ProcessIndex& index, const Process* process, uint16_t slot)
    : state_(std::make_unique<State>(index, process, slot)) {}
StreamReader::~StreamReader() = default;
StreamReader::StreamReader(StreamReader&&) noexcept = default;
StreamReader& StreamReader::operator=(StreamReader&&) noexcept = default;

Result<StreamBatch> StreamReader::next() {
  State& s = *state_;
  const Result<bool> has_normal = s.normal.fill();
  if (!has_normal) return has_normal.error();
  const Result<bool> has_nested = s.nested.fill();
  if (!has_nested) return has_nested.error();
  StreamBatch batch;
  batch.is_resync = *has_normal && s.normal.is_resync();
  if (*has_normal && *has_nested) {
    s.merge();
    batch.is_resync = batch.is_resync && !s.normal.is_resync();
    if (batch.is_resync) batch.open = s.normal.open_regions();
    batch.records = s.merged;
    return batch;
  }
  if (batch.is_resync) batch.open = s.normal.open_regions();
  ContextReader& only = *has_normal ? s.normal : s.nested;
  if (*has_normal || *has_nested) {
    batch.records = only.rest();
    only.take(batch.records.size());
  }
  return batch;
}

const StreamLosses& StreamReader::losses() const {
  State& s = *state_;
  for (uint32_t i = 0; i < kLossReasonCount; ++i) {
    s.losses.count[i] = s.normal.losses().count[i] + s.nested.losses().count[i];
  }
  s.losses.damaged_blocks = s.normal.losses().damaged_blocks + s.nested.losses().damaged_blocks;
  return s.losses;
}

}  // namespace aon::spool
