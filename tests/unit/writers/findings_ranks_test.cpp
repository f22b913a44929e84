// Which rank is said to make the others wait, and when nobody is; who died first.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <ctime>
#include <map>

#include "tests/unit/profile/one_rank.h"
#include "tests/unit/writers/shares.h"
#include "writers/ledger/death_finding.h"
#include "writers/ledger/findings.h"

namespace aon::writers {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint32_t kBarrier = 10;  // global; local 0
constexpr uint32_t kEnd = 9;
constexpr uint64_t kSecond = 1'000'000'000;

/// Ranks that run for ten seconds, each so long in MPI_Barrier and in MPI_Finalize.
class FindingsOfRanks : public testing::Test {
 protected:
  FindingsOfRanks() : model_(test::make_model(4)) {
    model_.regions[kBarrier] = {"MPI_Barrier", RegionRole::kBarrier, Paradigm::kMpi};
    model_.regions[kEnd] = {"MPI_Finalize", RegionRole::kFunction, Paradigm::kMpi};
    model_.end_ns = 10 * kSecond;
    job_.nodes.resize(1);
    job_.nodes[0].host = "n1";
    model_.job = &job_;
    for (Group& group : model_.groups) group.process = &processes_[group.id];
  }

  void add_wait(uint32_t rank, uint64_t wait_ns, bool is_polled = false,
                WaitKind kind = WaitKind::kBarrier) {
    waits_.collective_count = 100;
    waits_.rows.push_back({.location = rank,
                           .region = kBarrier,
                           .kind = kind,
                           .wait_ns = wait_ns,
                           .is_polled = is_polled});
  }
  std::string lines(const std::vector<uint64_t>& mpi_s, const std::vector<uint64_t>& end_s = {}) {
    Findings findings(&waits_);
    test::run_whole({&findings}, model_, [this](const Location& location) {
      std::vector<Event> events = {test::enter(1, 0), test::leave(10 * kSecond, 0)};
      if (const auto lost = lost_s_.find(location.group); lost != lost_s_.end()) {
        const Event begin = test::event(EventKind::kLostBegin, kSecond, 0);
        const Event end = test::event(EventKind::kLostEnd, (1 + lost->second) * kSecond, 0);
        events.insert(events.begin() + 1, {begin, end});
      }
      return events;
    });
    for (const Location& location : model_.locations) {
      std::vector<profile::RegionStatistics> rows(1);
      rows[0].region = kBarrier;
      rows[0].count = 1;
      rows[0].exclusive_ns = mpi_s[location.group] * kSecond;
      if (!end_s.empty()) {
        rows.emplace_back().region = kEnd;
        rows[1].exclusive_ns = end_s[location.group] * kSecond;
      }
      findings.add_profile(model_.groups[location.group], &location, rows);
    }
    std::string text;
    for (const std::string& line : findings.lines({})) text += line + "\n";
    return text;
  }

  Model model_;
  spool::Job job_;
  spool::Process processes_[4];
  WaitSummary waits_;
  std::map<uint32_t, uint64_t> lost_s_;  ///< without records, by rank
};

TEST_F(FindingsOfRanks, the_slow_one_is_named_where_the_others_wait) {
  for (const uint32_t rank : {0, 1, 3}) add_wait(rank, 4 * kSecond);
  EXPECT_THAT(lines({5, 5, 1, 5}),
              HasSubstr("rank 2 is 9.0 s outside MPI, 4.0 s longer than the "
                        "median (5.0 s): the others wait 12.0 s in all for it"));
}

/// What it lost may have been calls of MPI.
TEST_F(FindingsOfRanks, one_that_lost_records_is_not_slow_for_that) {
  for (const uint32_t rank : {0, 1, 3}) add_wait(rank, 4 * kSecond);
  lost_s_[2] = 4;
  EXPECT_THAT(lines({5, 5, 1, 5}), testing::Not(HasSubstr("outside MPI")));
  lost_s_.clear();
  lost_s_[3] = 4;
  EXPECT_THAT(lines({5, 5, 1, 5}), HasSubstr("rank 2 is 9.0 s outside MPI, 4.0 s longer"));
}

TEST_F(FindingsOfRanks, those_that_called_mpi_abort_are_named_first) {
  model_.regions[kEnd].name = "MPI_Abort";
  Findings findings(&waits_);
  ASSERT_TRUE(findings.begin(model_));
  profile::RegionStatistics row;
  row.region = kEnd;
  for (const uint64_t count : {0, 1}) {
    row.count = count;
    findings.add_profile(model_.groups[2], &model_.locations[2], {&row, 1});
    EXPECT_EQ(findings.lines({}).empty(), count == 0);
  }
  EXPECT_EQ(findings.lines({})[0], "rank 2 called MPI_Abort");
  findings.add_profile(model_.groups[1], &model_.locations[1], {&row, 1});
  EXPECT_EQ(findings.lines({})[0], "ranks 1, 2 called MPI_Abort");
}

TEST_F(FindingsOfRanks, spawned_ones_may_be_in_the_files) {
  model_.regions[kBarrier].name = "MPI_Comm_spawn";
  EXPECT_THAT(lines({5, 5, 5, 5}), HasSubstr("spawned processes are not part of these files: "));
  for (int i = 0; i < 2; ++i) model_.communicators.emplace_back().kind = CommunicatorKind::kWorld;
  EXPECT_THAT(lines({5, 5, 5, 5}),
              HasSubstr("spawned processes are among those of other MPI programs here, or not part "
                        "of these files: "));
}

TEST_F(FindingsOfRanks, of_several_nodes_is_named_with_its_own) {
  job_.nodes.emplace_back().host = "n2";
  model_.groups[2].node = 1;
  for (const uint32_t rank : {0, 1, 3}) add_wait(rank, kSecond);
  EXPECT_THAT(lines({5, 5, 1, 5}), HasSubstr("rank 2 on n2 is 9.0 s outside MPI"));
  EXPECT_THAT(lines({5, 5, 1, 5}), HasSubstr("the others wait 3.0 s in all for it"));
  EXPECT_THAT(lines({5, 5, 5, 5}, {1, 4, 4, 4}), HasSubstr("rank 0 on n1 comes last to"));
}

TEST_F(FindingsOfRanks, nobody_is_accused_where_nobody_waits) {
  waits_.collective_count = 100;
  EXPECT_THAT(lines({5, 5, 1, 5}), testing::Not(HasSubstr("wait for")));
}

TEST_F(FindingsOfRanks, one_that_may_have_polled_all_the_time_is_not_accused) {
  for (const uint32_t rank : {0, 1}) add_wait(rank, 4 * kSecond);
  add_wait(2, 4 * kSecond, true);
  EXPECT_THAT(lines({5, 5, 1, 1}), HasSubstr("rank 3 is 9.0 s outside MPI and its polling"));
}

TEST_F(FindingsOfRanks, polls_are_in_mpi_once) {
  for (const uint32_t rank : {0, 1, 3}) add_wait(rank, 4 * kSecond, true);
  model_.regions[kBarrier].name = "MPI_Test";
  EXPECT_THAT(lines({5, 5, 1, 5}), HasSubstr("rank 2 is 9.0 s outside MPI, 4.0 s longer than the "
                                             "median (5.0 s)"));
}

TEST_F(FindingsOfRanks, what_is_an_upper_bound_is_said_to_be_one) {
  add_wait(0, 4 * kSecond);
  EXPECT_THAT(lines({5, 5, 5, 5}), HasSubstr("waiting for late partners takes 10.0 % of the ranks' "
                                             "time (4.0 s, of it 4.0 s wait at barrier)"));
  add_wait(1, 2 * kSecond, false, WaitKind::kFile);
  EXPECT_THAT(lines({5, 5, 5, 5}),
              HasSubstr("waiting for late partners takes at most 15.0 % of the "
                        "ranks' time (6.0 s, of it 4.0 s wait at barrier)"));
  for (const WaitKind kind : {WaitKind::kLateReceiver, WaitKind::kCreate, WaitKind::kFree,
                              WaitKind::kFence, WaitKind::kFile}) {
    waits_.rows.clear();
    add_wait(1, 4 * kSecond, false, kind);
    EXPECT_THAT(lines({5, 5, 5, 5}),
                HasSubstr(std::string("takes at most 10.0 % of the ranks' time (4.0 s, of it at "
                                      "most 4.0 s ") +
                          wait_kind_name(kind)));
  }
  waits_.incomplete_count = waits_.collective_count;
  EXPECT_THAT(lines({5, 5, 5, 5}), HasSubstr("partners takes about 10.0 % of"));
}

TEST_F(FindingsOfRanks, upper_bounds_that_change_no_figure_are_not_mentioned) {
  add_wait(0, 4 * kSecond);
  add_wait(1, 1000, false, WaitKind::kCreate);
  EXPECT_THAT(lines({5, 5, 5, 5}), HasSubstr("partners takes 10.0 % of the ranks' time (4.0 s"));
}

TEST_F(FindingsOfRanks, the_others_wait_at_most_what_is_an_upper_bound) {
  for (const uint32_t rank : {0, 1, 3}) add_wait(rank, 4 * kSecond, false, WaitKind::kFile);
  EXPECT_THAT(lines({5, 5, 1, 5}), HasSubstr("the others wait at most 12.0 s in all for it"));
  for (const uint32_t rank : {0, 1, 3}) add_wait(rank, 4 * kSecond);
  EXPECT_THAT(lines({5, 5, 1, 5}), HasSubstr("the others wait 12.0 s in all for it"));
}

TEST_F(FindingsOfRanks, equal_ones_are_named_together) {
  for (const uint32_t rank : {0, 2}) add_wait(rank, 4 * kSecond);
  EXPECT_THAT(lines({5, 1, 5, 1}),
              HasSubstr("ranks 1, 3 are 9.0 s outside MPI, 4.0 s longer than "
                        "the median (5.0 s): the others wait 8.0 s in all for them"));
}

TEST_F(FindingsOfRanks, latecomers_that_cost_about_the_same_are_named_together) {
  for (const uint32_t late : {2u, 3u}) {
    std::vector<Attendance> members;
    for (uint32_t rank = 0; rank < 4; ++rank)
      members.push_back({rank, rank == late ? 1000 : kSecond + late});
    waits_.lateness.add(0, kBarrier, members);
  }
  EXPECT_THAT(lines({5, 5, 5, 5}),
              HasSubstr("rank 3 on n1 came last to 1 of 2 collectives: the others waited 3.0 s for "
                        "it, 3.0 s of it in MPI_Barrier; as long for rank 2\n"));
}

TEST_F(FindingsOfRanks, latecomers_that_come_together_share_what_the_others_waited) {
  for (int i = 0; i < 2; ++i) {
    waits_.lateness.add(
        0, kBarrier,
        std::vector<Attendance>{{0, 2 * kSecond}, {1, 1000}, {2, 1000}, {3, 2 * kSecond}});
  }
  EXPECT_THAT(lines({5, 5, 5, 5}),
              HasSubstr("rank 1 on n1 came last together with others to 2 of 2 collectives: the "
                        "others waited 4.0 s for it (its share), 4.0 s of it in MPI_Barrier; as "
                        "long for rank 2\n"));
}

/// A whole node of a large job: each of it costs little of the ranks' time, all together do not.
TEST_F(FindingsOfRanks, those_that_are_late_together_are_judged_together) {
  for (uint32_t i = 0; i < 100; ++i) {
    model_.groups.push_back(model_.groups[0]);
    model_.groups.back().id = 4 + i;
    model_.groups.back().rank = 4 + i;
    model_.locations.push_back(model_.locations[0]);
    model_.locations.back().id = uint64_t{4 + i} << 32;
    model_.locations.back().group = 4 + i;
  }
  std::vector<Attendance> members;
  for (uint32_t rank = 0; rank < 104; ++rank)
    members.push_back({rank, rank >= 40 && rank < 60 ? 1000 : 2 * kSecond});
  waits_.lateness.add(0, kBarrier, members);
  EXPECT_THAT(
      lines(std::vector<uint64_t>(104, 5)),
      HasSubstr("the others waited 8.4 s for it (its share), 8.4 s of it in MPI_Barrier; as "
                "long for ranks 41-59\n"));
}

/// Programs whose messages have any length have as many sizes as there is room for.
TEST_F(FindingsOfRanks, of_many_ranks_and_sizes_do_not_take_the_time_of_their_product) {
  constexpr uint32_t kRanks = 20'000;
  for (uint32_t rank = 4; rank < kRanks; ++rank) {
    Group& group = model_.groups.emplace_back();
    group.id = rank;
    group.rank = rank;
    model_.locations.push_back(model_.locations[0]);
    model_.locations.back().id = rank;
    model_.locations.back().group = rank;
  }
  for (uint64_t bytes = 0; bytes < kMaxSizes; ++bytes)
    waits_.times.push_back({.region = kBarrier, .bytes = bytes, .count = 1});
  const std::vector<uint64_t> times(kRanks, 5);
  const std::clock_t begin = std::clock();
  EXPECT_THAT(lines(times), testing::Not(HasSubstr("took longer")));
  EXPECT_LT(std::clock() - begin, 5 * CLOCKS_PER_SEC);
}

TEST_F(FindingsOfRanks, little_waiting_is_told_where_most_could_not_be_matched) {
  add_wait(1, kSecond / 10);
  EXPECT_THAT(lines({5, 5, 5, 5}), testing::Not(HasSubstr("late partners")));
  waits_.incomplete_count = 900;
  EXPECT_THAT(
      lines({5, 5, 5, 5}),
      HasSubstr("little is known of waiting for late partners: 90 % of the collectives could "
                "not be matched; what could be seen takes 0.2 % of the ranks' time (100 ms)\n"));
  add_wait(1, 4 * kSecond);
  EXPECT_THAT(
      lines({5, 5, 5, 5}),
      HasSubstr("waiting for late partners takes at least 10.2 % of the ranks' time (4.1 s, "
                "of it 4.1 s wait at barrier): rank 1 waits longest (4.1 s), rank 0 least "
                "(0 us); 90 % of the collectives could not be matched\n"));
}

TEST_F(FindingsOfRanks, why_little_is_known_of_waiting_is_told) {
  waits_.incomplete_count = 20;
  const std::string known = "no collective could be matched: ";
  waits_.holes[Hole::kThreads] = 7;
  EXPECT_THAT(
      lines({5, 5, 5, 5}),
      HasSubstr(known + "several threads of a process use the same communicator and tag\n"));
  waits_.holes[Hole::kThreads] = 0;
  waits_.holes[Hole::kWorlds] = 1;
  EXPECT_THAT(lines({5, 5, 5, 5}),
              HasSubstr(known + "communicators have spawned or connected processes\n"));
  waits_.holes[Hole::kThreads] = 1;
  waits_.holes[Hole::kWorlds] = 0;
  waits_.holes[Hole::kFailure] = 1;
  waits_.holes[Hole::kLoss] = 3;
  EXPECT_THAT(
      lines({5, 5, 5, 5}),
      HasSubstr(known + "3 processes lost records, 1 process had calls that failed, several "
                        "threads of a process use the same communicator and tag\n"));
}

TEST_F(FindingsOfRanks, messages_that_nobody_received_are_told) {
  waits_.message_count = 1;
  waits_.unmatched_count = 2;
  waits_.holes[Hole::kUnreceived] = 2;
  const std::string known = "50 % of the messages could not be matched";
  EXPECT_THAT(lines({5, 5, 5, 5}),
              HasSubstr(known + ": of 2 messages the send is there and no receive"));
  waits_.holes[Hole::kLoss] = 1;  // which may have been of the receives
  EXPECT_THAT(lines({5, 5, 5, 5}), HasSubstr(known + ": 1 process lost records;"));
}

TEST_F(FindingsOfRanks, waiting_that_cannot_be_much_is_not_missed) {
  waits_.incomplete_count = 20;
  EXPECT_THAT(lines({0, 0, 0, 0}), testing::Not(HasSubstr("late partners")));
}

TEST_F(FindingsOfRanks, no_waiting_is_told_where_none_could_be_seen) {
  waits_.incomplete_count = 20;
  EXPECT_THAT(lines({5, 5, 5, 5}), HasSubstr("nothing is known of waiting for late partners: no "
                                             "collective could be matched\n"));
  add_wait(1, 1000);
  waits_.incomplete_count = 900;
  EXPECT_THAT(lines({5, 5, 5, 5}), HasSubstr("takes less than 0.1 % of the ranks' time (1 us)"));
  waits_.rows.clear();
  waits_.incomplete_count = 20;
  waits_.message_count = 1;
  waits_.unmatched_count = 798;
  waits_.collective_count = 20;
  EXPECT_THAT(lines({5, 5, 5, 5}),
              HasSubstr("little is known of waiting for late partners: more than 99 % of the "
                        "messages could not be matched; in the others nobody waited\n"));
}

TEST_F(FindingsOfRanks, communication_that_is_not_complete_is_told_of) {
  EXPECT_THAT(lines({5, 5, 5, 5}), testing::Not(HasSubstr("not complete")));
  Findings findings(&waits_);
  ASSERT_TRUE(findings.begin(model_));
  Outcome outcome;
  outcome.unmatched_count = 1200;
  ASSERT_TRUE(findings.finish(outcome));
  ASSERT_FALSE(findings.lines({}).empty());
  EXPECT_EQ(findings.lines({})[0],
            "1 200 ends of messages or collectives failed, or their partner is not known: the "
            "archive's communication is not complete");
}

TEST_F(FindingsOfRanks, who_is_late_together_with_the_last_one_and_has_no_rank_is_not_named) {
  model_.groups[3].rank.reset();
  waits_.lateness.add(0, kBarrier,
                      std::vector<Attendance>{{0, 1000}, {1, 1000}, {2, 20 * kSecond}, {3, 1001}});
  EXPECT_THAT(lines({5, 5, 5, 5}), HasSubstr("in MPI_Barrier; as long for rank 1\n"));
}

TEST_F(FindingsOfRanks, who_comes_last_to_the_end_is_named) {
  EXPECT_THAT(lines({5, 5, 5, 5}, {0, 3, 3, 3}), testing::Not(HasSubstr("MPI_Finalize")))
      << "one that is not there may be anything";
  EXPECT_THAT(lines({5, 5, 5, 5}, {1, 1, 4, 4}), HasSubstr("comes last to MPI_Finalize"));
  model_.groups.pop_back();
  model_.locations.pop_back();
  std::vector<uint64_t> end_s{4, 1, 4};
  EXPECT_THAT(lines({5, 5, 5}, end_s),
              HasSubstr("rank 1 comes last to MPI_Finalize: the others wait 6.0 s for it there"));
}

TEST_F(FindingsOfRanks, time_of_a_script_above_them_is_not_theirs) {
  constexpr const char* kTold = "MPI_Barrier takes 50.0 % of the ranks' time";
  EXPECT_THAT(lines({5, 5, 5, 5}), HasSubstr(kTold));
  model_.end_ns = 1000 * kSecond;
  EXPECT_THAT(lines({5, 5, 5, 5}), testing::Not(HasSubstr(kTold))) << "the job's is";
  spool::Process script;
  script.start = {};
  script.start.rank = -1;
  Group& group = model_.groups.emplace_back();
  group.id = 4;
  group.process = &script;
  EXPECT_THAT(lines({5, 5, 5, 5}), HasSubstr(kTold));
  script.start.rank = 2;
  EXPECT_THAT(lines({5, 5, 5, 5}), testing::Not(HasSubstr(kTold)))
      << "it was rank 2 as well: nobody has said Hello there";
  processes_[2].identity.emplace();
  processes_[2].start = {};
  processes_[2].start.attach_ticks = 7;
  EXPECT_THAT(lines({5, 5, 5, 5}), HasSubstr(kTold)) << "which it has started";
  script.exit.emplace().end_ticks = 6;
  EXPECT_THAT(lines({5, 5, 5, 5}), testing::Not(HasSubstr(kTold))) << "it had ended by then";
  model_.groups.pop_back();
}

TEST_F(FindingsOfRanks, threads_that_call_mpi_count_like_the_first_one) {
  model_.locations.push_back(model_.locations[0]);
  model_.locations.back().id = uint64_t{1} << 32;
  model_.locations.back().slot = 2;
  Findings findings(&waits_);
  test::run_whole({&findings}, model_, [](const Location&) {
    return std::vector<Event>{test::enter(1, 0), test::leave(10 * kSecond, 0)};
  });
  for (const Location& location : {model_.locations[1], model_.locations.back()}) {
    profile::RegionStatistics row;
    row.region = kBarrier;
    row.count = 1;
    row.exclusive_ns = 5 * kSecond;
    findings.add_profile(model_.groups[location.group], &location, {&row, 1});
  }
  ASSERT_FALSE(findings.lines({}).empty());
  EXPECT_THAT(findings.lines({})[0], HasSubstr("MPI_Barrier takes 25.0 % of the ranks' time "
                                               "(10.0 s in 2 calls)"));
}

TEST_F(FindingsOfRanks, of_calls_whose_records_are_lost_only_the_known_ones_are_told) {
  Findings findings(&waits_);
  test::run_whole({&findings}, model_, [](const Location&) {
    return std::vector<Event>{test::enter(1, 0), test::leave(10 * kSecond, 0)};
  });
  for (const Location& location : model_.locations) {
    profile::RegionStatistics row;
    row.region = kBarrier;
    row.count = 3;
    row.exclusive_ns = 5 * kSecond;
    findings.add_profile(model_.groups[location.group], &location, {&row, 1});
  }
  constexpr const char* kAll = "MPI_Barrier takes 50.0 % of the ranks' time (20.0 s in 12 calls)";
  LocationTally tally;
  tally.location = &model_.locations[1];
  EXPECT_THAT(findings.lines({&tally, 1})[0], HasSubstr(kAll));
  tally.lost[static_cast<size_t>(LossReason::kPoolFull)].count = 7;
  EXPECT_THAT(findings.lines({&tally, 1})[1],
              HasSubstr("MPI_Barrier takes at least 50.0 % of the ranks' time (20.0 s in 12 known "
                        "calls)"));
  model_.locations[1].type = LocationType::kSamples;
  EXPECT_THAT(findings.lines({&tally, 1})[1], HasSubstr(kAll)) << "no calls are lost";
  model_.locations[1].type = LocationType::kThread;
  model_.groups[1].rank.reset();
  EXPECT_THAT(findings.lines({&tally, 1})[1], HasSubstr(kAll)) << "it has no rank";
}

class FirstDeath : public FindingsOfRanks {
 protected:
  void end(uint32_t rank, int32_t signal, uint64_t ticks) {
    processes_[rank].exit = ProcessExitDefinition{};
    processes_[rank].exit->signal = signal;
    processes_[rank].exit->end_ticks = ticks;
  }
  std::string finding() { return death_finding(model_, clocks_); }

  std::vector<clock::ClockMap> clocks_ = std::vector<clock::ClockMap>(1);
};

TEST_F(FirstDeath, is_the_fault_and_not_what_the_launcher_did) {
  end(0, SIGTERM, 50);
  end(1, SIGKILL, 60);
  end(2, SIGSEGV, 70);
  EXPECT_THAT(finding(), HasSubstr("rank 2 on n1 ended first, by signal 11 (Segmentation fault)"));
  end(3, SIGABRT, 65);
  EXPECT_THAT(finding(), HasSubstr("rank 3 on n1 ended first, by signal 6 (Aborted)"));
}

TEST_F(FirstDeath, of_one_rank_alone) {
  end(0, 0, 50);
  end(1, SIGKILL, 60);
  EXPECT_THAT(finding(), HasSubstr("rank 1 on n1 ended by signal 9 (Killed)"));
}

TEST_F(FirstDeath, with_an_exit_code_comes_before_those_that_the_launcher_killed) {
  processes_[0].identity = IdentityDefinition{};
  for (uint32_t rank = 0; rank < 3; ++rank) end(rank, SIGKILL, 60);
  end(3, 0, 50);
  processes_[3].exit->exit_code = 1;
  EXPECT_EQ(finding(), "rank 3 on n1 ended first, with exit code 1") << "it was only followed";
  processes_[3].regions[1] = {"MPI_Init", RegionRole::kFunction, Paradigm::kMpi};
  EXPECT_THAT(finding(), HasSubstr("rank 3 on n1 ended first, with exit code 1 and without "
                                   "MPI_Finalize"));
  processes_[3].identity = IdentityDefinition{};
  processes_[3].identity->complete = 1;
  EXPECT_THAT(finding(), IsEmpty()) << "it was through with MPI, and three were killed";
}

TEST_F(FirstDeath, without_mpi_is_none_where_all_had_one_exit_code) {
  end(0, SIGKILL, 60);
  for (uint32_t rank = 1; rank < 4; ++rank) end(rank, 0, 50);
  processes_[1].exit->exit_code = 1;
  EXPECT_EQ(finding(), "rank 1 on n1 ended first, with exit code 1");
  for (uint32_t rank = 0; rank < 4; ++rank) {
    end(rank, 0, 50);
    processes_[rank].exit->exit_code = 1;
  }
  EXPECT_THAT(finding(), IsEmpty());
  processes_[2].exit->exit_code = 2;
  EXPECT_THAT(finding(), HasSubstr("rank 0 on n1 ended first, with exit code 1"));
}

TEST_F(FirstDeath, is_none_where_all_ended_well_or_were_ended) {
  EXPECT_THAT(finding(), IsEmpty());
  for (uint32_t rank = 0; rank < 4; ++rank) end(rank, SIGTERM, 50 + rank);
  EXPECT_THAT(finding(), IsEmpty());
  for (uint32_t rank = 0; rank < 4; ++rank) end(rank, SIGKILL, 50 + rank);
  EXPECT_THAT(finding(), IsEmpty());
}

}  // namespace
}  // namespace aon::writers
