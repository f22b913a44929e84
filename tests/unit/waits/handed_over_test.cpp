// Receives and collectives that one thread begins and another one completes.
#include <utility>

#include "tests/unit/waits/ranks.h"

namespace aon::writers {
namespace {

constexpr uint32_t kPoster = 1;
constexpr uint32_t kCompleter = 2;

Event posted(uint64_t number) { return request(EventKind::kReceiveRequest, number); }

/// As the assembly tells of it: the request is of another thread.
Event completed(uint64_t number, int32_t tag = 0) {
  Event e = message(EventKind::kReceive, 0, tag, number);
  e.flags = kNonblocking;
  return e;
}

Event begun_barrier(uint64_t number) {
  Event e = message(EventKind::kCollectiveRequest, -1, 0, number);
  e.operation = CollectiveOperation::kBarrier;
  return e;
}
Event completed_barrier(uint64_t number) {
  Event e = begun_barrier(number);
  e.kind = EventKind::kCollectiveComplete;
  return e;
}

/// Rank 0 sends; rank 1 has two threads, of which either may be read first.
class HandedOver : public testing::TestWithParam<bool> {
 protected:
  WaitSummary analyse_threads(const Rank& sender, const Rank& poster, const Rank& completer) {
    Model model = make_model(3, "MPI_Test");
    model.locations[2].group = 1;
    model.communicators[0].members = {0, 1};
    std::vector<Rank> ranks = {sender, poster, completer};
    if (GetParam()) std::swap(ranks[1], ranks[2]);
    return analyse(model, ranks);
  }
  static uint32_t location(uint32_t thread) {
    return GetParam() ? (thread == kPoster ? 2 : 1) : thread;
  }
};

TEST_P(HandedOver, wait_where_they_are_completed_and_hide_nothing) {
  const WaitSummary summary =
      analyse_threads(Rank()
                          .call(kSend, 40, 41, {message(EventKind::kSend, 1, 5)})
                          .call(kSend, 90, 91, {message(EventKind::kSend, 1, 6)}),
                      Rank()
                          .call(kRecv, 10, 11, {posted(1)})
                          .call(kRecv, 70, 95, {message(EventKind::kReceive, 0, 6)}),
                      Rank().call(kWaitall, 20, 50, {completed(1, 5)}));
  EXPECT_THAT(rows(summary),
              testing::UnorderedElementsAre(
                  Row{location(kCompleter), kWaitall, WaitKind::kLateSender, 1, 20, 20},
                  Row{location(kPoster), kRecv, WaitKind::kLateSender, 1, 20, 20}));
  EXPECT_EQ(summary.message_count, 2u);
  EXPECT_EQ(summary.unmatched_count, 0u);
}

TEST_P(HandedOver, let_a_send_wait_until_they_were_posted) {
  const WaitSummary summary = analyse_threads(
      Rank().call(kSend, 10, 60, {message(EventKind::kSend, 1)}),
      Rank().call(kRecv, 30, 31, {posted(1)}), Rank().call(kWaitall, 40, 61, {completed(1)}));
  EXPECT_THAT(rows(summary),
              testing::ElementsAre(Row{0, kSend, WaitKind::kLateReceiver, 1, 20, 20}));
}

TEST_P(HandedOver, are_matched_in_the_order_in_which_they_were_posted) {
  const WaitSummary summary = analyse_threads(
      Rank()
          .call(kSend, 30, 31, {message(EventKind::kSend, 1)})
          .call(kSend, 60, 61, {message(EventKind::kSend, 1)}),
      Rank().call(kRecv, 10, 11, {posted(1)}).call(kRecv, 12, 13, {posted(2)}),
      Rank().call(kWaitall, 20, 70, {completed(2)}).call(kWaitall, 80, 81, {completed(1)}));
  EXPECT_THAT(rows(summary), testing::ElementsAre(Row{location(kCompleter), kWaitall,
                                                      WaitKind::kLateSender, 1, 40, 40}));
  EXPECT_EQ(summary.message_count, 2u);
}

TEST_P(HandedOver, that_a_poll_completes_wait_at_most_from_their_post_on) {
  const WaitSummary summary = analyse_threads(
      Rank()
          .call(kSend, 60, 61, {message(EventKind::kSend, 1)})
          .call(kSend, 95, 96, {message(EventKind::kSend, 1)}),
      Rank().call(kRecv, 10, 11, {posted(1)}).call(kRecv, 12, 13, {posted(2)}),
      Rank().call(kOther, 80, 81, {completed(1)}).call(kOther, 99, 100, {completed(2)}));
  EXPECT_THAT(rows(summary), testing::ElementsAre(Row{location(kCompleter), kOther,
                                                      WaitKind::kLateSender, 2, 64, 50}));
  EXPECT_TRUE(summary.rows.at(0).is_polled);
}

TEST_P(HandedOver, that_two_threads_have_posted_have_no_order) {
  const WaitSummary summary =
      analyse_threads(Rank()
                          .call(kSend, 30, 31, {message(EventKind::kSend, 1)})
                          .call(kSend, 60, 61, {message(EventKind::kSend, 1)}),
                      Rank().call(kRecv, 10, 11, {posted(1)}),
                      Rank()
                          .call(kWaitall, 20, 40, {completed(1)})
                          .call(kRecv, 50, 70, {message(EventKind::kReceive, 0)}));
  EXPECT_EQ(summary.message_count, 1u);
  EXPECT_EQ(summary.unmatched_count, 2u);
}

TEST_P(HandedOver, that_nobody_has_completed_hide_what_comes_after_them) {
  const WaitSummary summary =
      analyse_threads(Rank().call(kSend, 60, 61, {message(EventKind::kSend, 1)}),
                      Rank().call(kRecv, 10, 11, {posted(1)}),
                      Rank().call(kRecv, 50, 70, {message(EventKind::kReceive, 0)}));
  EXPECT_EQ(summary.message_count, 0u);
  EXPECT_TRUE(summary.rows.empty());
}

TEST_P(HandedOver, collectives_wait_where_they_are_completed) {
  const WaitSummary summary =
      analyse_threads(Rank()
                          .call(kCollective, 50, 51, {begun_barrier(1)})
                          .call(kWaitall, 52, 53, {completed_barrier(1)}),
                      Rank().call(kCollective, 10, 11, {begun_barrier(4)}),
                      Rank().call(kWaitall, 20, 60, {completed_barrier(4)}));
  EXPECT_THAT(rows(summary), testing::ElementsAre(Row{location(kCompleter), kWaitall,
                                                      WaitKind::kBarrier, 1, 30, 30}));
  EXPECT_EQ(summary.collective_count, 1u);
  EXPECT_EQ(summary.incomplete_count, 0u);
}

/// Times of two threads of a damaged or clamped record.
TEST_P(HandedOver, collectives_that_seem_to_end_before_they_began_take_no_time) {
  const WaitSummary summary =
      analyse_threads(Rank()
                          .call(kCollective, 5, 6, {begun_barrier(1)})
                          .call(kWaitall, 7, 40, {completed_barrier(1)}),
                      Rank().call(kCollective, 30, 31, {begun_barrier(2)}),
                      Rank().call(kWaitall, 10, 20, {completed_barrier(2)}));
  EXPECT_EQ(summary.collective_count, 1u);
  ASSERT_FALSE(summary.lateness.rows().empty());
  for (const LatenessRow& row : summary.lateness.rows()) {
    EXPECT_LE(row.least_ns, 40u);
    EXPECT_LE(row.caused_ns, 40u);
  }
}

TEST_P(HandedOver, collectives_that_nobody_has_completed_are_left_out) {
  const WaitSummary summary = analyse_threads(Rank()
                                                  .call(kCollective, 50, 51, {begun_barrier(1)})
                                                  .call(kWaitall, 52, 53, {completed_barrier(1)}),
                                              Rank().call(kCollective, 10, 11, {begun_barrier(4)}),
                                              Rank().call(kWaitall, 20, 60));
  EXPECT_EQ(summary.collective_count, 0u);
  EXPECT_EQ(summary.incomplete_count, 1u);
}

INSTANTIATE_TEST_SUITE_P(Each, HandedOver, testing::Bool(), [](const auto& order) {
  return order.param ? "completer_first" : "poster_first";
});

}  // namespace
}  // namespace aon::writers
