/// A bounded sample of a sequence of calls: all of it while it is short, later pieces of kPiece
/// calls, evenly spread. Within a piece no call is missing but at holes, whose number no call has.
/// Thread: one.   Cost: amortised constant per call; at most 2 * kPieces * kPiece calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace aon::writers::steps {

struct SampledCall {
  uint64_t number;  ///< of the thread's calls, and holes among them
  uint64_t enter_ns;
  uint64_t leave_ns;
  uint64_t token;
  uint32_t region;  ///< global id
};

class SequenceSample {
 public:
  static constexpr size_t kPiece = 4096;
  static constexpr size_t kPieces = 32;

  void add(uint64_t enter_ns, uint64_t leave_ns, uint64_t token, uint32_t region) {
    const uint64_t number = count_++;
    if (number / kPiece % stride_ != 0) return;
    const bool is_full = calls_.size() >= kPiece * kPieces;
    if (is_full && (number % kPiece == 0 || calls_.size() >= 2 * kPiece * kPieces)) {
      thin_out();
      if (number / kPiece % stride_ != 0) return;
    }
    calls_.push_back({number, enter_ns, leave_ns, token, region});
  }
  /// Calls are missing here, nobody knows how many: they have one number.
  void note_hole() { ++count_; }
  void clear() { *this = SequenceSample(); }

  const std::vector<SampledCall>& calls() const { return calls_; }
  bool is_whole() const { return stride_ == 1; }

 private:
  void thin_out() {
    stride_ *= 2;
    size_t kept = 0;
    for (const SampledCall& call : calls_) {
      if (call.number / kPiece % stride_ == 0) calls_[kept++] = call;
    }
    calls_.resize(kept);
  }

  std::vector<SampledCall> calls_;
  uint64_t count_ = 0;
  uint64_t stride_ = 1;  ///< every so many pieces
};

}  // namespace aon::writers::steps
