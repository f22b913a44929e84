#include "core/agent/segments.h"

#include <algorithm>
#include <cerrno>

#include "core/base/descriptors.h"
#include "core/base/disk_room.h"
#include "core/base/log.h"
#include "core/spool/block_reader.h"
#include "core/spool/block_writer.h"

namespace aon::agent {
namespace {

constexpr uint64_t kLeastSegmentBytes = 16384;
constexpr uint64_t kSegmentsOfAnOwner = 4;  ///< or more, where all write as much
constexpr int kShortPeriods = 5;            ///< between looks while the floor is not free
constexpr uint64_t kStepsForRoom = 8;       ///< of its segments an agent gives one in each
constexpr uint64_t kIdleFlushes = 16;       ///< without a block: longer than samples wait
constexpr size_t kBufferBytes = 1u << 20;   ///< written early when a buffer passes it

uint32_t owner_slot(const spool::SegmentName& name) {
  return name.slot ? uint32_t{*name.slot} : kSharedFile;
}

void add_block(const spool::BlockHeader& header, TallyMap* tally) {
  if (header.counted_count == 0) return;
  std::vector<SequenceRange>& ranges = (*tally)[{header.slot, header.context}];
  const bool follows = !ranges.empty() &&
                       ranges.back().first_sequence + ranges.back().count == header.first_sequence;
  if (!follows) ranges.push_back({header.first_sequence, 0, header.first_ticks, 0});
  SequenceRange& range = ranges.back();
  range.count += header.counted_count;
  range.first_ticks = std::min(range.first_ticks, header.first_ticks);
  range.last_ticks = std::max(range.last_ticks, header.last_ticks);
}

void add_header(const spool::BlockPosition& position, void* tally) {
  add_block(position.header, static_cast<TallyMap*>(tally));
}

}  // namespace

uint64_t Segments::Owner::total() const noexcept {
  uint64_t sum = 0;
  for (const Segment& segment : segments) sum += segment.bytes;
  return sum;
}

Segments::~Segments() {
  for (auto& [key, owner] : owners_) close_file(owner);
}

spool::SegmentName Segments::name_of(const OwnerKey& key, uint32_t segment) const {
  spool::SegmentName name;
  name.process = key.first;
  if (key.second != kSharedFile) name.slot = static_cast<uint16_t>(key.second);
  name.segment = segment;
  return name;
}

void Segments::find_cells() {
  const uint64_t commit = state_->commit();
  const uint32_t count = state_->header().file_count.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < count; ++i) {
    const FileCell& cell = state_->file(i);
    const FileProgress& progress = cell.progress.at(commit);
    Owner& owner = owners_[{cell.process, cell.slot}];
    owner.cell = i;
    owner.has_current = progress.in_use != 0;
    current_count_ += owner.has_current ? 1 : 0;
    owner.block_sequence = progress.block_sequence;
    owner.next_segment = std::max(progress.segment, cell.first_segment);
  }
}

Status Segments::restore(const std::string& folder) {
  find_cells();
  auto listed = spool::list_segments(folder);
  if (!listed) return listed.error();
  for (const auto& [process, names] : *listed) {
    for (const spool::SegmentName& name : names) {
      if (Status status = restore_segment(folder, name); !status) return status;
    }
  }
  for (auto& [key, owner] : owners_) {
    // A current segment without a file had no block yet.
    const bool is_there =
        !owner.segments.empty() && owner.segments.back().number == owner.next_segment;
    if (owner.has_current && !is_there) owner.segments.push_back({owner.next_segment, 0, {}});
    if (owner.has_current) ++owner.next_segment;
  }
  return {};
}

Status Segments::restore_segment(const std::string& folder, const spool::SegmentName& name) {
  const OwnerKey key{name.process, owner_slot(name)};
  const std::string file = spool::segment_file_name(name);
  Owner& owner = owners_[key];
  Segment segment{name.segment, 0, {}};
  if (owner.cell == kNoCell || name.segment < state_->file(owner.cell).first_segment) {
    owner.next_segment = std::max(owner.next_segment, name.segment + 1);  // of an earlier agent
  } else if (name.segment >= owner.next_segment) {
    if (name.segment > owner.next_segment || !owner.has_current) {
      sink_->unlink(file);  // created after the last commit
      return {};
    }
    const int fd = sink_->open(file);
    if (fd < 0) return Error{Code::kIo, "cannot open segment " + file};
    const FileProgress& progress = state_->file(owner.cell).progress.at(state_->commit());
    sink_->truncate(fd, progress.bytes);
    sink_->close(fd);
  }
  auto scan = spool::scan_headers(folder + "/" + file, add_header, &segment.tally);
  if (!scan) return scan.error();
  segment.bytes = scan->valid_bytes;
  total_bytes_ += segment.bytes;
  owner.segments.push_back(std::move(segment));
  return {};
}

Segments::Owner& Segments::owner_of(uint32_t process, uint32_t slot) {
  Owner& owner = owners_[{process, slot}];
  if (owner.cell != kNoCell) return owner;
  StateHeader& header = state_->header();
  const uint32_t index = header.file_count.load(std::memory_order_relaxed);
  if (index == state_->sizes().files) return owner;
  FileCell& cell = state_->file(index);
  cell.process = process;
  cell.slot = slot;
  cell.first_segment = owner.next_segment;
  header.file_count.store(index + 1, std::memory_order_release);  // pairs with agent:cells
  owner.cell = index;
  return owner;
}

void Segments::end_segment(Owner& owner) {
  close_file(owner);
  if (owner.has_current) --current_count_;
  owner.has_current = false;
  owner.block_sequence = 0;
  owner.is_changed = true;
}

Result<spool::BlockHeader> Segments::append(uint32_t process, uint16_t slot, bool is_chatty,
                                            const Seal& seal) {
  const uint32_t file_slot = is_chatty ? uint32_t{slot} : kSharedFile;
  const OwnerKey key{process, file_slot};
  Owner& owner = owner_of(process, file_slot);
  if (owner.cell == kNoCell) return Error{Code::kUnavailable, "too many segment files"};
  if (owner.has_current && owner.segments.back().bytes + owner.buffer.size() >= segment_limit()) {
    // Lost blocks of a full disk are found again by the caller's next flush().
    if (owner.buffer.empty() || write_buffer(key, owner) == 0) end_segment(owner);
  }
  if (!owner.has_current) {
    owner.segments.push_back({owner.next_segment++, 0, {}});
    owner.has_current = true;
    ++current_count_;
    owner.block_sequence = 0;
    owner.is_changed = true;
  }
  const size_t bytes_before = owner.buffer.size();
  auto header = seal(owner.block_sequence, &owner.buffer);
  if (!header || header->record_count == 0) return header;
  ++owner.block_sequence;
  owner.buffered.push_back(*header);
  owner.buffered_bytes.push_back(owner.buffer.size() - bytes_before);
  if (owner.buffer.size() >= owner.failed_bytes + kBufferBytes) write_buffer(key, owner);
  return header;
}

int Segments::open_current(const OwnerKey& key, Owner& owner) {
  owner.written_in = flush_count_;
  if (owner.fd >= 0) {
    open_.splice(open_.end(), open_, owner.open_at);
    return 0;
  }
  if (open_.size() >= limits_.open_files) close_one_file();
  const std::string name = spool::segment_file_name(name_of(key, owner.segments.back().number));
  int fd = sink_->open(name);
  if ((fd == -EMFILE || fd == -ENFILE) && !open_.empty()) {
    close_one_file();
    fd = sink_->open(name);
  }
  if (fd < 0) return -fd;
  if (is_among_the_last(fd)) close_one_file();
  owner.fd = fd;
  owner.open_at = open_.insert(open_.end(), &owner);
  return 0;
}

void Segments::close_one_file() {
  if (open_.empty()) return;
  const bool is_idle = open_.front()->written_in + kIdleFlushes < flush_count_;
  close_file(is_idle ? *open_.front() : *open_.back());
}

void Segments::close_file(Owner& owner) {
  if (owner.fd < 0) return;
  sink_->close(owner.fd);
  owner.fd = -1;
  open_.erase(owner.open_at);
}

int Segments::write_buffer(const OwnerKey& key, Owner& owner) {
  Segment& segment = owner.segments.back();
  int error = open_current(key, owner);
  if (error == 0) {
    error = sink_->write(owner.fd, owner.buffer, segment.bytes);
    if (error != 0) sink_->truncate(owner.fd, segment.bytes);
  }
  owner.failed_bytes = error != 0 ? owner.buffer.size() : 0;
  if (error != 0) return error;  // kept in the buffer: flush() decides
  segment.bytes += owner.buffer.size();
  total_bytes_ += owner.buffer.size();
  for (const spool::BlockHeader& header : owner.buffered) add_block(header, &segment.tally);
  owner.buffer.clear();
  owner.buffered.clear();
  owner.buffered_bytes.clear();
  owner.is_changed = true;
  return 0;
}

int Segments::flush(bool is_last, std::vector<spool::BlockHeader>* lost) {
  int last_error = 0;
  ++flush_count_;
  for (auto& [key, owner] : owners_) {
    if (owner.buffer.empty()) continue;
    const int error = write_buffer(key, owner);
    if (error != 0) last_error = error;
  }
  if (last_error != 0) keep_newest(is_last ? 0 : limits_.kept_bytes, lost);
  return last_error;
}

/// Oldest first, of all owners together.
void Segments::keep_newest(uint64_t kept_bytes, std::vector<spool::BlockHeader>* lost) {
  std::map<Owner*, size_t> dropped;  // blocks of those with any
  uint64_t bytes = 0;
  for (auto& [key, owner] : owners_) {
    if (owner.buffer.empty()) continue;
    dropped[&owner] = 0;
    bytes += owner.buffer.size();
  }
  while (bytes > kept_bytes) {
    Owner* oldest = nullptr;
    const auto front_ticks = [&](Owner* owner) {
      return owner->buffered[dropped[owner]].first_ticks;
    };
    for (const auto& [owner, count] : dropped) {
      if (count == owner->buffered.size()) continue;
      if (oldest == nullptr || front_ticks(owner) < front_ticks(oldest)) oldest = owner;
    }
    if (oldest == nullptr) break;
    bytes -= oldest->buffered_bytes[dropped[oldest]++];
  }
  for (const auto& [owner, count] : dropped) drop_front(*owner, count, lost);
}

void Segments::drop_front(Owner& owner, size_t block_count, std::vector<spool::BlockHeader>* lost) {
  if (block_count == 0) return;
  const auto count = static_cast<std::ptrdiff_t>(block_count);
  uint64_t number = owner.block_sequence - owner.buffered.size();
  size_t bytes = 0;
  for (size_t i = 0; i < block_count; ++i) bytes += owner.buffered_bytes[i];
  lost->insert(lost->end(), owner.buffered.begin(), owner.buffered.begin() + count);
  owner.buffered.erase(owner.buffered.begin(), owner.buffered.begin() + count);
  owner.buffered_bytes.erase(owner.buffered_bytes.begin(), owner.buffered_bytes.begin() + count);
  owner.buffer.erase(owner.buffer.begin(),
                     owner.buffer.begin() + static_cast<std::ptrdiff_t>(bytes));
  owner.failed_bytes = owner.buffer.size();
  owner.block_sequence -= block_count;
  // A gap in the numbers of a file means damage.
  size_t at = 0;
  for (size_t i = 0; i < owner.buffered.size(); ++i) {
    owner.buffered[i].block_sequence = number;
    spool::renumber_block(owner.buffer.data() + at, number++);
    at += owner.buffered_bytes[i];
  }
}

void Segments::stage_commit(uint64_t commit) {
  for (auto& [key, owner] : owners_) {
    if (!owner.is_changed || owner.cell == kNoCell) continue;
    FileProgress progress{};
    progress.in_use = owner.has_current ? 1 : 0;
    progress.bytes = owner.has_current ? owner.segments.back().bytes : 0;
    progress.block_sequence = owner.block_sequence;
    progress.segment = owner.has_current ? owner.segments.back().number : owner.next_segment;
    state_->file(owner.cell).progress.set(commit, progress);
    owner.is_changed = false;
  }
}

void Segments::measure_room() {
  const auto now = std::chrono::steady_clock::now();
  // What was removed may be free only later, and more agents may see the same disk: what is short
  // goes in steps, with time between them.
  const auto period = (is_short_ ? kShortPeriods : 1) * limits_.room_period;
  if (last_look_ && now - *last_look_ < period) return;
  last_look_ = now;
  const auto space = sink_->space();
  floor_bytes_ = space ? left_by_spool_bytes(space->all_bytes) : 0;
  room_bytes_ = ~uint64_t{0};
  is_short_ = false;
  if (floor_bytes_ == 0) return;
  const uint64_t with_free = total_bytes_ + space->free_bytes;
  room_bytes_ = with_free > floor_bytes_ ? with_free - floor_bytes_ : 0;
  is_short_ = room_bytes_ < total_bytes_;
  if (is_short_) room_bytes_ = std::max(room_bytes_, total_bytes_ - total_bytes_ / kStepsForRoom);
}

/// Small enough that each owner has some when the cap is reached, so that its oldest can go alone.
uint64_t Segments::segment_limit() const noexcept {
  const uint64_t share = limits_.total_bytes / (kSegmentsOfAnOwner * std::max(current_count_, 1u));
  const bool is_tight = room_bytes_ < total_bytes_ + floor_bytes_;
  const uint64_t small =
      is_tight ? std::min(limits_.segment_bytes / 16, floor_bytes_ / 8) : limits_.segment_bytes;
  return std::min(std::max(std::min(small, share), kLeastSegmentBytes), limits_.segment_bytes);
}

std::optional<Victim> Segments::next_victim() {
  const bool is_for_room = total_bytes_ <= limits_.total_bytes;
  if (is_for_room && total_bytes_ <= room_bytes_) return std::nullopt;
  const OwnerKey* key = nullptr;
  Owner* largest = nullptr;
  // What is newest of an owner goes when no other has anything older.
  std::pair<bool, uint64_t> largest_rank;  // whether it keeps its newest, bytes
  for (auto& [candidate, owner] : owners_) {
    if (is_for_room && owner.segments.size() < 2) continue;
    const bool keeps_newest = owner.segments.size() > 1 || !owner.has_current;
    const std::pair rank(keeps_newest, owner.total());
    if (owner.total() == 0 || rank <= largest_rank) continue;
    key = &candidate;
    largest = &owner;
    largest_rank = rank;
  }
  if (largest == nullptr) return std::nullopt;
  if (largest->segments.size() == 1 && largest->has_current) {
    if (!largest->buffer.empty()) return std::nullopt;
    end_segment(*largest);
  }
  const Segment& oldest = largest->segments.front();
  return Victim{name_of(*key, oldest.number), oldest.bytes, oldest.tally, is_for_room};
}

void Segments::remove(const spool::SegmentName& name) {
  const int error = sink_->unlink(spool::segment_file_name(name));
  if (error != 0 && error != ENOENT) AON_LOG_WARNING("cannot remove a segment: errno %d", error);
  Owner& owner = owners_[{name.process, owner_slot(name)}];
  const auto it = std::find_if(owner.segments.begin(), owner.segments.end(),
                               [&](const Segment& s) { return s.number == name.segment; });
  if (it == owner.segments.end()) return;
  total_bytes_ -= it->bytes;
  owner.segments.erase(it);
}

void Segments::close_process(uint32_t process) {
  for (auto it = owners_.lower_bound({process, 0}); it != owners_.end(); ++it) {
    if (it->first.first != process) break;
    close_file(it->second);
  }
}

}  // namespace aon::agent
