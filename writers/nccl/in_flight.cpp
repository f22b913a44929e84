#include "writers/nccl/in_flight.h"

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
