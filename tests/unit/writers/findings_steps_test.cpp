// What the summary says of steps, and of which of them.

#include <gtest/gtest.h>

#include "tests/unit/profile/one_rank.h"
#include "tests/unit/steps/fake_meter.h"
#include "tests/unit/writers/shares.h"
#include "writers/ledger/findings.h"

namespace aon::writers {
namespace {

constexpr uint32_t kSend = 10;  // global; local 0
constexpr uint64_t kSecond = 1'000'000'000;

/// 1000 steps of 5 ms in which rank 1 computes 4 ms and the other one 1 ms.
StepLoop uneven_loop() {
  StepLoop loop;
  loop.name = "MPI_Allreduce";
  loop.count = 1000;
  loop.rank_count = 2;
  loop.median_ns = 5'000'000;
  loop.compute_ns = 1'000'000;
  loop.slowest = 1;
  loop.slowest_ns = 4'000'000;
  return loop;
}

/// Two ranks for five seconds.
class FindingsOfSteps : public testing::Test {
 protected:
  FindingsOfSteps() : model_(test::make_model(2)) {
    model_.regions[kSend] = {"MPI_Send", RegionRole::kPointToPoint, Paradigm::kMpi};
    job_.nodes.resize(1);
    model_.job = &job_;
    for (Group& group : model_.groups) group.process = &process_;
  }

  /// The findings that speak of steps.
  std::vector<std::string> lines_of(std::vector<StepLoop> loops) const {
    StepSummary steps;
    steps.confidence = 0.6;
    steps.loops = std::move(loops);
    return lines_of(std::move(steps));
  }
  /// Of a program that marks them: rank 1 computes longer from one to another.
  static StepSummary marked(int64_t first, int64_t last) {
    StepSummary steps;
    steps.is_annotated = true;
    steps.confidence = 1;
    steps.loops = {uneven_loop()};
    for (uint32_t group = 0; group < 2; ++group) {
      for (int64_t i = 0; i < 1000; ++i) {
        StepRow row{};
        row.group = group;
        row.number = i;
        const bool is_slow = group == 1 && i >= first && i <= last;
        row.part_ns[static_cast<size_t>(StepPart::kCompute)] = is_slow ? 4'000'000 : 1'000'000;
        steps.rows.push_back(row);
      }
    }
    return steps;
  }
  std::vector<std::string> lines_of(StepSummary steps) const {
    const test::FakeMeter meter(std::move(steps));
    Findings findings(nullptr);
    findings.use_steps(&meter);
    test::run_whole({&findings}, model_, [](const Location&) {
      return std::vector<Event>{test::enter(1, 0), test::leave(5 * kSecond, 0)};
    });
    for (const Location& location : model_.locations) {
      profile::RegionStatistics row;
      row.region = kSend;
      row.count = 1;
      row.exclusive_ns = kSecond;
      findings.add_profile(model_.groups[location.group], &location, {&row, 1});
    }
    std::vector<std::string> lines = findings.lines({});
    std::erase_if(lines,
                  [](const std::string& line) { return line.find("steps") == std::string::npos; });
    return lines;
  }

  Model model_;
  spool::Job job_;
  spool::Process process_;
};

TEST_F(FindingsOfSteps, a_slow_rank_is_told) {
  const std::vector<std::string> lines = lines_of({uneven_loop()});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].find("rank 1 computes 4.0 times as long as the median in each step"), 0u)
      << lines[0];
}

TEST_F(FindingsOfSteps, in_which_a_slow_rank_cost_most_are_named) {
  const std::vector<std::string> lines = lines_of(marked(100, 699));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(lines[0].ends_with("wait for it; most of that in steps 100 to 639")) << lines[0];
}

TEST_F(FindingsOfSteps, of_a_rank_that_is_slow_all_along_are_not_named) {
  const std::vector<std::string> lines = lines_of(marked(0, 999));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(lines[0].ends_with("wait for it")) << lines[0];
}

TEST_F(FindingsOfSteps, that_were_detected_have_numbers_that_mean_nothing) {
  StepSummary steps = marked(100, 699);
  steps.is_annotated = false;
  const std::vector<std::string> lines = lines_of(std::move(steps));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].find("most of that"), std::string::npos) << lines[0];
}

TEST_F(FindingsOfSteps, one_that_costs_nobody_a_hundredth_is_not) {
  StepLoop loop = uneven_loop();
  loop.median_ns = 5'000;
  loop.compute_ns = 1'000;
  loop.slowest_ns = 4'000;  // 3 ms of ten seconds
  EXPECT_TRUE(lines_of({loop}).empty());
}

TEST_F(FindingsOfSteps, that_get_slower_are_told_of_where_that_costs_a_hundredth) {
  StepLoop loop = uneven_loop();
  loop.slowest_ns = loop.compute_ns;
  loop.sum_ns = 10.0 * kSecond;
  loop.trend = 2;
  const std::vector<std::string> lines = lines_of({loop});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].find("steps get slower: the last tenth takes 2.0 times as long as the first"),
            0u);
  loop.median_ns = 500;  // most steps are nothing beside a few
  EXPECT_TRUE(lines_of({loop}).empty());
}

TEST_F(FindingsOfSteps, steps_that_are_seldom_like_the_pattern_say_nothing) {
  StepLoop loop = uneven_loop();
  loop.matched = 0.1;
  EXPECT_TRUE(lines_of({loop}).empty());
}

TEST_F(FindingsOfSteps, the_next_loop_that_is_sure_is_told) {
  StepLoop unsure = uneven_loop();
  unsure.matched = 0.1;
  StepLoop sure = uneven_loop();
  sure.name = "MPI_Bcast";
  sure.slowest_ns = 3'000'000;
  const std::vector<std::string> lines = lines_of({unsure, sure});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("3.0 times"), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find("detected at MPI_Bcast"), std::string::npos) << lines[0];
}

}  // namespace
}  // namespace aon::writers
