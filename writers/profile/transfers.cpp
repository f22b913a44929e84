#include "writers/profile/transfers.h"

namespace aon::writers::profile {

void TransferTable::begin(const Group& group) {
  if (group_ == &group) return;
  group_ = &group;
  origin_ = &origins_[group.id];
  windows_ = LocalIds(group.window_map);
}

int64_t TransferTable::target_of(uint32_t window, int32_t peer) const {
  const GlobalCommunicator& c = model_->communicators[model_->windows[window].communicator];
  if (c.kind == CommunicatorKind::kSelf) return group_->id;
  if (peer < 0 || static_cast<size_t>(peer) >= c.members.size()) return kOtherDestination;
  return c.members[static_cast<size_t>(peer)];
}

TransferSum* TransferTable::sum_of(Origin* origin, uint32_t window, int64_t target) {
  if (target >= 0 && origin->sums.find({window, target}) == origin->sums.end()) {
    size_t& count = origin->target_count[window];
    if (count >= kMaxPartners) {
      target = kOtherDestination;
    } else {
      ++count;
    }
  }
  return &origin->sums[{window, target}];
}

void TransferTable::add(const Event& event) {
  if (event.kind != EventKind::kRmaTransfer) return;
  const uint32_t window = windows_.global(event.communicator);
  if (window >= model_->windows.size()) return;
  TransferSum& sum = *sum_of(origin_, window, target_of(window, event.peer));
  const auto operation = static_cast<RmaOperation>(event.tag);
  sum.put_count += operation == RmaOperation::kPut ? 1 : 0;
  sum.get_count += operation == RmaOperation::kGet ? 1 : 0;
  sum.atomic_count += operation > RmaOperation::kGet ? 1 : 0;
  sum.bytes_sent += event.bytes;
  sum.bytes_received += event.bytes_received;
}

std::vector<TransferRow> TransferTable::rows() const {
  std::vector<TransferRow> rows;
  for (const auto& [group, origin] : origins_) {
    for (const auto& [key, sum] : origin.sums) {
      rows.push_back({group, key.first, key.second, sum});
    }
  }
  return rows;
}

void TransferTable::save(StateOut* out) {
  out->put(rows());
  origins_.clear();
  group_ = nullptr;
}

Status TransferTable::load(StateIn* in) {
  std::vector<TransferRow> rows;
  if (!in->get(&rows)) return in->status();
  for (const TransferRow& row : rows) {
    if (row.origin >= model_->groups.size()) return unknown_id("process");
    if (row.window >= model_->windows.size()) return unknown_id("window");
    TransferSum& sum = *sum_of(&origins_[row.origin], row.window, row.target);
    sum.put_count += row.sum.put_count;
    sum.get_count += row.sum.get_count;
    sum.atomic_count += row.sum.atomic_count;
    sum.bytes_sent += row.sum.bytes_sent;
    sum.bytes_received += row.sum.bytes_received;
  }
  return {};
}

}  // namespace aon::writers::profile
