#include "writers/profile/messages.h"

#include <algorithm>

namespace aon::writers::profile {

MessageTable::MessageTable(const Model& model)
    : model_(&model),
      senders_(model.groups.size()),
      partner_index_(model.groups.size(), kNoPartner) {}

void MessageTable::begin(const Group& group) {
  if (group_ == &group) return;
  if (group_ != nullptr) {
    for (const Partner& p : senders_[group_->id].partners)
      partner_index_[p.destination] = kNoPartner;
  }
  group_ = &group;
  communicators_ = LocalIds(group.communicator_map);
  const std::vector<Partner>& partners = senders_[group.id].partners;
  for (size_t i = 0; i < partners.size(); ++i) {
    partner_index_[partners[i].destination] = static_cast<uint8_t>(i);
  }
}

int64_t MessageTable::world_rank(uint32_t communicator, int32_t peer) const {
  const uint32_t global = communicators_.global(communicator);
  if (global >= model_->communicators.size() || peer < 0) return kOtherDestination;
  const GlobalCommunicator& c = model_->communicators[global];
  if (static_cast<size_t>(peer) >= c.members.size()) return kOtherDestination;
  const int64_t rank = c.members[static_cast<size_t>(peer)];
  return rank < static_cast<int64_t>(partner_index_.size()) ? rank : kOtherDestination;
}

void MessageTable::add(const Event& event) {
  if (event.kind != EventKind::kSend && event.kind != EventKind::kSendRequest) return;
  Sender& sender = senders_[group_->id];
  const int64_t destination = world_rank(event.communicator, event.peer);
  if (destination < 0) {
    sender.other.add(event.bytes);
    return;
  }
  uint8_t& index = partner_index_[static_cast<size_t>(destination)];
  if (index == kNoPartner) {
    if (sender.partners.size() >= kMaxPartners) {
      sender.other.add(event.bytes);
      return;
    }
    index = static_cast<uint8_t>(sender.partners.size());
    sender.partners.push_back({static_cast<uint32_t>(destination), {}});
  }
  sender.partners[index].sum.add(event.bytes);
}

std::vector<MessageRow> MessageTable::rows() const {
  std::vector<MessageRow> rows;
  for (uint32_t group = 0; group < senders_.size(); ++group) {
    const Sender& sender = senders_[group];
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

}  // namespace aon::writers::profile
