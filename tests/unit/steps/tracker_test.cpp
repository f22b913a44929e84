// Where the first iteration of a loop begins and whether the last one counts.

#include "writers/steps/tracker.h"

#include <gtest/gtest.h>

#include <vector>

namespace aon::writers::steps {
namespace {

constexpr uint64_t kAnchor = 1;
constexpr uint64_t kOther = 2;

/// An iteration is an anchor and three others, of which it begins with `lead`.
std::vector<CutStep> cut(uint32_t lead, const LoopTime& time, const std::vector<uint64_t>& tokens) {
  Candidate pattern;
  pattern.token = kAnchor;
  pattern.body = Bodies().add({kAnchor, kOther, kOther, kOther});
  pattern.token_set = in_set(kAnchor) + in_set(kOther);
  pattern.calls = pattern.body.size();
  pattern.lead_calls = lead;
  std::vector<CutStep> steps;
  LoopTracker tracker(pattern, time, [&](const CutStep& step) { steps.push_back(step); });
  uint64_t now_ns = 0;
  for (const uint64_t token : tokens) tracker.add(token, 0, {now_ns += 10, 0, 0});
  tracker.finish({now_ns + 10, 0, 0});
  return steps;
}

/// Three others, then so many iterations from their anchors on.
std::vector<uint64_t> calls(int iterations) {
  std::vector<uint64_t> tokens(3, kOther);
  for (int i = 0; i < iterations; ++i)
    tokens.insert(tokens.end(), {kAnchor, kOther, kOther, kOther});
  return tokens;
}

TEST(LoopTracker, first_iteration_begins_as_far_before_its_anchor_as_its_calls_do) {
  const auto steps = cut(3, {40, 1000, 0, UINT64_MAX}, calls(6));
  ASSERT_FALSE(steps.empty());
  EXPECT_EQ(steps.front().begin.time_ns, 10u);
}

TEST(LoopTracker, first_iteration_does_not_reach_into_the_loop_before) {
  const auto steps = cut(3, {40, 1000, 25, UINT64_MAX}, calls(6));
  ASSERT_FALSE(steps.empty());
  EXPECT_EQ(steps.front().begin.time_ns, 30u);
}

/// The loop is taken up behind calls of something else, at an anchor that others follow at once.
TEST(LoopTracker, no_iteration_ends_before_it_begins) {
  std::vector<uint64_t> tokens(3, kAnchor + kOther);
  tokens.insert(tokens.end(), 5, kAnchor);
  for (int i = 0; i < 6; ++i) tokens.insert(tokens.end(), {kOther, kOther, kOther, kAnchor});
  const auto steps = cut(3, {0, 1000, 0, UINT64_MAX}, tokens);
  ASSERT_EQ(steps.size(), 11u);
  for (size_t i = 0; i < steps.size(); ++i) {
    EXPECT_LT(steps[i].begin.time_ns, steps[i].end.time_ns) << i;
    if (i != 0) {
      EXPECT_EQ(steps[i].begin.time_ns, steps[i - 1].end.time_ns) << i;
    }
  }
}

TEST(LoopTracker, last_iteration_counts_when_it_ends_before_the_next_loop) {
  const auto steps = cut(0, {40, 1000, 0, UINT64_MAX}, calls(6));
  ASSERT_EQ(steps.size(), 6u);
  EXPECT_EQ(steps.back().end.time_ns, 280u);
  EXPECT_EQ(cut(0, {40, 1000, 0, 280}, calls(6)).size(), 6u);
  EXPECT_EQ(cut(0, {40, 1000, 0, 279}, calls(6)).size(), 5u);
}

}  // namespace
}  // namespace aon::writers::steps
