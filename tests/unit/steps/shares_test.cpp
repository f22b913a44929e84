// Steps of a job whose events are gone through by two processes.

#include <gtest/gtest.h>

#include "tests/unit/steps/program.h"
#include "tests/unit/writers/shares.h"
#include "writers/steps/steps.h"
#include "writers/waits/shares.h"

namespace aon::writers {
namespace {

using test::Program;
using test::run_shares;

/// Another annotation of steps, beside kStepRegion.
constexpr uint32_t kOtherStep = test::kWaitall;

test::EventsOf events_of(const std::vector<Program>& ranks) {
  return [&ranks](const Location& location) { return ranks[location.group].events; };
}

/// Two loops, one after the other, found in the calls.
std::vector<Program> detected() {
  std::vector<Program> ranks(4);
  for (int rank = 0; rank < 4; ++rank) {
    Program& program = ranks[static_cast<size_t>(rank)];
    program.prologue();
    for (int i = 0; i < 60; ++i) program.halo(rank - 1, 0).compute(9'000 + 100 * uint64_t(rank));
    program.prologue();
    for (int i = 0; i < 40; ++i) program.compute(40'000).allreduce(8).isend(1).compute(5'000);
    program.prologue(3);
  }
  return ranks;
}

/// Of two annotations each rank begins with another one.
std::vector<Program> annotated() {
  std::vector<Program> ranks(4);
  for (size_t rank = 0; rank < 4; ++rank) {
    Program& program = ranks[rank];
    program.prologue(1 + static_cast<int>(rank));
    for (int i = 0; i < 40; ++i) {
      const size_t first = program.events.size();
      program.step_begin(i).compute(1'000 * (rank + 1)).allreduce(8, 5'000 - 1'000 * rank);
      program.step_end();
      if ((static_cast<size_t>(i / 10) + rank) % 2 == 0) continue;
      program.events[first].region = program.events.back().region = kOtherStep;
    }
  }
  return ranks;
}

template <class T>
std::string bytes_of(const T& value) {
  StateOut out;
  out.put(value);
  return out.bytes();
}
std::string bytes_of(const StepPlan& plan) {
  StateOut out;
  save_plan(&out, plan);
  return out.bytes();
}

void expect_same(const StepSummary& a, const StepSummary& b) {
  EXPECT_EQ(a.is_annotated, b.is_annotated);
  EXPECT_EQ(a.coverage, b.coverage);
  EXPECT_EQ(a.confidence, b.confidence);
  EXPECT_EQ(a.step_count, b.step_count);
  EXPECT_EQ(a.final_loops, b.final_loops);
  EXPECT_EQ(bytes_of(a.rows), bytes_of(b.rows));
  EXPECT_EQ(bytes_of(a.statistics), bytes_of(b.statistics));
  ASSERT_EQ(a.loops.size(), b.loops.size());
  for (size_t i = 0; i < a.loops.size(); ++i) {
    const StepLoop& x = a.loops[i];
    const StepLoop& y = b.loops[i];
    EXPECT_EQ(x.name, y.name);
    EXPECT_EQ(std::tie(x.count, x.rank_count, x.matched, x.agreement, x.sum_ns, x.median_ns),
              std::tie(y.count, y.rank_count, y.matched, y.agreement, y.sum_ns, y.median_ns));
    EXPECT_EQ(std::tie(x.p95_ns, x.compute_ns, x.slowest, x.slowest_ns, x.trend),
              std::tie(y.p95_ns, y.compute_ns, y.slowest, y.slowest_ns, y.trend));
  }
}

class StepShares : public testing::Test {
 protected:
  StepShares() : model_(test::steps_model(4)) {}

  StepPlan plan_of_whole(const std::vector<Program>& ranks) {
    const auto finder = make_step_finder();
    test::run_whole({finder.get()}, model_, events_of(ranks));
    return finder->plan();
  }
  std::vector<std::string> finder_states(const std::vector<Program>& ranks) {
    const auto even = make_step_finder();
    const auto odd = make_step_finder();
    return run_shares({even.get()}, {odd.get()}, model_, events_of(ranks));
  }
  StepPlan combined_plan(const std::vector<Program>& ranks) {
    const auto combiner = make_step_finder();
    test::combine({combiner.get()}, model_, finder_states(ranks));
    return combiner->plan();
  }
  std::vector<std::string> meter_states(const StepPlan& plan, WaitAnalysis* waits,
                                        const std::vector<Program>& ranks) {
    const auto even = make_step_meter(plan, waits, kMaxRows);
    const auto odd = make_step_meter(plan, waits, kMaxRows);
    return run_shares({even.get()}, {odd.get()}, model_, events_of(ranks));
  }
  /// Compares what one process finds with what the shares find.
  StepSummary measure(const std::vector<Program>& ranks) {
    const StepPlan plan = plan_of_whole(ranks);
    const auto waits = make_wait_analysis(testing::TempDir());
    test::run_whole({waits.get()}, model_, events_of(ranks));
    const auto whole = make_step_meter(plan, waits.get(), kMaxRows);
    test::run_whole({whole.get()}, model_, events_of(ranks));
    const auto sums_of_waits = make_loaded_waits({});
    const auto combiner = make_step_meter(plan, sums_of_waits.get(), kMaxRows);
    test::combine({combiner.get()}, model_, meter_states(plan, waits.get(), ranks));
    expect_same(*combiner->summary(), *whole->summary());
    return *whole->summary();
  }

  static constexpr uint64_t kMaxRows = 160;
  Model model_;
};

TEST_F(StepShares, ranks_of_both_vote_for_the_loops) {
  const StepPlan plan = plan_of_whole(detected());
  ASSERT_FALSE(plan.loops[3].empty());
  EXPECT_EQ(bytes_of(combined_plan(detected())), bytes_of(plan));
}

TEST_F(StepShares, one_annotation_in_one_of_them_is_enough) {
  std::vector<Program> ranks = detected();
  ranks[1].step_begin(0).compute(100).step_end();
  const StepPlan plan = combined_plan(ranks);
  EXPECT_TRUE(plan.is_annotated);
  EXPECT_EQ(bytes_of(plan), bytes_of(plan_of_whole(ranks)));
}

TEST_F(StepShares, detected_steps_and_their_waits_are_those_of_the_whole) {
  const StepSummary summary = measure(detected());
  EXPECT_FALSE(summary.is_annotated);
  EXPECT_GE(summary.loops.size(), 2u);
  EXPECT_GT(summary.step_count, summary.rows.size()) << "some rows are left out";
  EXPECT_LE(summary.rows.size(), kMaxRows);
}

TEST_F(StepShares, annotated_loops_have_one_number_in_all_of_them) {
  model_.regions[10 - kOtherStep] = {"other step", RegionRole::kStep, Paradigm::kUser};
  const StepSummary summary = measure(annotated());
  EXPECT_TRUE(summary.is_annotated);
  ASSERT_EQ(summary.loops.size(), 2u);
  EXPECT_EQ(summary.loops[0].rank_count, 4u);
  EXPECT_EQ(summary.loops[1].rank_count, 4u);
}

TEST_F(StepShares, rows_stay_for_others_until_the_next_location) {
  const auto meter = make_step_meter(plan_of_whole(annotated()), nullptr);
  ASSERT_TRUE(meter->begin(model_));
  ASSERT_TRUE(test::Line{meter.get()}.give(model_.locations[0], annotated()[0].events));
  StateOut out;
  ASSERT_TRUE(meter->save(&out));
  EXPECT_FALSE(meter->rows_so_far().empty());
  ASSERT_TRUE(meter->begin_location(model_.locations[2]));
  EXPECT_TRUE(meter->rows_so_far().empty());
}

TEST_F(StepShares, plan_goes_to_the_shares_whole_or_not_at_all) {
  const StepPlan plan = plan_of_whole(detected());
  const std::string bytes = bytes_of(plan);
  StepPlan loaded;
  StateIn in(bytes);
  ASSERT_TRUE(load_plan(&in, model_, &loaded));
  EXPECT_TRUE(in.is_at_end());
  EXPECT_EQ(bytes_of(loaded), bytes);
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::vector<char> exactly(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size));
    StateIn part(exactly);
    EXPECT_FALSE(load_plan(&part, model_, &loaded)) << size;
  }
}

TEST_F(StepShares, damage_is_harmless) {
  std::vector<Program> ranks(4);
  for (Program& rank : ranks) {
    for (int i = 0; i < 8; ++i) rank.compute(10'000).allreduce(8).isend(1);
  }
  test::expect_damage_is_harmless(make_step_finder, model_, finder_states(ranks)[1]);
  const StepPlan plan = plan_of_whole(ranks);
  const auto make = [&] { return make_step_meter(plan, nullptr, kMaxRows); };
  test::expect_damage_is_harmless(make, model_, meter_states(plan, nullptr, ranks)[1]);
}

}  // namespace
}  // namespace aon::writers
