// Who comes late to operations whose starts are compared: those that are started by one call and
// completed by another, and those that move as much as each pair likes.

#include <aon/mpi.h>

#include "tests/unit/waits/ranks.h"

namespace aon::writers {
namespace {

constexpr uint64_t kUs = 1000;
constexpr auto kBarrier = CollectiveOperation::kBarrier;
constexpr auto kSum = CollectiveOperation::kAllreduce;

/// One barrier, or what else moves nothing that matters; times in us.
struct Times {
  uint64_t start;
  uint64_t enter;
  uint64_t leave;
};
Rank split(Times us, CollectiveOperation operation = kBarrier, uint64_t bytes = 0,
           uint32_t completed_by = kWaitall) {
  Event end = completed(operation, 9);
  end.bytes = end.bytes_received = bytes;
  return Rank()
      .call(kCollective, us.start * kUs, us.start * kUs + 1, {started(operation, 9)})
      .call(completed_by, us.enter * kUs, us.leave * kUs, {end});
}

/// The rows of the only operation, by rank.
std::vector<LatenessRow> lateness(const WaitSummary& summary) {
  EXPECT_EQ(summary.lateness.operation_count(), 1u);
  std::vector<LatenessRow> rows = summary.lateness.rows();
  EXPECT_EQ(rows.size(), static_cast<size_t>(summary.collective_count != 0 ? 3 : 0));
  rows.resize(3);
  return rows;
}

TEST(LateStarts, cost_the_others_what_they_waited_until_the_last_one) {
  Model model = make_model(3);
  model.regions[10 - kCollective].name = "MPI_Ibarrier";
  const auto rows = lateness(
      analyse(model, {split({10, 20, 500}), split({15, 300, 510}), split({400, 401, 505})}));
  EXPECT_EQ(rows[0].wait_ns, 380 * kUs);
  EXPECT_EQ(rows[1].wait_ns, 100 * kUs) << "it worked before";
  EXPECT_EQ(rows[2].caused_ns, 480 * kUs);
  EXPECT_EQ(rows[2].late_count, 1u);
  EXPECT_EQ(rows[0].late_count + rows[1].late_count, 0u);
  EXPECT_EQ(10 - rows[0].region, kCollective) << "not that of the call that waits";
}

TEST(LateStarts, that_all_work_over_cost_nothing) {
  const auto rows =
      lateness(analyse({split({10, 450, 500}), split({15, 401, 510}), split({400, 460, 505})}));
  for (const LatenessRow& row : rows)
    EXPECT_EQ(row.wait_ns + row.caused_ns + row.late_count, 0u) << row.group;
}

TEST(LateStarts, that_lie_close_together_share_the_cost) {
  const auto rows =
      lateness(analyse({split({10, 20, 500}), split({390, 450, 510}), split({400, 401, 505})}));
  EXPECT_EQ(rows[0].wait_ns, 380 * kUs);
  EXPECT_EQ(rows[1].caused_ns, 190 * kUs);
  EXPECT_EQ(rows[2].caused_ns, 190 * kUs);
  EXPECT_EQ(rows[2].shared_count, 1u);
}

TEST(LateStarts, on_other_nodes_are_late_beyond_the_error_of_the_clocks) {
  Model model = make_model(3);
  model.groups[2].node = 1;
  model.clock_error_ns = {20 * kUs, 50 * kUs};
  const std::vector<Rank> ranks = {split({10, 20, 500}), split({340, 450, 510}),
                                   split({400, 401, 505})};
  const auto rows = lateness(analyse(model, ranks));
  EXPECT_EQ(rows[0].wait_ns, 310 * kUs);
  EXPECT_EQ(rows[1].caused_ns, 155 * kUs) << "it may have been the last";
  EXPECT_EQ(rows[2].caused_ns, 155 * kUs);
  EXPECT_EQ(rows[1].last_count, 0u);
  EXPECT_EQ(rows[2].last_count, 1u);
  model.clock_error_ns = {0, kUnknownClockError};
  const WaitSummary unknown = analyse(model, ranks);
  EXPECT_EQ(unknown.lateness.operation_count(), 0u);
  EXPECT_EQ(unknown.uncompared_count, 1u);
  EXPECT_EQ(unknown.collective_count, 1u);
}

/// Starts `count` barriers and completes them by one call until 600 us.
Rank many(uint64_t count, uint64_t start_us, uint64_t enter_us) {
  Rank rank;
  std::vector<Event> ends;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t start_ns = start_us * kUs + 10 * i;
    rank.call(kCollective, start_ns, start_ns + 1, {started(kBarrier, 1 + i)});
    ends.push_back(completed(kBarrier, 1 + i));
  }
  return rank.call(kWaitall, enter_us * kUs, 600 * kUs, ends);
}

TEST(LateStarts, of_what_one_call_completes_count_once) {
  const WaitSummary summary = analyse({many(3, 10, 100), many(3, 400, 410)});
  const std::vector<LatenessRow> rows = summary.lateness.rows();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(summary.lateness.operation_count(), 3u);
  EXPECT_NEAR(static_cast<double>(rows[0].wait_ns), 300e3, 100);
  EXPECT_EQ(rows[1].caused_ns, rows[0].wait_ns);
  EXPECT_EQ(rows[1].late_count, 3u);
}

TEST(LateStarts, of_what_one_call_completes_are_told_however_many_they_are) {
  const WaitSummary summary = analyse({many(300, 10, 100), many(300, 400, 410)});
  const std::vector<LatenessRow> rows = summary.lateness.rows();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(summary.lateness.operation_count(), 300u);
  EXPECT_NEAR(static_cast<double>(rows[0].wait_ns), 301.5e3, 300);
  EXPECT_EQ(rows[1].caused_ns, rows[0].wait_ns);
}

TEST(LateStarts, are_no_matter_for_who_polls) {
  Model model = make_model(3, "MPI_Test");
  const auto rows = lateness(analyse(model, {split({10, 499, 500}, kBarrier, 0, kOther),
                                             split({15, 300, 510}), split({400, 401, 505})}));
  EXPECT_EQ(rows[0].wait_ns, 0u) << "it may have worked";
  EXPECT_EQ(rows[1].wait_ns, 100 * kUs);
  EXPECT_EQ(rows[2].caused_ns, 100 * kUs);
}

/// Two processes: one thread starts, another polls, as those do that keep the library going.
TEST(LateStarts, are_no_matter_for_who_polls_by_another_thread) {
  Model model = make_model(4, "MPI_Test");
  model.communicators[0].members = {0, 1};
  for (uint32_t i = 0; i < 4; ++i) model.locations[i].group = i / 2;
  const auto starts = [](uint64_t us) {
    return Rank().call(kCollective, us * kUs, us * kUs + 1, {started(kBarrier, 9)});
  };
  const auto polls = [](uint64_t us) {
    return Rank().call(kOther, us * kUs, us * kUs + 1, {completed(kBarrier, 9)});
  };
  const std::vector<Rank> orders[] = {{starts(10), polls(500), starts(400), polls(410)},
                                      {polls(500), starts(10), polls(410), starts(400)}};
  for (const std::vector<Rank>& ranks : orders) {
    const WaitSummary summary = analyse(model, ranks);
    EXPECT_EQ(summary.lateness.operation_count(), 1u);
    for (const LatenessRow& row : summary.lateness.rows())
      EXPECT_EQ(row.wait_ns + row.caused_ns + row.late_count, 0u) << row.group;
  }
}

TEST(LateStarts, of_persistent_collectives_are_told_by_what_prepares_them) {
  Model model = make_model(3, "MPI_Start");
  model.regions[10 - kRecv].name = "MPI_Barrier_init_c";
  const auto rank = [](Times us) {
    Event start = started(kBarrier, 9);
    start.region = kOther;
    start.bytes = pack_instance(1, 1);
    return Rank()
        .call(kOther, us.start * kUs, us.start * kUs + 1, {start})
        .call(kWaitall, us.enter * kUs, us.leave * kUs, {completed(kBarrier, 9)});
  };
  const auto rows =
      lateness(analyse(model, {rank({10, 20, 500}), rank({400, 401, 505}), rank({30, 480, 510})}));
  EXPECT_EQ(rows[1].caused_ns, 380 * kUs);
  EXPECT_EQ(rows[1].late_count, 1u);
  EXPECT_EQ(10 - rows[0].region, kRecv);
}

TEST(LateStarts, of_what_moves_nothing_tell_nothing) {
  const WaitSummary summary = analyse({split({10, 20, 500}, kSum), split({15, 300, 510}, kSum, 8),
                                       split({400, 401, 505}, kSum, 8)});
  EXPECT_EQ(summary.lateness.operation_count(), 0u);
  EXPECT_EQ(summary.uncompared_count, 0u);
}

/// The time of an Allreduce of 8 bytes each; none.
std::vector<uint64_t> times_of(const std::vector<Rank>& ranks) {
  std::vector<uint64_t> times;
  for (const TrueTimes& row : analyse(ranks).times) {
    EXPECT_EQ(row.bytes, 8u);
    times.push_back(row.least_ns / kUs);
  }
  return times;
}

TEST(LateStarts, have_true_times_where_all_wait_at_once) {
  const auto of = [](Times us) { return split(us, kSum, 24); };
  const auto only = testing::ElementsAre(100u);
  EXPECT_THAT(times_of({of({10, 20, 500}), of({15, 405, 510}), of({400, 401, 500})}), only);
  EXPECT_THAT(times_of({of({10, 20, 500}), of({15, 411, 510}), of({400, 401, 500})}),
              testing::IsEmpty());
  EXPECT_THAT(times_of({of({10, 20, 500}), of({15, 20, 510}), of({400, 480, 500})}),
              testing::IsEmpty());
}

/// One call completes an Allreduce of 8 bytes each and, `beside` it, another request.
TEST(LateStarts, have_no_true_times_where_a_call_waits_for_something_else_as_well) {
  const auto rank = [](Times us, std::vector<Event> beside) {
    Event end = completed(kSum, 9);
    end.bytes = end.bytes_received = 24;
    beside.push_back(end);
    return Rank()
        .call(kCollective, us.start * kUs, us.start * kUs + 1, {started(kSum, 9)})
        .call(kWaitall, us.enter * kUs, us.leave * kUs, beside);
  };
  const auto times_with = [&](const std::vector<Event>& beside) {
    return times_of(
        {rank({10, 20, 500}, {}), rank({15, 405, 510}, beside), rank({400, 401, 500}, {})});
  };
  EXPECT_THAT(times_with({}), testing::ElementsAre(100u));
  EXPECT_THAT(times_with({message(EventKind::kReceiveComplete, 0, 0, 1)}), testing::IsEmpty());
  EXPECT_THAT(times_with({request(EventKind::kSendComplete, 1)}), testing::IsEmpty());
  EXPECT_THAT(times_with({request(EventKind::kIoComplete, 1)}), testing::IsEmpty());
}

/// An Alltoallv: in us, and what it gets from everybody or not.
Rank uneven(uint64_t enter_us, uint64_t leave_us, bool is_from_all) {
  Event e = collective(CollectiveOperation::kAlltoallv);
  e.bytes = e.bytes_received = 24;
  e.flags = is_from_all ? kFromAll : 0;
  return Rank().call(kCollective, enter_us * kUs, leave_us * kUs, {e});
}

TEST(UnevenOperations, have_a_latecomer_where_each_gets_something_from_all) {
  // Rank 1 moves least, and has the shortest duration.
  const WaitSummary summary =
      analyse({uneven(10, 900, true), uneven(390, 420, true), uneven(400, 700, true)});
  const auto rows = lateness(summary);
  EXPECT_EQ(rows[0].wait_ns, 390 * kUs);
  EXPECT_EQ(rows[1].wait_ns, 10 * kUs);
  EXPECT_EQ(rows[2].last_count, 1u);
  EXPECT_EQ(rows[1].caused_ns + rows[2].caused_ns, 400 * kUs);
  EXPECT_EQ(rows[2].least_ns, 300 * kUs);
  ASSERT_EQ(summary.times.size(), 1u);
  EXPECT_EQ(summary.times[0].least_ns, 300 * kUs);
  EXPECT_EQ(analyse({uneven(10, 900, true), uneven(390, 420, false), uneven(400, 700, true)})
                .lateness.operation_count(),
            0u);
}

TEST(UnevenOperations, have_no_true_times_within_the_error_of_the_clocks) {
  Model model = make_model(3);
  model.groups[2].node = 1;
  model.clock_error_ns = {0, 31 * kUs};
  const std::vector<Rank> ranks = {uneven(10, 900, true), uneven(390, 700, true),
                                   uneven(400, 700, true)};
  EXPECT_TRUE(analyse(model, ranks).times.empty()) << "rank 1 may have been the last";
  model.clock_error_ns[1] = 30 * kUs;
  EXPECT_EQ(analyse(model, ranks).times.size(), 1u);
}

TEST(UnevenOperations, that_all_begin_at_once_have_nobody_to_blame) {
  const auto rows =
      lateness(analyse({uneven(100, 900, true), uneven(100, 200, true), uneven(100, 700, true)}));
  for (const LatenessRow& row : rows) EXPECT_EQ(row.late_count + row.wait_ns, 0u) << row.group;
}

}  // namespace
}  // namespace aon::writers
