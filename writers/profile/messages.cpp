#include "writers/profile/messages.h"

#include <algorithm>

namespace aon::writers::profile {

MessageTable::MessageTable(const Model& model)
    : model_(&model), partner_index_(model.groups.size(), kNoPartner) {}

void MessageTable::begin(const Group& group) {
  if (group_ == &group) return;
  end_group();
  group_ = &group;
  sender_ = &senders_[group.id];
  communicators_ = LocalIds(group.communicator_map);
  const std::vector<Partner>& partners = sender_->partners;
  for (size_t i = 0; i < partners.size(); ++i) {
    partner_index_[partners[i].destination] = static_cast<uint8_t>(i);
  }
}

void MessageTable::end_group() {
  if (group_ == nullptr) return;
  for (const Partner& p : sender_->partners) partner_index_[p.destination] = kNoPartner;
  group_ = nullptr;
}

int64_t MessageTable::world_rank(uint32_t communicator, int32_t peer) const {
  const uint32_t global = communicators_.global(communicator);
  if (global >= model_->communicators.size() || peer < 0) return kOtherDestination;
  const GlobalCommunicator& c = model_->communicators[global];
  if (c.kind == CommunicatorKind::kSelf) return group_->id;
  if (static_cast<size_t>(peer) >= c.members.size()) return kOtherDestination;
  const int64_t rank = c.members[static_cast<size_t>(peer)];
  return rank < static_cast<int64_t>(partner_index_.size()) ? rank : kOtherDestination;
}

void MessageTable::add(const Event& event) {
  if (event.kind == EventKind::kForeignMessage && (event.flags & kOutgoing) != 0)
    add(kOtherDestination, 1, event.bytes);
  if (event.kind != EventKind::kSend && event.kind != EventKind::kSendRequest) return;
  add(world_rank(event.communicator, event.peer), 1, event.bytes);
}

void MessageTable::add(int64_t destination, uint64_t count, uint64_t bytes) {
  if (destination < 0) {
    sender_->other.add(count, bytes);
    return;
  }
  uint8_t& index = partner_index_[static_cast<size_t>(destination)];
  if (index == kNoPartner) {
    if (sender_->partners.size() >= kMaxPartners) {
      sender_->other.add(count, bytes);
      return;
    }
    index = static_cast<uint8_t>(sender_->partners.size());
    sender_->partners.push_back({static_cast<uint32_t>(destination), {}});
  }
  sender_->partners[index].sum.add(count, bytes);
}

std::vector<MessageRow> MessageTable::rows() const {
  std::vector<MessageRow> rows;
  for (const auto& [group, sender] : senders_) {
    if (sender.other.count != 0) {
      rows.push_back({group, kOtherDestination, sender.other.count, sender.other.bytes});
    }
    for (const Partner& p : sender.partners) {
      rows.push_back({group, p.destination, p.sum.count, p.sum.bytes});
    }
  }
  std::sort(rows.begin(), rows.end(), [](const MessageRow& a, const MessageRow& b) {
    return a.source != b.source ? a.source < b.source : a.destination < b.destination;
  });
  return rows;
}

void MessageTable::save(StateOut* out) {
  end_group();
  out->put(rows());
  senders_.clear();
}

Status MessageTable::load(StateIn* in) {
  std::vector<MessageRow> rows;
  if (!in->get(&rows)) return in->status();
  for (const MessageRow& row : rows) {
    if (row.source >= model_->groups.size()) return unknown_id("process");
    if (row.destination >= static_cast<int64_t>(partner_index_.size()))
      return unknown_id("destination of messages");
    begin(model_->groups[row.source]);
    add(row.destination, row.count, row.bytes);
  }
  return {};
}

}  // namespace aon::writers::profile
