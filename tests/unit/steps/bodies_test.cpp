// What is kept of a rank's patterns, whatever it calls.

#include "writers/steps/bodies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "tests/unit/profile/one_rank.h"
#include "writers/steps/plan.h"

namespace aon::writers::steps {
namespace {

/// `count` tokens from `first` on.
std::vector<uint64_t> range(uint64_t first, size_t count) {
  std::vector<uint64_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

std::vector<uint64_t> calls_of(const Body& body) {
  std::vector<uint64_t> tokens;
  for (size_t i = 0; i < body.size(); ++i) tokens.push_back(body[i]);
  return tokens;
}

/// Loops one after the other, each of 8 iterations or more that all have the same calls.
std::vector<SampledCall> loops(size_t count, size_t calls) {
  std::vector<SampledCall> result;
  uint64_t now_ns = 0;
  for (size_t loop = 0; loop < count; ++loop) {
    for (size_t i = 0; i < (8 + loop) * calls; ++i, now_ns += 1000) {
      result.push_back({result.size(), now_ns, now_ns + 100, 1 + loop * calls + i % calls, 1});
    }
  }
  return result;
}

std::string saved(const std::vector<Candidate>& candidates) {
  StateOut out;
  Bodies bodies;
  for (const Candidate& one : candidates) save_candidate(&out, one, &bodies);
  return out.bytes();
}

TEST(Bodies, turns_of_one_sequence_take_the_room_of_one) {
  Bodies bodies;
  for (const std::vector<uint64_t>& calls :
       {range(1, kMaxBody), std::vector<uint64_t>{2, 1, 2, 1}, {3, 3, 1, 3, 3, 2}, {7}}) {
    std::vector<uint64_t> turn = calls;
    for (size_t i = 0; i < 2 * kMaxBodyCalls; ++i) {
      ASSERT_EQ(calls_of(bodies.add(turn)), turn);
      std::rotate(turn.begin(), turn.begin() + 1, turn.end());
    }
  }
}

TEST(Bodies, sequences_are_kept_while_there_is_room) {
  Bodies bodies;
  EXPECT_TRUE(bodies.add({}).empty());
  EXPECT_TRUE(bodies.add(range(1, kMaxBody + 1)).empty());
  for (uint64_t i = 0; i < kMaxBodyCalls / kMaxBody; ++i) {
    EXPECT_EQ(bodies.add(range(1000 * i, kMaxBody)).size(), kMaxBody);
  }
  EXPECT_TRUE(bodies.add({1}).empty());
  EXPECT_EQ(calls_of(bodies.add(range(1000, kMaxBody))), range(1000, kMaxBody)) << "known";
}

TEST(Bodies, more_than_there_is_room_for_is_not_taken_from_others_either) {
  StateOut out;
  for (uint64_t i = 0; i <= kMaxBodyCalls / kMaxBody; ++i) {
    out.put(static_cast<uint32_t>(i + 1));
    out.put(uint32_t{0});
    out.put(range(1000 * i, kMaxBody));
  }
  StateIn in(out.bytes());
  Bodies bodies;
  Body body;
  for (uint64_t i = 0; i < kMaxBodyCalls / kMaxBody; ++i) ASSERT_TRUE(bodies.load(&in, &body));
  EXPECT_FALSE(bodies.load(&in, &body));
}

TEST(Bodies, of_a_rank_are_bounded_however_many_loops_and_calls_it_has) {
  constexpr size_t kRankBytes = 36 << 10;
  constexpr size_t kSequenceBytes = 64;  // what each costs beside its calls
  static_assert(kMaxCandidates * (sizeof(Candidate) + kSequenceBytes) +
                    kMaxBodyCalls * sizeof(uint64_t) <=
                kRankBytes);
  // Of different calls in an iteration nothing is kept but their number and a hash.
  const std::vector<Candidate> of_long = find_candidates(loops(1, 20'000));
  ASSERT_FALSE(of_long.empty());
  EXPECT_EQ(of_long.front().calls, 20'000u);
  EXPECT_LE(saved(of_long).size(), kMaxCandidates * sizeof(Candidate));

  const std::vector<Candidate> of_many = find_candidates(loops(12, kMaxBody));
  ASSERT_GT(of_many.size(), 30u);
  EXPECT_LE(saved(of_many).size(), kRankBytes);
  size_t kept = 0;
  for (const Candidate& one : of_many) {
    EXPECT_EQ(one.calls, kMaxBody);
    kept += one.body.empty() ? 0 : 1;
    if (!one.body.empty()) continue;
    EXPECT_EQ(one.lead_calls, 0u);
    EXPECT_EQ(one.from_ns, one.begin_ns);
    EXPECT_EQ(one.until_ns, one.end_ns);
  }
  EXPECT_GT(kept, kMaxBodyCalls / kMaxBody) << "several anchors of a loop have one body";
  EXPECT_LT(kept, of_many.size());
  EXPECT_FALSE(of_many.front().body.empty()) << "room is for those that cover most";
}

TEST(Bodies, come_out_as_they_went_in) {
  const Model model = test::make_model(1);
  const std::vector<Candidate> candidates = find_candidates(loops(3, 40));
  const std::string bytes = saved(candidates);
  StateIn in(bytes);
  Bodies bodies;
  for (const Candidate& one : candidates) {
    Candidate loaded;
    ASSERT_TRUE(load_candidate(&in, model, &loaded, &bodies));
    EXPECT_FALSE(loaded.body.empty());
    EXPECT_EQ(calls_of(loaded.body), calls_of(one.body));
    EXPECT_EQ(loaded.token_set, one.token_set);
    EXPECT_EQ(loaded.until_ns, one.until_ns);
  }
  EXPECT_TRUE(in.is_at_end());
}

}  // namespace
}  // namespace aon::writers::steps
