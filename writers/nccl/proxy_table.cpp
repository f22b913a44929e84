#include "writers/nccl/proxy_table.h"

#include <algorithm>
#include <vector>

namespace aon::writers::nccl {
namespace {

struct SavedRow {
  uint32_t communicator;
  uint32_t group;
  int32_t peer;
  uint8_t is_send;
  ProxyRow sums;
};

}  // namespace

void ProxyTable::begin(const Group& group) {
  if (&group == group_) return;
  group_ = &group;
  communicators_ = profile::LocalIds(group.communicator_map);
}

ProxyRow* ProxyTable::row_of(const ProxyKey& key, uint64_t record_count) {
  auto found = rows_.find(key);
  if (found == rows_.end()) {
    if (kept_count_ == kMaxRows) {
      left_out_count_ += record_count;
      return nullptr;
    }
    ++kept_count_;
    found = rows_.try_emplace(key).first;
  }
  found->second.record_count += record_count;
  return &found->second;
}

void ProxyTable::add(const NcclProxyWork& work) {
  const uint32_t communicator = communicators_.global(work.communicator);
  if (communicator == profile::LocalIds::kNone) {
    ++left_out_count_;
    return;
  }
  ProxyRow* found = row_of({communicator, group_->id, work.peer, work.is_send}, 1);
  if (found == nullptr) return;
  ProxyRow& row = *found;
  if (work.is_last) {
    ++row.operation_count;
    row.planned_step_count += work.planned_step_count;
  }
  row.step_count += work.step_count;
  row.bytes += work.bytes;
  row.time_ns += work.end_ns - work.start_ns;
  row.gpu_ns += work.gpu_ns;
  row.peer_ns += work.peer_ns;
  row.network_ns += work.network_ns;
  row.flush_ns += work.flush_ns;
  row.longest_step_ns = std::max(row.longest_step_ns, work.longest_ns);
  row.network_event_count += work.network_event_count;
}

void ProxyTable::save(StateOut* out) {
  std::vector<SavedRow> saved;
  saved.reserve(rows_.size());
  for (const auto& [key, row] : rows_) {
    const auto [communicator, group, peer, is_send] = key;
    saved.push_back({communicator, group, peer, is_send ? uint8_t{1} : uint8_t{0}, row});
  }
  out->put(saved);
  out->put(left_out_count_);
  rows_.clear();
  left_out_count_ = 0;
}

Status ProxyTable::load(const Model& model, StateIn* in) {
  std::vector<SavedRow> saved;
  uint64_t left_out_count = 0;
  if (!in->get(&saved) || !in->get(&left_out_count)) return in->status();
  left_out_count_ += left_out_count;
  for (const auto& [communicator, group, peer, is_send, from] : saved) {
    if (group >= model.groups.size()) return unknown_id("process");
    ProxyRow* to = row_of({communicator, group, peer, is_send != 0}, from.record_count);
    if (to == nullptr) continue;
    to->operation_count += from.operation_count;
    to->step_count += from.step_count;
    to->planned_step_count += from.planned_step_count;
    to->bytes += from.bytes;
    to->time_ns += from.time_ns;
    to->gpu_ns += from.gpu_ns;
    to->peer_ns += from.peer_ns;
    to->network_ns += from.network_ns;
    to->flush_ns += from.flush_ns;
    to->longest_step_ns = std::max(to->longest_step_ns, from.longest_step_ns);
    to->network_event_count += from.network_event_count;
  }
  return {};
}

}  // namespace aon::writers::nccl
