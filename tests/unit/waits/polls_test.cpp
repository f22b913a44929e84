// What polls (MPI_Test and its like) waited at most: apart from all waiting that is known.

#include "tests/unit/waits/ranks.h"

namespace aon::writers {
namespace {

constexpr uint32_t kTest = kOther;

Model polling(uint32_t ranks) { return make_model(ranks, "MPI_Test"); }

Rank posted(uint64_t at_ns) {
  return Rank().call(kRecv, at_ns, at_ns + 1, {request(EventKind::kReceiveRequest, 1)});
}
const std::vector<Event> kReceived = {message(EventKind::kReceiveComplete, 1, 0, 1)};

Rank sends_at(uint64_t at_ns) {
  return Rank().call(kSend, at_ns, at_ns + 1, {message(EventKind::kSend, 0)});
}

/// The polled rows; nothing else may have waited.
std::vector<Row> polled_rows(const WaitSummary& summary) {
  for (const WaitRow& row : summary.rows) EXPECT_TRUE(row.is_polled);
  return rows(summary);
}

TEST(Polls, wait_at_most_from_the_last_other_call_until_the_send) {
  // Between post and completion: two polls that found nothing, one of them timed.
  const Rank receives =
      posted(10).call(kTest, 15, 16).call(kTest, 20, 21).call(kTest, 90, 91, kReceived);
  const WaitSummary summary = analyse(polling(2), {receives, sends_at(60)});
  EXPECT_THAT(polled_rows(summary),
              testing::ElementsAre(Row{0, kTest, WaitKind::kLateSender, 1, 49, 49}));
  EXPECT_EQ(summary.message_count, 1u);
}

TEST(Polls, of_a_send_in_time_wait_for_nothing) {
  const WaitSummary summary =
      analyse(polling(2), {posted(10).call(kTest, 90, 91, kReceived), sends_at(11)});
  EXPECT_TRUE(summary.rows.empty());
}

TEST(Polls, do_not_wait_in_other_calls) {
  const Rank receives =
      posted(10).call(kCollective, 20, 40).call(kTest, 50, 51).call(kTest, 90, 91, kReceived);
  EXPECT_THAT(polled_rows(analyse(polling(2), {receives, sends_at(60)})),
              testing::ElementsAre(Row{0, kTest, WaitKind::kLateSender, 1, 20, 20}));
}

TEST(Polls, that_complete_one_after_the_other_share_no_time) {
  const Rank receives = Rank()
                            .call(kRecv, 10, 11, {request(EventKind::kReceiveRequest, 1)})
                            .call(kRecv, 12, 13, {request(EventKind::kReceiveRequest, 2)})
                            .call(kTest, 50, 51, kReceived)
                            .call(kTest, 90, 91, {message(EventKind::kReceiveComplete, 1, 0, 2)});
  const Rank sends = Rank()
                         .call(kSend, 40, 41, {message(EventKind::kSend, 0)})
                         .call(kSend, 80, 81, {message(EventKind::kSend, 0)});
  EXPECT_THAT(polled_rows(analyse(polling(2), {receives, sends})),
              testing::ElementsAre(Row{0, kTest, WaitKind::kLateSender, 2, 27 + 29, 29}));
}

TEST(Polls, other_calls_of_which_one_in_many_is_recorded_end_nothing) {
  Rank receives = posted(10);
  receives.add(enter(30, kCollective, 64)).add(leave(31, kCollective));
  receives.call(kTest, 90, 91, kReceived);
  EXPECT_THAT(polled_rows(analyse(polling(2), {receives, sends_at(60)})),
              testing::ElementsAre(Row{0, kTest, WaitKind::kLateSender, 1, 49, 49}));
}

TEST(Polls, of_collectives_wait_at_most_until_the_last_was_started) {
  std::vector<Rank> ranks;
  for (const uint64_t start_ns : {10, 70}) {
    Event start = message(EventKind::kCollectiveRequest, -1, 0, 9);
    start.operation = CollectiveOperation::kBarrier;
    Event end = collective(CollectiveOperation::kBarrier);
    end.kind = EventKind::kCollectiveComplete;
    end.request = 9;
    ranks.push_back(
        Rank().call(kCollective, start_ns, start_ns + 1, {start}).call(kTest, 80, 81, {end}));
  }
  const WaitSummary summary = analyse(polling(2), ranks);
  EXPECT_THAT(polled_rows(summary),
              testing::ElementsAre(Row{0, kTest, WaitKind::kBarrier, 1, 59, 59}));
  for (const LatenessRow& row : summary.lateness.rows()) EXPECT_EQ(row.wait_ns, 0u);
}

TEST(Polls, are_no_calls_that_waited) {
  const Model model = polling(2);
  const auto analysis = make_wait_analysis(testing::TempDir());
  ASSERT_TRUE(analysis->begin(model));
  const std::vector<Rank> ranks = {posted(10'000).call(kTest, 90'000, 91'000, kReceived),
                                   sends_at(60'000)};
  for (size_t i = 0; i < ranks.size(); ++i) {
    ASSERT_TRUE(analysis->begin_location(model.locations[i]));
    ASSERT_TRUE(analysis->events(ranks[i].events()));
    ASSERT_TRUE(analysis->end_location());
  }
  ASSERT_TRUE(analysis->finish({}));
  ASSERT_EQ(analysis->summary()->rows.size(), 1u);
  const auto calls = analysis->read_calls();
  ASSERT_TRUE(calls);
  const auto call = (*calls)->next(0);
  ASSERT_TRUE(call);
  EXPECT_FALSE(call->has_value());
}

}  // namespace
}  // namespace aon::writers
