// Who waits in collectives that are started by one call and completed by another, and in those
// among neighbours.

#include <aon/mpi.h>

#include "tests/unit/waits/ranks.h"

namespace aon::writers {
namespace {

/// Starts one at `start_ns` and completes it in a call from `enter_ns` to `leave_ns`.
Rank split_collective(CollectiveOperation operation, uint64_t start_ns, uint64_t enter_ns,
                      uint64_t leave_ns, int32_t root = -1) {
  return Rank()
      .call(kCollective, start_ns, start_ns + 1, {started(operation, 9)})
      .call(kWaitall, enter_ns, leave_ns, {completed(operation, 9, root)});
}

/// A call on 100 ns of some data; `bytes` as Traffic counts them.
Rank moving(CollectiveOperation operation, uint64_t enter_ns, uint64_t sent, uint64_t received) {
  Event e = collective(operation);
  e.bytes = sent;
  e.bytes_received = received;
  return Rank().call(kCollective, enter_ns, 100, {e});
}

/// Who came last, by the lateness of two members; -1: it is not told.
int latest_of(CollectiveOperation operation, uint64_t sent, uint64_t received) {
  const WaitSummary summary =
      analyse({moving(operation, 10, 8, 16), moving(operation, 70, sent, received)});
  EXPECT_EQ(summary.collective_count, 1u);
  int latest = -1;
  for (const LatenessRow& row : summary.lateness.rows()) {
    if (row.last_count != 0) latest = static_cast<int>(row.group);
  }
  return latest;
}

TEST(CollectivesOfUnevenCounts, tell_who_is_late_where_each_needs_all) {
  for (const auto operation :
       {CollectiveOperation::kAllgatherv, CollectiveOperation::kReduceScatter}) {
    EXPECT_EQ(latest_of(operation, 24, 16), 1);
    EXPECT_EQ(latest_of(operation, 0, 16), -1) << "nobody needs it";
    EXPECT_EQ(latest_of(operation, 24, 0), -1) << "it needs nobody";
  }
  EXPECT_EQ(latest_of(CollectiveOperation::kAlltoallv, 24, 16), -1);
}

TEST(SplitCollectives, have_numbers_among_the_others) {
  const std::vector<Event> barrier = {collective(CollectiveOperation::kBarrier)};
  const std::vector<Event> start = {started(CollectiveOperation::kBarrier, 9)};
  const std::vector<Event> end = {completed(CollectiveOperation::kBarrier, 9)};
  Event creation = collective(CollectiveOperation::kCreateHandle);
  const WaitSummary summary = analyse({Rank()
                                           .call(kCollective, 1, 2, start)
                                           .call(kWaitall, 5, 6, end)
                                           .call(kCollective, 10, 41, barrier),
                                       Rank()
                                           .call(kCollective, 1, 2, start)
                                           .call(kCollective, 3, 4, {creation})  // of some members
                                           .call(kCollective, 40, 42, barrier)
                                           .call(kWaitall, 43, 44, end)});
  EXPECT_THAT(rows(summary),
              testing::ElementsAre(Row{0, kCollective, WaitKind::kBarrier, 1, 30, 30}));
  EXPECT_EQ(summary.collective_count, 2u);
  EXPECT_EQ(summary.incomplete_count, 1u) << "the creation";
}

TEST(SplitCollectives, wait_where_they_are_completed_until_the_last_was_started) {
  const auto all = CollectiveOperation::kAllreduce;
  const WaitSummary summary = analyse({split_collective(all, 10, 50, 90),    // waits for rank 2
                                       split_collective(all, 20, 75, 91),    // came after it
                                       split_collective(all, 70, 80, 92)});  // is the last
  EXPECT_THAT(rows(summary), testing::ElementsAre(Row{0, kWaitall, WaitKind::kNxN, 1, 20, 20}));
  EXPECT_EQ(summary.collective_count, 1u);
  EXPECT_EQ(summary.incomplete_count, 0u);
}

TEST(SplitCollectives, are_matched_in_the_order_of_their_starts) {
  // Rank 0 completes the second first.
  const auto barrier = CollectiveOperation::kBarrier;
  const auto sum = CollectiveOperation::kAllreduce;
  const WaitSummary summary =
      analyse({Rank()
                   .call(kCollective, 10, 11, {started(barrier, 1)})
                   .call(kCollective, 12, 13, {started(sum, 2)})
                   .call(kWaitall, 20, 95, {completed(sum, 2)})
                   .call(kWaitall, 96, 97, {completed(barrier, 1)}),
               Rank()
                   .call(kCollective, 30, 31, {started(barrier, 1)})
                   .call(kCollective, 90, 91, {started(sum, 2)})
                   .call(kWaitall, 92, 98, {completed(barrier, 1), completed(sum, 2)})});
  EXPECT_THAT(rows(summary), testing::ElementsAre(Row{0, kWaitall, WaitKind::kNxN, 1, 70, 70}));
  EXPECT_EQ(summary.collective_count, 2u);
}

TEST(SplitCollectives, wait_for_a_root_that_has_not_started) {
  const auto broadcast = CollectiveOperation::kBroadcast;
  const WaitSummary summary = analyse({split_collective(broadcast, 10, 20, 60, 1),
                                       split_collective(broadcast, 50, 51, 52, 1),
                                       split_collective(broadcast, 55, 56, 61, 1)});
  EXPECT_THAT(rows(summary),
              testing::ElementsAre(Row{0, kWaitall, WaitKind::kLateBroadcast, 1, 30, 30}));
}

TEST(SplitCollectives, that_end_on_one_node_before_they_began_on_another_are_the_clocks) {
  Model model = make_model(2);
  model.groups[1].node = 1;
  model.clock_error_ns = {10, 20};
  const auto barrier = CollectiveOperation::kBarrier;
  const ClockViolations found =
      analyse(model, {split_collective(barrier, 10, 20, 40), split_collective(barrier, 50, 51, 60)})
          .clock_violations;
  EXPECT_EQ(found.collective_count, 1u);
  EXPECT_EQ(found.max_ns, 10u);
}

TEST(SplitCollectives, that_were_not_seen_to_end_are_left_out) {
  const auto barrier = CollectiveOperation::kBarrier;
  const Rank only_started = Rank().call(kCollective, 50, 51, {started(barrier, 9)});
  for (const Rank& other : {split_collective(barrier, 10, 20, 60), only_started}) {
    const WaitSummary summary = analyse({other, only_started});
    EXPECT_TRUE(summary.rows.empty());
    EXPECT_EQ(summary.collective_count, 0u);
    EXPECT_EQ(summary.incomplete_count, 1u);
  }
}

/// Regions as of MPI_Start, and of one request of an MPI_Startall within it.
class PersistentCollectives : public testing::TestWithParam<const char*> {};

/// A start of the persistent collective that was made as the `preparation`th.
Event started_again(CollectiveOperation operation, uint64_t request, uint32_t preparation,
                    uint32_t start) {
  Event e = started(operation, request);
  e.region = kOther;
  e.bytes = pack_instance(preparation, start);
  return e;
}

TEST_P(PersistentCollectives, find_their_partners_in_whatever_order_they_are_started) {
  const auto sum = CollectiveOperation::kAllreduce;
  const auto barrier = CollectiveOperation::kBarrier;
  const WaitSummary summary =
      analyse(make_model(2, GetParam()),
              {Rank()
                   .call(kOther, 10, 11, {started_again(sum, 1, 1, 1)})
                   .call(kOther, 12, 13, {started_again(barrier, 2, 2, 1)})
                   .call(kWaitall, 20, 95, {completed(sum, 1)})       // rank 1 starts it at 70
                   .call(kWaitall, 96, 97, {completed(barrier, 2)}),  // and this at 30
               Rank()
                   .call(kOther, 30, 31, {started_again(barrier, 5, 2, 1)})
                   .call(kOther, 70, 71, {started_again(sum, 6, 1, 1)})
                   .call(kWaitall, 80, 98, {completed(barrier, 5), completed(sum, 6)})});
  EXPECT_THAT(rows(summary), testing::ElementsAre(Row{0, kWaitall, WaitKind::kNxN, 1, 50, 50}));
  EXPECT_EQ(summary.collective_count, 2u);
  EXPECT_EQ(summary.incomplete_count, 0u);
}

TEST_P(PersistentCollectives, are_matched_start_by_start) {
  const auto barrier = CollectiveOperation::kBarrier;
  const auto rank = [&](uint64_t first_ns, uint64_t second_ns) {
    return Rank()
        .call(kOther, first_ns, first_ns + 1, {started_again(barrier, 1, 1, 1)})
        .call(kWaitall, first_ns + 2, 30, {completed(barrier, 1)})
        .call(kOther, second_ns, second_ns + 1, {started_again(barrier, 2, 1, 2)})
        .call(kWaitall, second_ns + 2, 90, {completed(barrier, 2)});
  };
  const WaitSummary summary = analyse(make_model(2, GetParam()), {rank(10, 40), rank(20, 70)});
  EXPECT_THAT(rows(summary), testing::ElementsAre(Row{0, kWaitall, WaitKind::kBarrier, 2, 36, 28}));
  EXPECT_EQ(summary.collective_count, 2u);
}

/// Each is refused, alone by MPI_Start or with others by MPI_Startall, and then started.
Rank refused_once(const std::vector<Event>& refused, bool is_one_call, uint64_t start_ns) {
  const auto barrier = CollectiveOperation::kBarrier;
  Rank rank;
  Event enter = test::enter(2, kOther);
  enter.flags = kFailed;
  if (is_one_call) {
    enter.communicator = refused[0].communicator;
    enter.operation = refused[0].operation;
    enter.bytes = refused[0].bytes;
  }
  rank.add(enter);
  for (const Event& start : refused) {
    if (is_one_call) break;
    Event at_start = start;
    at_start.time_ns = 3;
    rank.add(at_start);
    Event end = event(EventKind::kRequestCancelled, 4, 0);
    end.request = start.request;
    end.flags = kFailed;
    rank.add(end);
  }
  return rank.add(leave(5, kOther))
      .call(kOther, start_ns, start_ns + 1, {started_again(barrier, 8, 1, 2)})
      .call(kWaitall, start_ns + 2, 90, {completed(barrier, 8)});
}

TEST_P(PersistentCollectives, that_were_refused_on_all_members_alike_hide_nothing) {
  const Event barrier = started_again(CollectiveOperation::kBarrier, 7, 1, 1);
  const Model model = make_model(2, GetParam());
  for (const bool is_one_call : {true, false}) {
    const auto refused = [&](uint64_t start_ns) {
      return refused_once({barrier}, is_one_call, start_ns);
    };
    const WaitSummary alike = analyse(model, {refused(20), refused(60)});
    EXPECT_THAT(rows(alike), testing::ElementsAre(Row{0, kWaitall, WaitKind::kBarrier, 1, 38, 38}));
    EXPECT_EQ(alike.collective_count, 1u);
    EXPECT_EQ(alike.incomplete_count, 0u);
    EXPECT_EQ(alike.alike_failure_count, 2u);
    const Rank other = Rank()
                           .call(kOther, 2, 3, {barrier})
                           .call(kWaitall, 4, 50, {completed(CollectiveOperation::kBarrier, 7)});
    const WaitSummary alone = analyse(model, {refused(20), other});
    EXPECT_TRUE(alone.rows.empty());
    EXPECT_EQ(alone.collective_count, 0u);
    EXPECT_EQ(alone.alike_failure_count, 0u);
  }
}

TEST_P(PersistentCollectives, that_were_refused_beside_a_message_hide_all_behind_it) {
  const Event barrier = started_again(CollectiveOperation::kBarrier, 7, 1, 1);
  Event send = event(EventKind::kSendRequest, 0, 0);
  send.region = kOther;
  send.request = 6;
  send.peer = 1;
  const auto refused = [&](uint64_t start_ns) {
    return refused_once({barrier, send}, false, start_ns);
  };
  EXPECT_TRUE(analyse(make_model(2, GetParam()), {refused(20), refused(60)}).rows.empty());
}

TEST_P(PersistentCollectives, without_a_member_are_left_out) {
  const auto barrier = CollectiveOperation::kBarrier;
  const auto rank = [&](uint32_t preparation) {
    return Rank()
        .call(kOther, 10, 11, {started_again(barrier, 1, preparation, 1)})
        .call(kWaitall, 20, 30, {completed(barrier, 1)});
  };
  const WaitSummary summary = analyse(make_model(2, GetParam()), {rank(1), rank(2)});
  EXPECT_EQ(summary.collective_count, 0u);
  EXPECT_EQ(summary.incomplete_count, 2u);
}

TEST_P(PersistentCollectives, that_do_not_say_which_they_are_have_no_number) {
  // Rank 1 starts its own behind a barrier that must find its partner all the same.
  const Model model = make_model(2, GetParam());
  const Event start = started_again(CollectiveOperation::kAllreduce, 1, 0, 0);
  const std::vector<Event> barrier = {collective(CollectiveOperation::kBarrier)};
  const std::vector<Event> end = {completed(CollectiveOperation::kAllreduce, 1)};
  const WaitSummary summary = analyse(model, {Rank()
                                                  .call(kOther, 10, 11, {start})
                                                  .call(kCollective, 20, 51, barrier)
                                                  .call(kWaitall, 60, 95, end),
                                              Rank()
                                                  .call(kCollective, 50, 52, barrier)
                                                  .call(kOther, 90, 91, {start})
                                                  .call(kWaitall, 92, 96, end)});
  EXPECT_THAT(rows(summary),
              testing::ElementsAre(Row{0, kCollective, WaitKind::kBarrier, 1, 30, 30}));
  EXPECT_EQ(summary.collective_count, 1u);
  EXPECT_EQ(summary.incomplete_count, 0u);
}

INSTANTIATE_TEST_SUITE_P(Each, PersistentCollectives,
                         testing::Values("MPI_Start", "MPI_Startall", "MPI_Startall: one request"));

/// A line of ranks: each gets data of the one before it and the one behind it.
Model line_of(uint32_t ranks) {
  Model model = make_model(ranks);
  static const std::vector<uint32_t> kSources[] = {{1}, {0, 2}, {1, 3}, {2}};
  static const std::vector<uint32_t> kLast[] = {{}, {}, {0}, {1}, {2}};  // by the number of ranks
  for (uint32_t rank = 0; rank < ranks; ++rank)
    model.communicators[0].sources.push_back(rank + 1 < ranks ? &kSources[rank] : &kLast[ranks]);
  return model;
}

TEST(Neighborhoods, wait_for_those_whose_data_they_get) {
  const std::vector<Event> exchange = {collective(CollectiveOperation::kOther)};
  const WaitSummary summary = analyse(
      line_of(4),
      {Rank().call(kCollective, 10, 42, exchange), Rank().call(kCollective, 40, 43, exchange),
       Rank().call(kCollective, 20, 44, exchange), Rank().call(kCollective, 15, 25, exchange)});
  EXPECT_THAT(rows(summary),
              testing::ElementsAre(Row{0, kCollective, WaitKind::kNeighbors, 1, 30, 30},
                                   Row{2, kCollective, WaitKind::kNeighbors, 1, 20, 20},
                                   Row{3, kCollective, WaitKind::kNeighbors, 1, 5, 5}));
  EXPECT_EQ(summary.collective_count, 1u);
  EXPECT_TRUE(summary.lateness.rows().empty());
}

TEST(Neighborhoods, are_counted_apart_from_other_collectives) {
  const std::vector<Event> exchange = {collective(CollectiveOperation::kOther)};
  const std::vector<Event> barrier = {collective(CollectiveOperation::kBarrier)};
  // Rank 1 did not call: wrong, and no reason to match another's barrier.
  const WaitSummary summary = analyse(
      line_of(2), {Rank().call(kCollective, 5, 6, exchange).call(kCollective, 10, 41, barrier),
                   Rank().call(kCollective, 40, 42, barrier)});
  EXPECT_THAT(rows(summary),
              testing::ElementsAre(Row{0, kCollective, WaitKind::kBarrier, 1, 30, 30}));
  EXPECT_EQ(summary.incomplete_count, 1u);
}

TEST(Neighborhoods, of_unknown_sources_are_left_out) {
  const std::vector<Event> exchange = {collective(CollectiveOperation::kOther)};
  const std::vector<Rank> ranks = {Rank().call(kCollective, 10, 42, exchange),
                                   Rank().call(kCollective, 40, 43, exchange)};
  Model model = line_of(2);
  EXPECT_EQ(analyse(model, ranks).incomplete_count, 0u);
  model.communicators[0].sources.pop_back();
  EXPECT_TRUE(analyse(model, ranks).rows.empty());
  EXPECT_EQ(analyse(model, ranks).incomplete_count, 1u);
}

TEST(Neighborhoods, that_do_not_block_wait_where_they_are_completed) {
  const auto exchange = CollectiveOperation::kOther;
  const WaitSummary summary = analyse(
      line_of(3), {split_collective(exchange, 10, 20, 60), split_collective(exchange, 11, 12, 61),
                   split_collective(exchange, 50, 51, 62)});
  EXPECT_THAT(rows(summary),
              testing::ElementsAre(Row{1, kWaitall, WaitKind::kNeighbors, 1, 38, 38}));
}

}  // namespace
}  // namespace aon::writers
