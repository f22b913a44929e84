#include "writers/devices/external_ids.h"

#include <algorithm>

namespace aon::writers::devices {

void ExternalIdTotals::add(const CallId& id) {
  const auto is_same = [&](const auto& one) { return one.first == id.kind; };
  if (std::any_of(current_.begin(), current_.end(), is_same)) return;
  auto found = rows_.find({id.kind, id.id});
  if (found == rows_.end() && rows_.size() < kMaxRows)
    found = rows_.try_emplace({id.kind, id.id}).first;
  ExternalIdRow* row = found != rows_.end() ? &found->second : nullptr;
  current_.emplace_back(id.kind, row);
  if (row == nullptr) {
    ++left_out_call_count_;
    return;
  }
  row->kind = id.kind;
  row->id = id.id;
  ++row->call_count;
}

void ExternalIdTotals::add_work(uint64_t duration_ns) {
  for (const auto& [kind, row] : current_) {
    if (row == nullptr) continue;
    ++row->count;
    row->total_ns += duration_ns;
  }
}

std::vector<ExternalIdRow> ExternalIdTotals::rows(uint32_t group) const {
  std::vector<ExternalIdRow> rows;
  rows.reserve(rows_.size());
  for (const auto& [key, row] : rows_) rows.emplace_back(row).group = group;
  return rows;
}

}  // namespace aon::writers::devices
