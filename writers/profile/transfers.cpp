#include "writers/profile/transfers.h"

namespace aon::writers::profile {

void TransferTable::begin(const Group& group) {
  if (group_ == &group) return;
  group_ = &group;
  windows_ = LocalIds(group.window_map);
}

int64_t TransferTable::target_of(uint32_t window, int32_t peer) const {
  const GlobalCommunicator& c = model_->communicators[model_->windows[window].communicator];
  if (c.kind == CommunicatorKind::kSelf) return group_->id;
  if (peer < 0 || static_cast<size_t>(peer) >= c.members.size()) return kOtherDestination;
  return c.members[static_cast<size_t>(peer)];
}

void TransferTable::add(const Event& event) {
  if (event.kind != EventKind::kRmaTransfer) return;
  const uint32_t window = windows_.global(event.communicator);
  if (window >= model_->windows.size()) return;
  Origin& origin = origins_[group_->id];
  int64_t target = target_of(window, event.peer);
  if (target >= 0 && origin.sums.find({window, target}) == origin.sums.end()) {
    size_t& count = origin.target_count[window];
    if (count >= kMaxPartners) {
      target = kOtherDestination;
    } else {
      ++count;
    }
  }
  TransferSum& sum = origin.sums[{window, target}];
  const auto operation = static_cast<RmaOperation>(event.tag);
  sum.put_count += operation == RmaOperation::kPut ? 1 : 0;
  sum.get_count += operation == RmaOperation::kGet ? 1 : 0;
  sum.atomic_count += operation > RmaOperation::kGet ? 1 : 0;
  sum.bytes_sent += event.bytes;
  sum.bytes_received += event.bytes_received;
}

std::vector<TransferRow> TransferTable::rows() const {
  std::vector<TransferRow> rows;
  for (uint32_t group = 0; group < origins_.size(); ++group) {
    for (const auto& [key, sum] : origins_[group].sums) {
      rows.push_back({group, key.first, key.second, sum});
    }
  }
  return rows;
}

}  // namespace aon::writers::profile
