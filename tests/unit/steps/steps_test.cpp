#include "writers/steps/steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/steps/program.h"
#include "writers/profile/late_begin.h"
#include "writers/profile/profile.h"

namespace aon::writers {
namespace {

using test::find_steps;
using test::Program;

constexpr size_t kDuration = 0;
constexpr size_t kMpi = 1;
constexpr size_t kCompute = 2;
constexpr size_t kWait = 3;

/// Annotated steps, each with a collective that all ranks leave at the same time.
std::vector<Program> annotated(const std::vector<uint64_t>& computes_ns, int steps) {
  std::vector<Program> ranks(computes_ns.size());
  const uint64_t longest_ns = *std::max_element(computes_ns.begin(), computes_ns.end());
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    ranks[rank].prologue(2);
    for (int i = 0; i < steps; ++i) {
      ranks[rank].step_begin(10 + i).compute(computes_ns[rank]);
      ranks[rank].allreduce(8, longest_ns - computes_ns[rank] + 1'000).step_end();
    }
    ranks[rank].prologue(2);
  }
  return ranks;
}

TEST(Steps, annotated_ones_have_their_numbers_and_parts) {
  const StepSummary summary = find_steps(annotated({40'000, 100'000}, 3));
  EXPECT_TRUE(summary.is_annotated);
  EXPECT_EQ(summary.confidence, 1);
  ASSERT_EQ(summary.loops.size(), 1u);
  EXPECT_EQ(summary.loops[0].name, "step");
  EXPECT_EQ(summary.loops[0].count, 3u);
  ASSERT_EQ(summary.rows.size(), 6u);
  for (size_t i = 0; i < 6; ++i) {
    const StepRow& row = summary.rows[i];
    EXPECT_EQ(row.group, i / 3);
    EXPECT_EQ(row.number, static_cast<int64_t>(10 + i % 3));
    EXPECT_EQ(row.part_ns[kDuration], 101'000u);
    EXPECT_EQ(row.part_ns[kCompute], i < 3 ? 40'000u : 100'000u);
    EXPECT_EQ(row.part_ns[kMpi], i < 3 ? 61'000u : 1'000u);
    EXPECT_EQ(row.part_ns[kWait], 0u);
  }
}

TEST(Steps, waiting_comes_from_the_analysis_of_waits) {
  const auto waits = make_wait_analysis(testing::TempDir());
  const StepSummary summary = find_steps(annotated({40'000, 100'000}, 3), 100, waits.get());
  ASSERT_EQ(summary.rows.size(), 6u);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(summary.rows[i].part_ns[kWait], i < 3 ? 60'000u : 0u);
  }
  EXPECT_EQ(summary.statistics[0].parts[kWait].median_ns, 60'000u);
}

TEST(Steps, waits_are_still_there_for_the_archive) {
  const auto waits = make_wait_analysis(testing::TempDir());
  find_steps(annotated({40'000, 100'000}, 3), 100, waits.get());
  size_t count = 0;
  for (;;) {
    const auto call = waits->next_call(0);
    ASSERT_TRUE(call);
    if (!call.value()) break;
    ++count;
  }
  EXPECT_EQ(count, 3u);
}

TEST(Steps, slowest_rank_and_ratio) {
  const StepSummary summary = find_steps(annotated({50'000, 50'000, 150'000, 51'000}, 20));
  EXPECT_EQ(summary.loops[0].slowest, 2u);
  EXPECT_EQ(summary.loops[0].slowest_ns, 150'000u);
  EXPECT_EQ(summary.loops[0].compute_ns, 50'000u);
}

TEST(Steps, trend_compares_the_last_tenth_with_the_first) {
  Program program;
  for (uint64_t i = 0; i < 100; ++i) {
    program.step_begin(static_cast<int64_t>(i)).compute(i < 50 ? 99'800 : 199'800);
    program.allreduce(8).step_end();
  }
  EXPECT_NEAR(find_steps({program}).loops[0].trend, 2.0, 1e-9);
}

TEST(Steps, nested_ones_count_once) {
  Program program;
  for (int i = 0; i < 5; ++i) {
    program.step_begin(i).step_begin(100).compute(10).step_end().step_end();
  }
  const StepSummary summary = find_steps({program});
  ASSERT_EQ(summary.rows.size(), 5u);
  EXPECT_EQ(summary.rows[4].number, 4);
}

TEST(Steps, a_poll_that_was_interrupted_stands_for_no_more_time_than_there_was) {
  constexpr uint64_t kMs = 1'000'000;
  Program program;
  for (int i = 0; i < 4; ++i) {
    const uint64_t poll_ns = i == 2 ? 4 * kMs : 1000;
    program.step_begin(i).compute(kMs).poll(1000, 64).compute(kMs).poll(poll_ns, 64);
    program.compute(kMs).poll(1000, 64).compute(7 * kMs - poll_ns).step_end();
  }
  const StepSummary summary = find_steps({program});
  ASSERT_EQ(summary.rows.size(), 4u);
  const auto& parts = summary.rows[2].part_ns;
  EXPECT_GE(parts[kCompute], kMs);
  EXPECT_GE(parts[kMpi], 4 * kMs);
  EXPECT_EQ(parts[kMpi] + parts[kCompute], parts[kDuration]);
  uint64_t mpi_ns = 0;
  for (const StepRow& row : summary.rows) mpi_ns += row.part_ns[kMpi];
  const Model model = test::steps_model(1);
  profile::LocationProfile profile(model);
  profile.begin(model.groups[0], model.locations[0]);
  for (const Event& event : program.events) profile.add(event);
  for (const profile::RegionStatistics& row : profile.end()) {
    if (row.region != 10 - test::kTest) continue;
    EXPECT_LE(mpi_ns, row.inclusive_ns);
  }
}

TEST(Steps, one_whose_end_is_not_known_is_none) {
  for (const EventKind kind : {EventKind::kOpenAtEnd, EventKind::kCut}) {
    Program program;
    for (int i = 0; i < 3; ++i) program.step_begin(i).compute(1000).step_end();
    program.step_begin(3).compute(500);
    Event open = program.events.back();
    open.kind = kind;
    program.events.push_back(open);
    program.step_end();
    EXPECT_EQ(find_steps({program}).rows.size(), 3u);
  }
}

TEST(Steps, one_that_began_in_a_hole_is_none) {
  Program program;
  for (int i = 0; i < 3; ++i) program.step_begin(i).compute(1000).step_end();
  profile::set_begin_in_hole(&program.events[0], 1);
  const StepSummary summary = find_steps({program});
  ASSERT_EQ(summary.rows.size(), 2u);
  EXPECT_EQ(summary.rows[0].number, 1);
  EXPECT_EQ(summary.step_count, 2u);
}

/// Its calls of MPI would seem to be computing.
TEST(Steps, one_in_which_records_were_lost_is_none) {
  Program program;
  for (int i = 0; i < 4; ++i) {
    program.step_begin(i).compute(1000);
    if (i == 2) program.lose(50'000);
    program.step_end();
  }
  const StepSummary summary = find_steps({program});
  ASSERT_EQ(summary.rows.size(), 3u);
  EXPECT_EQ(summary.rows[2].number, 3);
  EXPECT_EQ(summary.statistics[0].parts[kCompute].max_ns, 1000u);
}

TEST(Steps, found_ones_do_not_reach_over_a_loss) {
  Program program;
  program.prologue();
  for (int i = 0; i < 60; ++i) {
    program.compute(10'000).halo(0, 1).compute(5000).allreduce(8);
    if (i == 30) program.lose(1'000'000);
  }
  const StepSummary summary = find_steps({program});
  ASSERT_EQ(summary.loops.size(), 1u);
  EXPECT_GE(summary.step_count, 55u);
  EXPECT_LT(summary.statistics[0].parts[kDuration].max_ns, 1'000'000u);
}

TEST(Steps, number_that_was_evicted_is_unknown) {
  Program program;
  program.step_begin(4).compute(100).step_end();
  program.step_begin(5).compute(100).step_end();
  program.events[0].set_value(0, 0);
  const StepSummary summary = find_steps({program});
  ASSERT_EQ(summary.rows.size(), 2u);
  EXPECT_EQ(summary.rows[0].number, -1);
}

TEST(Steps, annotations_go_before_what_could_be_detected) {
  Program program;
  for (int i = 0; i < 10; ++i) {
    program.step_begin(i);
    for (int k = 0; k < 20; ++k) program.halo(0, 1).compute(10'000);
    program.step_end();
  }
  const StepSummary summary = find_steps({program});
  EXPECT_TRUE(summary.is_annotated);
  EXPECT_EQ(summary.loops[0].count, 10u);
}

TEST(Steps, rows_are_bounded_and_statistics_are_not) {
  std::vector<Program> ranks(2);
  for (Program& rank : ranks) {
    for (int i = 0; i < 1000; ++i) rank.step_begin(i).compute(1000).step_end();
  }
  const StepSummary summary = find_steps(ranks, 200);
  EXPECT_EQ(summary.step_count, 2000u);
  EXPECT_LE(summary.rows.size(), 200u);
  EXPECT_GT(summary.rows.size(), 120u);
  EXPECT_EQ(summary.rows.front().number, 0);
  EXPECT_EQ(summary.rows.back().number, 999);
  EXPECT_EQ(summary.statistics[1].count, 1000u);
  for (size_t i = 1; i < summary.rows.size(); ++i) {
    if (summary.rows[i].group != summary.rows[i - 1].group) continue;
    EXPECT_LT(summary.rows[i - 1].number, summary.rows[i].number);
  }
}

TEST(Steps, rows_of_many_annotated_loops_are_bounded_together) {
  constexpr uint32_t kOther = 6;
  Model model = test::steps_model(1);
  model.regions[10 - kOther] = {"other", RegionRole::kStep, Paradigm::kUser};
  model.groups[0].region_map[kOther] = 10 - kOther;
  Program rank;
  for (int i = 0; i < 1000; ++i) {
    rank.step_begin(i).compute(1000).step_end();
    rank.step_begin(i, kOther).compute(1000).step_end(kOther);
  }
  const auto finder = make_step_finder();
  test::run(finder.get(), model, {rank});
  const auto meter = make_step_meter(finder->plan(), nullptr, 200);
  test::run(meter.get(), model, {rank});
  const StepSummary& summary = *meter->summary();
  EXPECT_EQ(summary.loops.size(), 2u);
  EXPECT_EQ(summary.step_count, 2000u);
  EXPECT_LE(summary.rows.size(), 200u);
  EXPECT_GT(summary.rows.size(), 120u);
}

}  // namespace
}  // namespace aon::writers
