#include "tools/compare/comparison.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace aon::tools::compare {
namespace {

/// Runs of a made-up program: kSteps steps of two parts on four ranks.
class Comparing : public ::testing::Test {
 protected:
  static constexpr size_t kSteps = 200;
  static constexpr int kRanks = 4;

  /// Of a run whose steps compute for `computing_ns` and wait for `waiting_ns`, with some noise.
  Job job(double computing_ns, double waiting_ns, double between_runs = 0) {
    Job made;
    made.dir = "run";
    made.is_complete = true;
    made.process_count = kRanks;
    made.programs = {"/bin/program"};
    made.step_source = "annotated";
    const double of_run = 1 + between_runs * noise_(random_);
    Loop loop;
    loop.name = "step";
    loop.count = kSteps;
    for (size_t i = 0; i < kSteps; ++i) {
      const double computing = computing_ns * of_run * (1 + 0.01 * noise_(random_));
      const double waiting = waiting_ns * of_run * (1 + 0.01 * noise_(random_));
      loop.series[static_cast<size_t>(Part::kDuration)].push_back(computing + waiting);
      loop.series[static_cast<size_t>(Part::kComputing)].push_back(computing);
      loop.series[static_cast<size_t>(Part::kWaiting)].push_back(waiting);
      loop.series[static_cast<size_t>(Part::kOtherMpi)].push_back(0);
      for (int rank = 0; rank < kRanks; ++rank) loop.computing[rank].push_back(computing);
    }
    made.loops = {loop};
    for (int rank = 0; rank < kRanks; ++rank) made.ranks[rank] = rank < 2 ? "n1" : "n2";
    made.seconds = (computing_ns + waiting_ns) * of_run * kSteps / 1e9;
    made.regions["MPI_Allreduce"] = {waiting_ns * of_run * kSteps * kRanks, 1.0 * kSteps * kRanks,
                                     8.0 * kSteps * kRanks};
    made.regions["MPI_Init"] = {50e6 * kRanks, kRanks, 0};
    return made;
  }

  std::vector<Job> jobs(size_t count, double computing_ns, double waiting_ns,
                        double between_runs = 0.01) {
    std::vector<Job> made;
    for (size_t i = 0; i < count; ++i) made.push_back(job(computing_ns, waiting_ns, between_runs));
    return made;
  }

  static Comparison compare_one(const Job& base, const Job& now) {
    return compare({&base, 1}, {&now, 1});
  }

  std::mt19937 random_{3};
  std::normal_distribution<double> noise_{0, 1};
};

TEST_F(Comparing, one_run_of_each_tells_by_its_steps) {
  const Comparison all = compare_one(job(1e6, 1e5), job(1.2e6, 1e5));
  EXPECT_FALSE(all.is_between_runs);
  EXPECT_EQ(verdict(main_change(all)), Verdict::kSlower);
  const Change& computing = all.loops.front().parts[static_cast<size_t>(Part::kComputing)];
  ASSERT_TRUE(computing.difference);
  EXPECT_TRUE(computing.difference->holds(2e5));
  EXPECT_FALSE(all.seconds.ratio) << "of one run of each nothing is known of the job's time";
  EXPECT_TRUE(all.warnings.empty());
}

TEST_F(Comparing, a_job_with_itself_differs_in_nothing) {
  const Job same = job(1e6, 1e5);
  const Comparison all = compare_one(same, same);
  EXPECT_EQ(verdict(main_change(all)), Verdict::kSame);
  EXPECT_TRUE(all.regions.empty());
  EXPECT_TRUE(all.loops.front().ranks.empty());
}

/// Runs that differ by chance by more than their steps do: only several runs tell that.
TEST_F(Comparing, what_differs_from_run_to_run_is_no_change) {
  const std::vector<Job> base = jobs(6, 1e6, 1e5, 0.05);
  const std::vector<Job> now = jobs(6, 1e6, 1e5, 0.05);
  const Comparison all = compare(base, now);
  EXPECT_TRUE(all.is_between_runs);
  EXPECT_EQ(verdict(main_change(all)), Verdict::kSame);
  EXPECT_EQ(verdict(all.seconds), Verdict::kSame);
  EXPECT_TRUE(all.regions.empty());
}

TEST_F(Comparing, several_runs_tell_of_the_job_and_of_regions) {
  const Comparison all = compare(jobs(5, 1e6, 1e5), jobs(5, 1e6, 3e5));
  EXPECT_EQ(verdict(main_change(all)), Verdict::kSlower);
  EXPECT_EQ(verdict(all.seconds), Verdict::kSlower);
  ASSERT_EQ(all.regions.size(), 1u);
  const RegionChange& one = all.regions.front();
  EXPECT_EQ(one.name, "MPI_Allreduce");
  EXPECT_TRUE(one.is_of_steps);
  ASSERT_TRUE(one.time_ns.difference);
  EXPECT_TRUE(one.time_ns.difference->holds(2e5));
  EXPECT_EQ(one.count, 1);
}

TEST_F(Comparing, calls_and_bytes_that_are_others_are_told_where_they_take_time) {
  Job now = job(1e6, 1e5);
  now.regions["MPI_Allreduce"].count *= 3;
  now.regions["MPI_Allreduce"].bytes *= 5;
  now.regions["MPI_Comm_rank"] = {1, 1e6, 0};
  const Comparison all = compare_one(job(1e6, 1e5), now);
  ASSERT_EQ(all.regions.size(), 1u);
  EXPECT_NEAR(all.regions.front().count, 3, 1e-9);
  EXPECT_NEAR(all.regions.front().base_bytes, 8, 1e-9);
  EXPECT_NEAR(all.regions.front().bytes, 40, 1e-9);
}

TEST_F(Comparing, what_is_called_once_is_not_of_the_steps) {
  Job now = job(1e6, 1e5);
  now.regions["MPI_Init"].time_ns *= 4;
  const Comparison all = compare_one(job(1e6, 1e5), now);
  ASSERT_EQ(all.regions.size(), 1u);
  EXPECT_EQ(all.regions.front().name, "MPI_Init");
  EXPECT_FALSE(all.regions.front().is_of_steps);
  EXPECT_NEAR(all.regions.front().time_ns.now, 200e6, 1);
}

TEST_F(Comparing, the_rank_that_computes_longer_than_the_others_is_named) {
  Job now = job(1e6, 1e5);
  for (double& step : now.loops.front().computing.at(3)) step *= 1.5;
  now.ranks[3] = "n7";
  const Comparison all = compare_one(job(1e6, 1e5), now);
  const LoopChange& loop = all.loops.front();
  ASSERT_EQ(loop.ranks.size(), 1u);
  EXPECT_EQ(loop.ranks.front().rank, 3);
  EXPECT_EQ(loop.ranks.front().base_node, "n2");
  EXPECT_EQ(loop.ranks.front().node, "n7");
  EXPECT_NEAR(loop.median_rank, 1, 0.01);
  EXPECT_TRUE(loop.ranks.front().computing.ratio->holds(1.5));
}

TEST_F(Comparing, all_ranks_slower_alike_names_none) {
  const Comparison all = compare_one(job(1e6, 1e5), job(1.5e6, 1e5));
  EXPECT_TRUE(all.loops.front().ranks.empty());
  EXPECT_NEAR(all.loops.front().median_rank, 1.5, 0.01);
}

TEST_F(Comparing, without_a_loop_in_both_the_job_decides) {
  std::vector<Job> base = jobs(4, 1e6, 1e5);
  std::vector<Job> now = jobs(4, 2e6, 1e5);
  for (Job& one : now) one.loops.front().name = "iteration";
  const Comparison all = compare(base, now);
  EXPECT_TRUE(all.loops.empty());
  EXPECT_EQ(verdict(main_change(all)), Verdict::kSlower);
  EXPECT_EQ(all.warnings.front(),
            "loops that are not in all runs, not compared: 'iteration', 'step'");
}

/// A loop of little time does not decide for the one of most.
TEST_F(Comparing, the_job_decides_where_the_loop_of_most_time_has_another_name) {
  std::vector<Job> base = jobs(4, 1e6, 1e5);
  std::vector<Job> now = jobs(4, 5e6, 1e5);
  for (std::vector<Job>* runs : {&base, &now}) {
    for (Job& one : *runs) {
      one.loops.push_back(job(1e4, 1e3).loops.front());
      one.loops.back().name = "io";
    }
  }
  for (Job& one : now) one.loops.front().name = "solver";
  const Comparison all = compare(base, now);
  ASSERT_EQ(all.loops.size(), 1u);
  EXPECT_FALSE(all.is_decided_by_steps);
  EXPECT_EQ(verdict(main_change(all)), Verdict::kSlower);
}

/// Found loops are called after a call: two phases may have one name, and the order is by time.
TEST_F(Comparing, loops_of_one_name_are_not_compared) {
  Job base = job(1e6, 1e5);
  base.loops.push_back(job(4e6, 1e5).loops.front());
  Job now = base;
  std::swap(now.loops[0], now.loops[1]);
  const Comparison all = compare_one(base, now);
  EXPECT_TRUE(all.loops.empty());
  EXPECT_EQ(all.warnings.front(), "loops of which several have one name, not compared: 'step'");
}

TEST_F(Comparing, steps_of_little_certainty_do_not_decide) {
  Job now = job(2e6, 1e5);
  now.loops.front().certainty = 0.3;
  const Comparison all = compare_one(job(1e6, 1e5), now);
  EXPECT_FALSE(all.is_decided_by_steps);
  EXPECT_EQ(verdict(main_change(all)), Verdict::kUnknown);
}

TEST_F(Comparing, one_run_against_several_varies_as_they_do) {
  const std::vector<Job> base = jobs(5, 1e6, 1e5, 0.02);
  const Job same = job(1.01e6, 1.01e5);
  EXPECT_EQ(verdict(main_change(compare(base, {&same, 1}))), Verdict::kSame);
  const Job slower = job(1.3e6, 1e5);
  const Comparison all = compare(base, {&slower, 1});
  EXPECT_TRUE(all.is_between_runs);
  EXPECT_EQ(verdict(main_change(all)), Verdict::kSlower);
  EXPECT_EQ(verdict(all.seconds), Verdict::kSlower);
}

TEST_F(Comparing, of_two_ranks_the_one_that_changed_is_named) {
  Job base = job(1e6, 1e5);
  Job now = job(1e6, 1e5);
  for (Job* one : {&base, &now}) {
    one->loops.front().computing.erase(2);
    one->loops.front().computing.erase(3);
  }
  for (double& step : now.loops.front().computing.at(1)) step /= 2;
  const Comparison all = compare_one(base, now);
  ASSERT_EQ(all.loops.front().ranks.size(), 1u);
  EXPECT_EQ(all.loops.front().ranks.front().rank, 1);
}

TEST_F(Comparing, a_time_that_is_not_told_is_no_time) {
  Job now = job(1e6, 1e5);
  now.seconds = std::numeric_limits<double>::quiet_NaN();
  const Comparison all = compare(jobs(3, 1e6, 1e5), std::vector<Job>{now, now});
  EXPECT_EQ(verdict(all.seconds), Verdict::kUnknown);
  EXPECT_FALSE(all.seconds.difference);
  EXPECT_EQ(verdict(main_change(all)), Verdict::kSame);
}

TEST_F(Comparing, what_makes_runs_less_comparable_is_said) {
  Job now = job(1e6, 1e5);
  now.ranks.erase(3);
  now.programs = {"/bin/other"};
  now.processors = {"EPYC"};
  now.loops.front().count = 100;
  now.is_complete = false;
  now.lost_records = 12;
  const Comparison all = compare_one(job(1e6, 1e5), now);
  const std::vector<std::string> expected = {"ranks: 4; then 3",
                                             "program: /bin/program; then /bin/other",
                                             "processors: not told; then EPYC",
                                             "steps of 'step': 200; then 100",
                                             "run: not all of its ranks are there whole",
                                             "run: 12 records were lost"};
  EXPECT_EQ(all.warnings, expected);
}

}  // namespace
}  // namespace aon::tools::compare
