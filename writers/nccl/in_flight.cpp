#include "writers/nccl/in_flight.h"

#include <algorithm>
#include <bit>

namespace aon::writers::nccl {
namespace {

constexpr uint32_t kWordCalls = 64;
constexpr size_t kMaxForgottenKinds = size_t{1} << 16;

/// Calls in a row, both of them told of.
struct Run {
  uint64_t first = 0;
  uint64_t last = 0;
};

/// The highest run of `bits`, which are not 0, and of these what lies below it.
Run take_highest(uint64_t word, uint64_t* bits) {
  const auto above = static_cast<uint32_t>(std::countl_zero(*bits));
  const auto length = static_cast<uint32_t>(std::countl_one(*bits << above));
  const uint32_t first = kWordCalls - above - length;
  *bits &= (uint64_t{1} << first) - 1;
  return {word * kWordCalls + first, word * kWordCalls + first + length - 1};
}

}  // namespace

/// Who came first has its lowest ones forgotten: one that is made late in a job has room as well.
void InFlight::add_ended(const NcclOperation& operation, Communicator* communicator) {
  const auto [found, is_new] = communicator->ended.try_emplace(operation.call / kWordCalls);
  found->second |= uint64_t{1} << operation.call % kWordCalls;
  if (!is_new) return;
  words_.push_back(operation.communicator);
  if (words_.size() <= kMaxWords) return;
  Communicator& first = communicators_[words_.front()];
  words_.pop_front();
  const auto lowest = first.ended.begin();
  // Of its last word, what is behind the last end has not ended, or is not there yet.
  const bool is_last = first.ended.size() == 1;
  const auto calls = is_last ? static_cast<uint32_t>(std::bit_width(lowest->second)) : kWordCalls;
  first.forgotten = lowest->first * kWordCalls + calls;
  first.ended.erase(lowest);
}

InFlight::Key InFlight::key_of(const NcclOperation& operation) {
  const uint64_t bytes = std::max<uint64_t>(operation.bytes, 1);
  return {operation.communicator, operation.region,
          static_cast<uint32_t>(std::bit_width(bytes) - 1)};
}

/// Its end may still come, from another thread.
void InFlight::forget_oldest(Communicator* communicator) {
  const NcclOperation oldest =
      communicator->enqueued.extract(communicator->enqueued.begin()).mapped();
  --kept_count_;
  const auto [word, is_new] = communicator->beyond.try_emplace(oldest.call / kWordCalls);
  if (is_new && ++beyond_word_count_ > kMaxWords) {
    communicator->beyond.erase(word);
    --beyond_word_count_;
    return;
  }
  word->second |= uint64_t{1} << oldest.call % kWordCalls;
  const Key key = key_of(oldest);
  if (forgotten_.size() < kMaxForgottenKinds || forgotten_.count(key) != 0) ++forgotten_[key];
}

void InFlight::end_forgotten(const NcclOperation& operation, Communicator* communicator) {
  const auto word = communicator->beyond.find(operation.call / kWordCalls);
  const uint64_t bit = uint64_t{1} << operation.call % kWordCalls;
  if (word == communicator->beyond.end() || (word->second & bit) == 0) return;
  word->second &= ~bit;
  if (const auto known = forgotten_.find(key_of(operation));
      known != forgotten_.end() && known->second != 0)
    --known->second;
  if (word->second != 0) return;
  communicator->beyond.erase(word);
  --beyond_word_count_;
}

void InFlight::add(const NcclOperation& operation, uint32_t slot) {
  if (communicators_.size() >= kMaxCommunicators &&
      communicators_.count(operation.communicator) == 0)
    return;
  Communicator& communicator = communicators_[operation.communicator];
  const uint64_t call = operation.call;
  if (call >= kMaxCalls) return;
  const bool is_forgotten = call < communicator.forgotten;
  if ((operation.flags & kNcclInFlight) == 0) {
    if (communicator.enqueued.erase(call) == 0) {
      end_forgotten(operation, &communicator);
    } else {
      --kept_count_;
    }
    if (!is_forgotten) add_ended(operation, &communicator);
    return;
  }
  if (is_forgotten) return;
  const auto word = communicator.ended.find(call / kWordCalls);
  if (word != communicator.ended.end() && (word->second >> call % kWordCalls & 1) != 0) return;
  // When it was given up is told by another thread, whose records may come first.
  const auto [known, is_new] = communicator.enqueued.try_emplace(call, Enqueued{operation, slot});
  const bool is_abandoned = (operation.flags & kNcclAbandoned) != 0;
  if (!is_new && (known->second.flags & kNcclAbandoned) == 0)
    static_cast<NcclOperation&>(known->second) = operation;
  if (!is_abandoned) known->second.slot = slot;
  kept_count_ += is_new ? 1 : 0;
  if (communicator.enqueued.size() > kMaxKept || kept_count_ > kMaxKeptInAll)
    forget_oldest(&communicator);
}

std::optional<uint64_t> InFlight::last_gap(uint32_t id) const {
  const auto found = communicators_.find(id);
  if (found == communicators_.end()) return std::nullopt;
  const Communicator& communicator = found->second;
  auto word = communicator.ended.rbegin();
  uint64_t bits = word == communicator.ended.rend() ? 0 : word->second;
  auto enqueued = communicator.enqueued.rbegin();
  std::optional<uint64_t> lowest;  // of those seen: downwards, in both
  while (bits != 0 || enqueued != communicator.enqueued.rend()) {
    uint64_t rest = bits;
    Run run = bits != 0 ? take_highest(word->first, &rest) : Run();
    if (bits == 0 || (enqueued != communicator.enqueued.rend() && enqueued->first > run.last)) {
      run = {enqueued->first, enqueued->first};
      ++enqueued;
    } else {
      bits = rest;
      if (bits == 0 && ++word != communicator.ended.rend()) bits = word->second;
    }
    if (run.last < communicator.forgotten) return std::nullopt;
    if (lowest && run.last + 1 < *lowest) return *lowest - 1;
    lowest = run.first;
  }
  return std::nullopt;  // the first ones may have been evicted: that hides nothing
}

std::vector<InFlight::Enqueued> InFlight::take() {
  std::vector<Enqueued> result;
  for (const auto& [id, communicator] : communicators_) {
    for (const auto& [call, operation] : communicator.enqueued) result.push_back(operation);
  }
  communicators_.clear();
  words_.clear();
  forgotten_.clear();
  kept_count_ = 0;
  beyond_word_count_ = 0;
  return result;
}

}  // namespace aon::writers::nccl
