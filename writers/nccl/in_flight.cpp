#include "writers/nccl/in_flight.h"

#include <algorithm>

namespace aon::writers::nccl {

void InFlight::add(const NcclOperation& operation) {
  Communicator& communicator = communicators_[operation.communicator];
  const uint32_t call = operation.call;
  if (call >= kMaxCalls) return;
  std::vector<bool>& has_ended = communicator.has_ended;
  if ((operation.flags & kNcclInFlight) == 0) {
    if (communicator.enqueued.erase(call) != 0) return;
    if (call >= has_ended.size()) {
      const size_t more = call + 1 - has_ended.size();
      if (bit_count_ + more > kMaxCalls) return;
      bit_count_ += more;
      has_ended.resize(call + 1);
    }
    has_ended[call] = true;
    return;
  }
  if (call < has_ended.size() && has_ended[call]) return;
  communicator.enqueued[call] = operation;
  if (communicator.enqueued.size() > kMaxKept)
    communicator.enqueued.erase(communicator.enqueued.begin());
}

std::optional<uint32_t> InFlight::last_gap(uint32_t id) const {
  const auto found = communicators_.find(id);
  if (found == communicators_.end()) return std::nullopt;
  const Communicator& communicator = found->second;
  const std::vector<bool>& has_ended = communicator.has_ended;
  uint32_t end = static_cast<uint32_t>(has_ended.size());
  if (!communicator.enqueued.empty())
    end = std::max(end, communicator.enqueued.rbegin()->first + 1);
  std::optional<uint32_t> gap;
  for (uint32_t call = end; call-- > 0;) {
    const bool is_told =
        (call < has_ended.size() && has_ended[call]) || communicator.enqueued.count(call) != 0;
    if (is_told && gap) return gap;
    if (!is_told && !gap) gap = call;
  }
  return std::nullopt;  // the first ones may have been evicted: that hides nothing
}

std::vector<NcclOperation> InFlight::take() {
  std::vector<NcclOperation> result;
  for (const auto& [id, communicator] : communicators_) {
    for (const auto& [call, operation] : communicator.enqueued) result.push_back(operation);
  }
  communicators_.clear();
  bit_count_ = 0;
  return result;
}

}  // namespace aon::writers::nccl
