/// The calls of iterations, as tokens, for the patterns of one rank.
///
/// Each call that comes once per iteration may be a pattern's anchor, and from each of these on an
/// iteration is another turn of one sequence: the sequence is kept once. There is room for
/// kMaxBodyCalls, whatever the program calls, in memory and in what shares hand over.
/// Thread: one.   Cost: two passes over a body; memory: 8 bytes per call, copies share them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "writers/state.h"

namespace aon::writers::steps {

constexpr size_t kMaxBody = 256;        ///< calls of an iteration
constexpr size_t kMaxBodyCalls = 2048;  ///< of all different iterations of a rank

/// One iteration from an anchor on; empty: not kept.
class Body {
 public:
  Body() = default;
  bool empty() const { return sequence_ == nullptr; }
  size_t size() const { return empty() ? 0 : sequence_->size(); }
  uint64_t operator[](size_t i) const { return (*sequence_)[(turn_ + i) % sequence_->size()]; }

 private:
  friend class Bodies;
  using Sequence = std::shared_ptr<const std::vector<uint64_t>>;
  Body(Sequence sequence, uint32_t turn) : sequence_(std::move(sequence)), turn_(turn) {}

  Sequence sequence_;  ///< null or not empty
  uint32_t turn_ = 0;  ///< where in it the body begins
};

class Bodies {
 public:
  /// Empty where `calls` are none or more than kMaxBody, or there is no room left.
  Body add(const std::vector<uint64_t>& calls);

  /// Each sequence goes out and comes in with the first body that has it.
  void save(StateOut* out, const Body& body);
  bool load(StateIn* in, Body* body);

 private:
  bool has_room(const std::vector<uint64_t>& sequence) const {
    return sequence.size() <= kMaxBody && sequence.size() <= kMaxBodyCalls - call_count_;
  }
  void keep(Body::Sequence sequence);

  std::vector<Body::Sequence> sequences_;
  size_t call_count_ = 0;  ///< of all
};

}  // namespace aon::writers::steps
