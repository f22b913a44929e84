// Iterations without annotation: synthetic programs whose loops are known.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/steps/program.h"

namespace aon::writers {
namespace {

using test::find_steps;
using test::Program;

/// `steps` iterations of a halo exchange and computing, with a residual every `check` steps.
Program& stencil(Program* program, int steps, int check = 0, int32_t left = 0, int32_t right = 1,
                 uint64_t compute_ns = 50'000) {
  for (int i = 1; i <= steps; ++i) {
    program->halo(left, right).compute(compute_ns);
    if (check != 0 && i % check == 0) program->allreduce(8);
  }
  return *program;
}

std::vector<uint64_t> counts(const StepSummary& summary) {
  std::vector<uint64_t> result;
  for (const StepLoop& loop : summary.loops) result.push_back(loop.count);
  return result;
}

TEST(FindLoops, regular_loop_is_counted_to_the_step) {
  for (const int steps : {6, 40, 1000}) {
    Program program;
    stencil(&program, steps).allreduce(8);
    const StepSummary summary = find_steps({program});
    EXPECT_FALSE(summary.is_annotated);
    EXPECT_THAT(counts(summary), testing::ElementsAre(steps));
    EXPECT_GT(summary.confidence, 0.95);
    EXPECT_LE(summary.confidence, 1.0);
    EXPECT_EQ(summary.rows.size(), static_cast<size_t>(steps));
  }
}

TEST(FindLoops, persistent_collective_that_each_iteration_prepares_is_the_same_call) {
  Program program;
  program.prologue();
  for (uint32_t i = 1; i <= 300; ++i)
    program.compute(100'000).start_prepared(i).call(test::kWaitall, 1000);
  program.prologue();
  const StepSummary summary = find_steps({program});
  ASSERT_EQ(summary.loops.size(), 1u);
  EXPECT_EQ(summary.loops[0].count, 300u);
}

TEST(FindLoops, four_iterations_are_no_loop) {
  Program program;
  stencil(&program.prologue(), 4).prologue();
  EXPECT_THAT(counts(find_steps({program})), testing::IsEmpty());
}

TEST(FindLoops, prologue_and_epilogue_are_no_steps) {
  Program program;
  program.prologue();
  stencil(&program, 60).prologue();
  const StepSummary summary = find_steps({program});
  EXPECT_THAT(counts(summary), testing::ElementsAre(60));
  EXPECT_LT(summary.coverage, 0.99);
}

TEST(FindLoops, steps_begin_at_their_first_call_and_hold_their_computing) {
  Program program;
  program.prologue();
  stencil(&program, 20).allreduce(8);
  const StepSummary summary = find_steps({program});
  ASSERT_EQ(summary.rows.size(), 20u);
  for (const StepRow& row : summary.rows) {
    EXPECT_EQ(row.part_ns[0], 51'400u);
    EXPECT_EQ(row.part_ns[1], 1'400u);
    EXPECT_EQ(row.part_ns[2], 50'000u);
  }
  for (int64_t i = 0; i < 20; ++i) EXPECT_EQ(summary.rows[static_cast<size_t>(i)].number, i);
}

TEST(FindLoops, check_every_ten_steps_does_not_hide_the_step) {
  Program program;
  program.prologue();
  stencil(&program, 200, 10).allreduce(64);
  const StepSummary summary = find_steps({program});
  EXPECT_THAT(counts(summary), testing::ElementsAre(200));
  EXPECT_NEAR(summary.loops[0].matched, 0.9, 0.011);
}

TEST(FindLoops, check_every_second_step_makes_steps_of_two) {
  Program program;
  stencil(&program, 200, 2);
  EXPECT_THAT(counts(find_steps({program})), testing::ElementsAre(100));
}

TEST(FindLoops, irregular_extra_calls_do_not_hide_the_step) {
  Program program;
  std::mt19937 random(7);
  program.prologue();
  for (int i = 0; i < 300; ++i) {
    program.halo(0, 1).compute(40'000);
    if (random() % 12 == 0) program.isend(3, 1 << 20).call(test::kIrecv).call(test::kWaitall);
  }
  program.allreduce(8);
  const StepSummary summary = find_steps({program});
  EXPECT_THAT(counts(summary), testing::ElementsAre(300));
  EXPECT_GT(summary.confidence, 0.8);
  EXPECT_LT(summary.confidence, 0.97);
}

/// Two messages with the calls of every exchange.
void exchange(Program* program) {
  for (int i = 0; i < 2; ++i) {
    program->call(test::kIrecv).isend(1).call(test::kWaitall).compute(i == 0 ? 3'000 : 0);
  }
}

/// LAMMPS: positions, forces and an exchange after each, with the same calls; instead of the first
/// one another every 20 steps; forces once more before the first step.
TEST(FindLoops, parts_of_a_step_that_look_alike_are_told_apart_by_computing) {
  Program program;
  program.prologue().compute(900'000);
  exchange(&program);
  program.prologue();
  for (int i = 1; i <= 100; ++i) {
    program.compute(30'000);
    if (i % 20 == 0) {
      for (int k = 0; k < 3; ++k) program.compute(1000).isend(1, 1 << 16).allreduce(4);
    } else {
      exchange(&program);
    }
    program.compute(static_cast<uint64_t>(600'000 + i % 7 * 40'000));
    exchange(&program);
  }
  program.allreduce(8);
  EXPECT_THAT(counts(find_steps({program})), testing::ElementsAre(100));
}

TEST(FindLoops, call_that_the_system_delayed_is_no_step) {
  Program program;
  program.prologue();
  std::mt19937 random(11);
  for (int i = 0; i < 200; ++i) {
    program.compute(40'000);
    exchange(&program);
    program.compute(700'000);
    exchange(&program);
    program.compute(random() % 20 == 0 ? 5'000'000 : 0);
  }
  program.allreduce(8);
  EXPECT_THAT(counts(find_steps({program})), testing::ElementsAre(200));
}

TEST(FindLoops, outer_step_is_chosen_when_it_does_work_of_its_own) {
  Program program;
  program.prologue();
  for (int step = 0; step < 30; ++step) {
    program.compute(600'000).isend(2, 1 << 18).call(test::kWaitall);
    for (int i = 0; i < 10; ++i) program.halo(0, 1).compute(10'000).allreduce(8);
  }
  const StepSummary summary = find_steps({program});
  EXPECT_THAT(counts(summary), testing::ElementsAre(30));
}

/// What repeats only within the last iteration belongs to it, as it does in the others.
TEST(FindLoops, last_iteration_is_of_its_loop) {
  Program program;
  program.prologue();
  for (int step = 0; step < 7; ++step) {
    program.compute(900'000);
    for (int peer = 0; peer < 12; ++peer) program.isend(peer, 1 << 18);
    for (int i = 0; i < 10; ++i) program.compute(50'000).allreduce(8);
  }
  program.call(test::kWaitall);
  EXPECT_THAT(counts(find_steps({program})), testing::ElementsAre(7));
}

/// The last of them is not like the pattern call by call, so its end cannot be told.
TEST(FindLoops, solver_of_varying_length_is_within_its_outer_step) {
  Program program;
  std::mt19937 random(3);
  for (int step = 0; step < 40; ++step) {
    program.compute(400'000).isend(2, 1 << 18).call(test::kWaitall);
    const int iterations = 6 + static_cast<int>(random() % 5);
    for (int i = 0; i < iterations; ++i) program.halo(0, 1).compute(10'000).allreduce(8);
  }
  EXPECT_THAT(counts(find_steps({program})), testing::ElementsAre(39));
}

TEST(FindLoops, stages_of_a_step_are_not_steps) {
  Program program;
  for (int step = 0; step < 50; ++step) {
    for (int stage = 0; stage < 3; ++stage) program.halo(0, 1).compute(20'000);
    program.allreduce(8);
  }
  EXPECT_THAT(counts(find_steps({program})), testing::ElementsAre(50));
}

TEST(FindLoops, phases_are_loops_of_their_own) {
  Program program;
  program.prologue();
  stencil(&program, 100).prologue();
  for (int i = 0; i < 70; ++i) program.isend(3, 1 << 14).compute(20'000).allreduce(1 << 12);
  const StepSummary summary = find_steps({program});
  EXPECT_THAT(counts(summary), testing::ElementsAre(100, 70));
  EXPECT_LT(summary.rows.front().begin_ns, summary.rows.back().begin_ns);
}

TEST(FindLoops, phases_with_the_same_calls_at_other_distances_are_two) {
  Program program;
  for (int i = 0; i < 100; ++i) program.compute(20'000).allreduce(8);
  for (int i = 0; i < 60; ++i) {
    for (int k = 0; k < 20; ++k) program.compute(3'000).isend(k, 1 << 10);
    program.allreduce(8);
  }
  EXPECT_THAT(counts(find_steps({program})), testing::UnorderedElementsAre(100, 60));
}

TEST(FindLoops, no_steps_are_invented_in_a_random_sequence) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    std::mt19937 random(seed);
    Program program;
    const unsigned kinds = 2 + seed % 12;
    for (int i = 0; i < 2000; ++i) {
      program.compute(1'000 + random() % 50'000).isend(static_cast<int32_t>(random() % kinds));
    }
    const StepSummary summary = find_steps({program});
    EXPECT_THAT(counts(summary), testing::IsEmpty()) << "seed " << seed << " kinds " << kinds;
    EXPECT_EQ(summary.confidence, 0);
  }
}

TEST(FindLoops, program_without_calls_has_no_steps) {
  EXPECT_THAT(counts(find_steps({Program()})), testing::IsEmpty());
  EXPECT_THAT(counts(find_steps({})), testing::IsEmpty());
}

TEST(FindLoops, ranks_with_other_neighbours_agree) {
  std::vector<Program> ranks(4);
  for (int32_t rank = 0; rank < 4; ++rank) {
    stencil(&ranks[static_cast<size_t>(rank)].prologue(), 80, 10, rank - 1,
            rank == 3 ? -1 : rank + 1);
    ranks[static_cast<size_t>(rank)].allreduce(64);
  }
  const StepSummary summary = find_steps(ranks);
  EXPECT_THAT(counts(summary), testing::ElementsAre(80));
  EXPECT_EQ(summary.loops[0].rank_count, 4u);
  EXPECT_EQ(summary.loops[0].agreement, 1);
}

TEST(FindLoops, ranks_without_the_loop_lower_the_confidence) {
  std::vector<Program> ranks(4);
  for (Program& rank : ranks) rank.prologue();
  stencil(&ranks[0], 50).allreduce(8);
  const StepSummary alone = find_steps(ranks);
  EXPECT_THAT(counts(alone), testing::ElementsAre(50));
  EXPECT_EQ(alone.loops[0].rank_count, 1u);
  EXPECT_EQ(alone.loops[0].agreement, 0.25);
  EXPECT_LT(alone.confidence, 0.25);
}

/// Of more than 64 processes not all propose loops: those that have none are not asked.
TEST(FindLoops, loop_of_every_second_rank_of_many_is_found) {
  std::vector<Program> ranks(128);
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    ranks[rank].prologue();
    if (rank % 2 != 0) stencil(&ranks[rank], 20).allreduce(8);
  }
  const StepSummary summary = find_steps(ranks);
  EXPECT_THAT(counts(summary), testing::ElementsAre(20));
  EXPECT_EQ(summary.loops[0].rank_count, 64u);
}

TEST(FindLoops, rank_that_died_in_the_middle_keeps_its_steps) {
  std::vector<Program> ranks(4);
  for (size_t rank = 0; rank < 4; ++rank) stencil(&ranks[rank].prologue(), rank == 2 ? 45 : 100);
  ranks[2].events.push_back(test::enter(ranks[2].events.back().time_ns + 50'000, test::kIrecv));
  const StepSummary summary = find_steps(ranks);
  EXPECT_THAT(counts(summary), testing::ElementsAre(100));
  EXPECT_EQ(summary.loops[0].rank_count, 4u);
  EXPECT_EQ(summary.loops[0].agreement, 0.75);
  EXPECT_EQ(summary.statistics[2].count, 45u);
}

TEST(FindLoops, long_run_is_sampled_and_counted_exactly) {
  Program program;
  program.prologue();
  stencil(&program, 100'000, 10, 0, 1, 5'000).allreduce(64);
  const StepSummary summary = find_steps({program});
  EXPECT_THAT(counts(summary), testing::ElementsAre(100'000));
  EXPECT_GT(summary.confidence, 0.85);
}

TEST(FindLoops, polling_does_not_matter) {
  Program program;
  std::mt19937 random(5);
  Model model = test::steps_model(1);
  model.regions[10 - test::kAllreduce].name = "MPI_Test";
  for (int i = 0; i < 60; ++i) {
    program.call(test::kIrecv).isend(1);
    for (unsigned k = random() % 100; k != 0; --k) program.call(test::kAllreduce, 50);
    program.call(test::kWaitall).compute(50'000);
  }
  const auto finder = make_step_finder();
  test::run(finder.get(), model, {program});
  const auto meter = make_step_meter(finder->plan(), nullptr);
  test::run(meter.get(), model, {program});
  EXPECT_THAT(counts(*meter->summary()), testing::ElementsAre(60));
  EXPECT_EQ(meter->summary()->loops[0].matched, 1);
}

/// A step is told by its long computation, at whose end the program looks for messages.
TEST(FindLoops, poll_at_the_end_of_a_computation_does_not_hide_the_step) {
  Program program;
  program.prologue();
  for (int i = 0; i < 60; ++i) {
    program.compute(1'000'000).call(test::kTest).compute(50);
    for (int k = 0; k < 4; ++k) program.isend(1).compute(50);
  }
  program.prologue(3);
  EXPECT_THAT(counts(find_steps({program})), testing::ElementsAre(60));
}

}  // namespace
}  // namespace aon::writers
