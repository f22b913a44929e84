#include "writers/nccl/proxy_table.h"

#include <algorithm>

namespace aon::writers::nccl {

void ProxyTable::begin(const Group& group) {
  if (&group == group_) return;
  group_ = &group;
  communicators_ = profile::LocalIds(group.communicator_map);
}

void ProxyTable::add(const NcclProxyWork& work) {
  const uint32_t communicator = communicators_.global(work.communicator);
  if (communicator == profile::LocalIds::kNone) {
    ++left_out_count_;
    return;
  }
  const ProxyKey key{communicator, group_->id, work.peer, work.is_send};
  auto found = rows_.find(key);
  if (found == rows_.end()) {
    if (rows_.size() >= kMaxRows) {
      ++left_out_count_;
      return;
    }
    found = rows_.try_emplace(key).first;
  }
  ProxyRow& row = found->second;
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

}  // namespace aon::writers::nccl
