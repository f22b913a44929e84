#include "core/agent/folder_scan.h"

#include <algorithm>
#include <bit>
#include <set>
#include <vector>

#include "core/spool/block_reader.h"
#include "core/spool/definitions.h"
#include "core/spool/files.h"
#include "core/spool/format.h"
#include "core/spool/indexed_block.h"
#include "core/spool/process_index.h"

namespace aon::agent {
namespace {

void raise_to(uint32_t process, uint32_t* next) {
  if (process != spool::kNodeProcess) *next = std::max(*next, process + 1);
}

using MetricIds = std::set<uint32_t>;

void take_definition(const spool::DefinitionView& view, NodeStand* stand, MetricIds* counting) {
  if (view.type == DefinitionType::kStream) {
    const auto told = spool::definition_struct<StreamDefinition>(view.payload);
    if (told && told->process == spool::kNodeProcess)
      stand->streams[{told->slot, told->context}] = *told;
  } else if (view.type == DefinitionType::kUsage) {
    const auto told = spool::definition_struct<UsageDefinition>(view.payload);
    if (told) stand->usage = *told;
  } else if (view.type == DefinitionType::kMetric) {
    const auto told = spool::definition_struct<MetricDefinition>(view.payload);
    if (told && told->mode == MetricMode::kAccumulated) counting->insert(told->id);
  }
}

void read_definitions(const std::string& folder, NodeStand* stand, MetricIds* counting) {
  auto file = spool::BlockFileReader::open(folder + "/" + spool::kDefinitionsFile);
  if (!file) return;
  spool::BlockPosition position{};
  for (;;) {
    const auto more = file->next(&position);
    if (!more || !*more) return;
    if (position.header.process != spool::kNodeProcess) continue;
    const auto payload = file->payload();
    if (!payload) continue;
    spool::DefinitionCursor cursor(*payload);
    while (const auto view = cursor.next()) take_definition(*view, stand, counting);
  }
}

/// An agent that was killed may not have told all that it wrote.
void count_blocks(const spool::ProcessIndex& index, NodeStand* stand) {
  for (const uint16_t slot : index.slots()) {
    for (const uint16_t context : {0, 1}) {
      for (const spool::BlockEntry& block : index.blocks(slot, context)) {
        StreamDefinition& stream = stand->streams[{slot, context}];
        stream.committed = std::max(stream.committed, block.first_sequence + block.counted_count);
      }
    }
  }
}

/// The last value of each metric that counts.
void read_counts(const spool::ProcessIndex& index, MetricIds counting, NodeStand* stand) {
  const auto blocks = index.blocks(spool::kSeriesSlot, 0);
  spool::IndexedBlockReader reader(index);
  std::vector<Record> records(256);
  for (size_t i = blocks.size(); i-- > 0 && !counting.empty();) {
    const auto opened = reader.open(blocks[i]);
    if (!opened || *opened != spool::IndexedBlockReader::Opened::kYes) continue;
    MetricIds seen;
    for (;;) {
      const auto got = reader.next(records);
      if (!got || *got == 0) break;
      for (const Record& record : std::span(records).first(*got)) {
        const RecordHead& head = record.head;
        if (head.kind != RecordKind::kSample || counting.count(head.id) == 0) continue;
        seen.insert(head.id);
        stand->counts[head.id] = {std::bit_cast<double>(head.a64), record.words[0],
                                  record.words[1]};
      }
    }
    for (const uint32_t metric : seen) counting.erase(metric);
  }
}

}  // namespace

uint32_t next_process_number(const std::string& folder) {
  uint32_t next = 0;
  if (auto listed = spool::list_segments(folder)) {
    for (const auto& [process, names] : *listed) raise_to(process, &next);
  }
  // Definitions stand in blocks of their process, so the headers say enough.
  auto scanned = spool::scan_headers(
      folder + "/" + spool::kDefinitionsFile,
      [](const spool::BlockPosition& position, void* out) {
        raise_to(position.header.process, static_cast<uint32_t*>(out));
      },
      &next);
  static_cast<void>(scanned);
  return next;
}

NodeStand read_node_stand(const std::string& folder) {
  NodeStand stand;
  MetricIds counting;
  read_definitions(folder, &stand, &counting);
  const auto listed = spool::list_segments(folder);
  if (!listed) return stand;
  const auto own = listed->find(spool::kNodeProcess);
  if (own == listed->end()) return stand;
  const auto index = spool::ProcessIndex::build(folder, spool::kNodeProcess, own->second);
  if (!index) return stand;
  count_blocks(*index, &stand);
  read_counts(*index, std::move(counting), &stand);
  return stand;
}

}  // namespace aon::agent
