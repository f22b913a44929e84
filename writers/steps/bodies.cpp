#include "writers/steps/bodies.h"

#include <algorithm>

namespace aon::writers::steps {
namespace {

/// Where the turn of `calls` begins that is first in order: the same calls from any of them on.
size_t first_turn(const std::vector<uint64_t>& calls) {
  const size_t count = calls.size();
  size_t a = 0;
  size_t b = 1;
  size_t same = 0;
  while (a < count && b < count && same < count) {
    const uint64_t of_a = calls[(a + same) % count];
    const uint64_t of_b = calls[(b + same) % count];
    if (of_a == of_b) {
      ++same;
      continue;
    }
    // No turn that begins in the calls that were alike comes before the smaller of the two.
    (of_a > of_b ? a : b) += same + 1;
    if (a == b) ++b;
    same = 0;
  }
  return std::min(a, b);
}

}  // namespace

Body Bodies::add(const std::vector<uint64_t>& calls) {
  if (calls.empty() || calls.size() > kMaxBody) return {};
  const size_t first = first_turn(calls);
  std::vector<uint64_t> turned = calls;
  std::rotate(turned.begin(), turned.begin() + static_cast<std::ptrdiff_t>(first), turned.end());
  const auto turn = static_cast<uint32_t>((calls.size() - first) % calls.size());
  const auto known = std::find_if(sequences_.begin(), sequences_.end(),
                                  [&](const Body::Sequence& one) { return *one == turned; });
  if (known != sequences_.end()) return {*known, turn};
  if (!has_room(turned)) return {};
  keep(std::make_shared<const std::vector<uint64_t>>(std::move(turned)));
  return {sequences_.back(), turn};
}

void Bodies::keep(Body::Sequence sequence) {
  call_count_ += sequence->size();
  sequences_.push_back(std::move(sequence));
}

void Bodies::save(StateOut* out, const Body& body) {
  if (body.empty()) return out->put(uint32_t{0});
  const auto known = std::find(sequences_.begin(), sequences_.end(), body.sequence_);
  const bool is_new = known == sequences_.end();
  out->put(static_cast<uint32_t>(known - sequences_.begin() + 1));
  out->put(body.turn_);
  if (!is_new) return;
  out->put(*body.sequence_);
  keep(body.sequence_);
}

bool Bodies::load(StateIn* in, Body* body) {
  *body = {};
  uint32_t number = 0;
  if (!in->get(&number)) return false;
  if (number == 0) return true;
  if (!in->get(&body->turn_) || !in->check(number <= sequences_.size() + 1)) return false;
  if (number > sequences_.size()) {
    std::vector<uint64_t> sequence;
    if (!in->get(&sequence) || !in->check(!sequence.empty() && has_room(sequence))) return false;
    keep(std::make_shared<const std::vector<uint64_t>>(std::move(sequence)));
  }
  body->sequence_ = sequences_[number - 1];
  return in->check(body->turn_ < body->size());
}

}  // namespace aon::writers::steps
