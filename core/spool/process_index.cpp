#include "core/spool/process_index.h"

#include <algorithm>

#include "core/spool/block_reader.h"

namespace aon::spool {
namespace {

struct ScanTarget {
  std::map<ProcessIndex::StreamKey, std::vector<BlockEntry>>* streams;
  uint32_t process;
  uint32_t file;
  uint64_t foreign_blocks;
};

void add_block(const BlockPosition& position, void* argument) {
  auto* target = static_cast<ScanTarget*>(argument);
  const BlockHeader& h = position.header;
  if (h.kind != BlockKind::kRecords || h.process != target->process || h.context > 1) {
    ++target->foreign_blocks;
    return;
  }
  (*target->streams)[{h.slot, h.context}].push_back(
      {position.offset, h.first_sequence, h.first_ticks, h.last_ticks, target->file, h.record_count,
       h.counted_count, h.raw_bytes, h.compressed_bytes});
}

}  // namespace

Result<ProcessIndex> ProcessIndex::build(const std::filesystem::path& folder, uint32_t process,
                                         std::span<const SegmentName> segments) {
  ProcessIndex index;
  index.process_ = process;
  std::vector<SegmentName> in_order(segments.begin(), segments.end());
  std::stable_sort(in_order.begin(), in_order.end(),
                   [](const auto& a, const auto& b) { return a.segment < b.segment; });
  for (const SegmentName& name : in_order) {
    const std::string path = (folder / segment_file_name(name)).string();
    ScanTarget target{&index.streams_, process, static_cast<uint32_t>(index.files_.size()), 0};
    const Result<ScanResult> scan = scan_headers(path, add_block, &target);
    if (!scan && scan.error().code == Code::kNotFound) continue;
    if (!scan) return scan.error();
    index.files_.push_back(path);
    index.damaged_blocks_ += scan->damaged_blocks + target.foreign_blocks;
  }
  bool is_first = true;
  for (auto& [key, blocks] : index.streams_) {
    std::stable_sort(blocks.begin(), blocks.end(), [](const BlockEntry& a, const BlockEntry& b) {
      return a.first_sequence < b.first_sequence;
    });
    blocks.shrink_to_fit();
    for (const BlockEntry& block : blocks) {
      if (is_first || block.first_ticks < index.first_ticks_) {
        index.first_ticks_ = block.first_ticks;
      }
      index.last_ticks_ = std::max(index.last_ticks_, block.last_ticks);
      is_first = false;
    }
  }
  return index;
}

std::vector<uint16_t> ProcessIndex::slots() const {
  std::vector<uint16_t> slots;
  for (const auto& [key, blocks] : streams_) {
    if (slots.empty() || slots.back() != key.first) slots.push_back(key.first);
  }
  return slots;
}

std::span<const BlockEntry> ProcessIndex::blocks(uint16_t slot, uint16_t context) const {
  const auto found = streams_.find({slot, context});
  if (found == streams_.end()) return {};
  return found->second;
}

}  // namespace aon::spool
