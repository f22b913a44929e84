#include "writers/assemble/nccl_overwritten.h"

#include <algorithm>
#include <tuple>

#include "core/spool/stream_reader.h"
#include "writers/assemble/nccl_record.h"

namespace aon::writers {

Status NcclOverwritten::find(const spool::ProcessIndex& index, const spool::Process& process,
                             const std::function<void()>& beat) {
  clear();
  const bool is_timed =
      process.regions.count(kNcclProxySite) != 0 || process.regions.count(kNcclFixedSite) != 0;
  if (!is_timed) return {};
  for (const uint16_t slot : index.slots()) {
    if (slot == spool::kSeriesSlot) continue;
    spool::StreamReader reader(index, &process, slot);
    for (uint64_t batches = 0;; ++batches) {
      if (batches % 1024 == 0) beat();
      const Result<spool::StreamBatch> batch = reader.next();
      if (!batch) return batch.error();
      if (batch->records.empty()) break;
      for (const Record& record : batch->records) add(record);
    }
  }
  sort();
  return {};
}

void NcclOverwritten::add(const Record& record) {
  if (!is_nccl_overwritten(record.head) || ranges_.size() >= kMaxRanges) return;
  const auto first = static_cast<uint32_t>(record.head.a64);
  const auto last = static_cast<uint32_t>(record.head.a64 >> 32);
  if (first <= last) {
    ranges_.push_back({record.head.a32, first, last});
  } else {
    ranges_.push_back({record.head.a32, first, UINT32_MAX});
    ranges_.push_back({record.head.a32, 0, last});
  }
}

void NcclOverwritten::sort() {
  std::sort(ranges_.begin(), ranges_.end(), [](const Range& a, const Range& b) {
    return std::tie(a.communicator, a.first) < std::tie(b.communicator, b.first);
  });
  std::vector<Range> joined;
  for (const Range& range : ranges_) {
    if (joined.empty() || joined.back().communicator != range.communicator ||
        joined.back().last < range.first) {
      joined.push_back(range);
    } else {
      joined.back().last = std::max(joined.back().last, range.last);
    }
  }
  ranges_ = std::move(joined);
}

bool NcclOverwritten::has(uint32_t communicator, uint32_t call) const {
  const auto behind = std::upper_bound(
      ranges_.begin(), ranges_.end(), std::tie(communicator, call),
      [](const auto& key, const Range& r) { return key < std::tie(r.communicator, r.first); });
  if (behind == ranges_.begin()) return false;
  const Range& range = *std::prev(behind);
  return range.communicator == communicator && call <= range.last;
}

std::span<const Record> NcclOverwritten::correct(std::span<const Record> records) {
  if (ranges_.empty()) return records;
  corrected_.assign(records.begin(), records.end());
  for (Record& record : corrected_) {
    if (record.head.kind != RecordKind::kNcclCall || record.head.slot_count != kNcclSlots) continue;
    if (!has(record.head.a32, static_cast<uint32_t>(record.words[1]))) continue;
    uint64_t& flags = record.words[5];
    if ((flags & uint64_t{kNcclGpuTimed} << 32) == 0) continue;
    flags = (flags & ~(uint64_t{kNcclGpuTimed} << 32)) | uint64_t{kNcclOverwritten} << 32;
  }
  return corrected_;
}

}  // namespace aon::writers
