// Who waits for whom, and for how long.

#include <aon/mpi.h>

#include "tests/unit/waits/ranks.h"

namespace aon::writers {
namespace {

TEST(Waits, receive_waits_for_a_late_sender) {
  const WaitSummary summary =
      analyse({Rank().call(kSend, 150, 160, {message(EventKind::kSend, 1)}),
               Rank().call(kRecv, 100, 170, {message(EventKind::kReceive, 0)})});
  EXPECT_THAT(rows(summary), testing::ElementsAre(Row{1, kRecv, WaitKind::kLateSender, 1, 50, 50}));
  EXPECT_EQ(summary.message_count, 1u);
  EXPECT_EQ(summary.unmatched_count, 0u);
}

TEST(Waits, never_longer_than_the_call) {
  // The clocks disagree: the receive ends before its send begins.
  const WaitSummary summary =
      analyse({Rank().call(kSend, 150, 160, {message(EventKind::kSend, 1)}),
               Rank().call(kRecv, 100, 120, {message(EventKind::kReceive, 0)})});
  EXPECT_THAT(rows(summary), testing::ElementsAre(Row{1, kRecv, WaitKind::kLateSender, 1, 20, 20}));
}

TEST(Waits, send_waits_for_a_late_receiver_unless_it_returned_before) {
  const Rank receiver = Rank()
                            .call(kRecv, 130, 140, {message(EventKind::kReceive, 0)})
                            .call(kRecv, 230, 240, {message(EventKind::kReceive, 0)});
  const WaitSummary summary = analyse({Rank()
                                           .call(kSend, 100, 135, {message(EventKind::kSend, 1)})
                                           .call(kSend, 200, 210, {message(EventKind::kSend, 1)}),
                                       receiver});
  EXPECT_THAT(rows(summary),
              testing::ElementsAre(Row{0, kSend, WaitKind::kLateReceiver, 1, 30, 30}));
}

TEST(Waits, receives_match_in_the_order_they_were_posted) {
  // The second request is completed first; both have tag 0.
  const Rank receiver =
      Rank()
          .call(kRecv, 10, 11, {request(EventKind::kReceiveRequest, 1)})
          .call(kRecv, 12, 13, {request(EventKind::kReceiveRequest, 2)})
          .call(kWaitall, 20, 95, {message(EventKind::kReceiveComplete, 0, 0, 2)})
          .call(kWaitall, 96, 97, {message(EventKind::kReceiveComplete, 0, 0, 1)});
  const WaitSummary summary = analyse({Rank()
                                           .call(kSend, 30, 31, {message(EventKind::kSend, 1)})
                                           .call(kSend, 90, 91, {message(EventKind::kSend, 1)}),
                                       receiver});
  EXPECT_THAT(rows(summary),
              testing::ElementsAre(Row{1, kWaitall, WaitKind::kLateSender, 1, 70, 70}));
}

TEST(Waits, a_message_in_parts_meets_no_other_one) {
  const auto in_parts = [](Event event) {
    event.flags = kPartitioned;
    return event;
  };
  // Of the same tag: the parts are posted first, and sent last.
  const Rank receiver =
      Rank()
          .call(kRecv, 10, 11, {request(EventKind::kReceiveRequest, 1)})
          .call(kRecv, 20, 50, {message(EventKind::kReceive, 0)})
          .call(kWaitall, 60, 100, {in_parts(message(EventKind::kReceiveComplete, 0, 0, 1))});
  const Rank sender =
      Rank()
          .call(kSend, 40, 41, {message(EventKind::kSend, 1)})
          .call(kSend, 90, 91, {in_parts(message(EventKind::kSendRequest, 1, 0, 2))});
  EXPECT_THAT(rows(analyse({sender, receiver})),
              testing::UnorderedElementsAre(Row{1, kRecv, WaitKind::kLateSender, 1, 20, 20},
                                            Row{1, kWaitall, WaitKind::kLateSender, 1, 30, 30}));
}

TEST(Waits, messages_in_parts_meet_as_they_were_made) {
  const auto in_parts = [](uint64_t channel, Event event) {
    event.flags = kPartitioned;
    event.bytes_received = channel;
    return event;
  };
  // One envelope, two of them; the sender starts the second one first.
  const Rank receiver =
      Rank()
          .call(kRecv, 10, 11, {request(EventKind::kReceiveRequest, 1)})
          .call(kRecv, 12, 13, {request(EventKind::kReceiveRequest, 2)})
          .call(kWaitall, 20, 50, {in_parts(2, message(EventKind::kReceiveComplete, 0, 0, 2))})
          .call(kWaitall, 60, 100, {in_parts(1, message(EventKind::kReceiveComplete, 0, 0, 1))});
  const Rank sender =
      Rank()
          .call(kSend, 40, 41, {in_parts(2, message(EventKind::kSendRequest, 1, 0, 1))})
          .call(kSend, 90, 91, {in_parts(1, message(EventKind::kSendRequest, 1, 0, 2))});
  EXPECT_THAT(rows(analyse({sender, receiver})),
              testing::ElementsAre(Row{1, kWaitall, WaitKind::kLateSender, 2, 50, 30}));
}

TEST(Waits, a_call_for_several_requests_waits_for_the_latest) {
  const Rank receiver = Rank()
                            .call(kRecv, 10, 11, {request(EventKind::kReceiveRequest, 1)})
                            .call(kRecv, 12, 13, {request(EventKind::kReceiveRequest, 2)})
                            .call(kWaitall, 20, 100,
                                  {message(EventKind::kReceiveComplete, 0, 5, 1),
                                   message(EventKind::kReceiveComplete, 2, 5, 2)});
  const WaitSummary summary =
      analyse({Rank().call(kSend, 60, 61, {message(EventKind::kSend, 1, 5)}), receiver,
               Rank().call(kSend, 90, 91, {message(EventKind::kSend, 1, 5)})});
  EXPECT_THAT(rows(summary),
              testing::ElementsAre(Row{1, kWaitall, WaitKind::kLateSender, 1, 70, 70}));
}

TEST(Waits, no_time_counts_twice) {
  // A halo exchange: what came late sends and receives.
  const auto exchange = [](int32_t peer, uint64_t start_ns) {
    return Rank()
        .call(kRecv, start_ns, start_ns + 1, {request(EventKind::kReceiveRequest, 1)})
        .call(kSend, start_ns + 2, start_ns + 3, {message(EventKind::kSendRequest, peer, 0, 2)})
        .call(kWaitall, start_ns + 4, 60,
              {message(EventKind::kReceiveComplete, peer, 0, 1),
               request(EventKind::kSendComplete, 2)});
  };
  EXPECT_THAT(rows(analyse({exchange(1, 10), exchange(0, 40)})),
              testing::ElementsAre(Row{0, kWaitall, WaitKind::kLateSender, 1, 28, 28}));
}

TEST(Waits, a_non_blocking_send_waits_where_it_is_completed) {
  const Rank sender = Rank()
                          .call(kSend, 10, 11, {message(EventKind::kSendRequest, 1, 0, 1)})
                          .call(kWaitall, 20, 85, {request(EventKind::kSendComplete, 1)});
  const WaitSummary summary =
      analyse({sender, Rank().call(kRecv, 80, 90, {message(EventKind::kReceive, 0)})});
  EXPECT_THAT(rows(summary),
              testing::ElementsAre(Row{0, kWaitall, WaitKind::kLateReceiver, 1, 60, 60}));
}

TEST(Waits, an_exchange_waits_for_its_receiver_as_well) {
  const Rank exchange =
      Rank().call(kSend, 10, 55, {message(EventKind::kSend, 1), message(EventKind::kReceive, 1)});
  const auto other = [](uint64_t send_ns, uint64_t receive_ns) {
    return Rank()
        .call(kSend, send_ns, send_ns + 1, {message(EventKind::kSend, 0)})
        .call(kRecv, receive_ns, 56, {message(EventKind::kReceive, 0)});
  };
  EXPECT_THAT(rows(analyse({exchange, other(5, 50)})),
              testing::ElementsAre(Row{0, kSend, WaitKind::kLateReceiver, 1, 40, 40}));
  EXPECT_THAT(rows(analyse({exchange, other(30, 50)})),
              testing::ElementsAre(Row{0, kSend, WaitKind::kLateReceiver, 1, 40, 40}));
  // Of about the same, what is no upper bound.
  EXPECT_THAT(rows(analyse({exchange, other(50, 54)})),
              testing::ElementsAre(Row{0, kSend, WaitKind::kLateSender, 1, 40, 40}));
}

TEST(Waits, an_exchange_with_one_that_comes_late_is_one_wait) {
  const std::vector<Event> first = {message(EventKind::kSend, 1), message(EventKind::kReceive, 1)};
  const std::vector<Event> second = {message(EventKind::kSend, 0), message(EventKind::kReceive, 0)};
  const WaitSummary summary =
      analyse({Rank().call(kSend, 10, 55, first), Rank().call(kSend, 50, 56, second)});
  EXPECT_THAT(rows(summary), testing::ElementsAre(Row{0, kSend, WaitKind::kLateSender, 1, 40, 40}));
}

TEST(Waits, all_members_wait_for_the_last_one_at_barrier_and_n_x_n) {
  const std::vector<Event> barrier = {collective(CollectiveOperation::kBarrier)};
  const std::vector<Event> sum = {collective(CollectiveOperation::kAllreduce)};
  const WaitSummary summary =
      analyse({Rank().call(kCollective, 10, 41, barrier).call(kCollective, 100, 121, sum),
               Rank().call(kCollective, 40, 42, barrier).call(kCollective, 110, 122, sum),
               Rank().call(kCollective, 30, 43, barrier).call(kCollective, 120, 123, sum)});
  EXPECT_THAT(rows(summary),
              testing::UnorderedElementsAre(Row{0, kCollective, WaitKind::kBarrier, 1, 30, 30},
                                            Row{2, kCollective, WaitKind::kBarrier, 1, 10, 10},
                                            Row{0, kCollective, WaitKind::kNxN, 1, 20, 20},
                                            Row{1, kCollective, WaitKind::kNxN, 1, 10, 10}));
  EXPECT_EQ(summary.collective_count, 2u);
  EXPECT_EQ(summary.incomplete_count, 0u);
}

TEST(Waits, root_and_others_wait_for_each_other) {
  const std::vector<Event> broadcast = {collective(CollectiveOperation::kBroadcast, 1)};
  const std::vector<Event> reduce = {collective(CollectiveOperation::kReduce, 0)};
  const WaitSummary summary =
      analyse({Rank().call(kCollective, 10, 41, broadcast).call(kCollective, 100, 150, reduce),
               Rank().call(kCollective, 30, 42, broadcast).call(kCollective, 140, 151, reduce),
               Rank().call(kCollective, 35, 43, broadcast).call(kCollective, 120, 152, reduce)});
  EXPECT_THAT(rows(summary), testing::UnorderedElementsAre(
                                 Row{0, kCollective, WaitKind::kLateBroadcast, 1, 20, 20},
                                 Row{0, kCollective, WaitKind::kEarlyReduce, 1, 20, 20}));
}

TEST(Waits, a_scan_waits_for_all_of_lower_rank) {
  const std::vector<Event> scan = {collective(CollectiveOperation::kScan)};
  const std::vector<Event> exclusive = {collective(CollectiveOperation::kExscan)};
  const WaitSummary summary =
      analyse({Rank().call(kCollective, 30, 31, scan).call(kCollective, 100, 150, exclusive),
               Rank().call(kCollective, 10, 60, scan).call(kCollective, 120, 160, exclusive),
               Rank().call(kCollective, 50, 70, scan).call(kCollective, 130, 170, exclusive),
               Rank().call(kCollective, 20, 80, scan).call(kCollective, 110, 125, exclusive)});
  // The last one left its second scan before rank 2 came: it cannot have waited longer.
  EXPECT_THAT(rows(summary),
              testing::UnorderedElementsAre(Row{1, kCollective, WaitKind::kEarlyScan, 1, 20, 20},
                                            Row{3, kCollective, WaitKind::kEarlyScan, 2, 45, 30}));
  EXPECT_EQ(summary.collective_count, 2u);
}

TEST(Waits, nobody_knows_who_is_late_in_another_world) {
  Model model = make_model(2);
  model.communicators[0].is_of_worlds = true;
  model.communicators[0].rank_count = 3;
  const std::vector<Event> barrier = {collective(CollectiveOperation::kBarrier)};
  const WaitSummary summary = analyse(model, {Rank().call(kCollective, 10, 41, barrier),
                                              Rank().call(kCollective, 40, 42, barrier)});
  EXPECT_TRUE(summary.rows.empty());
  EXPECT_EQ(summary.incomplete_count, 1u);
  EXPECT_EQ(summary.holes[Hole::kWorlds], 1u);
}

TEST(Waits, what_is_received_outside_of_a_call_has_not_waited) {
  Model model = make_model(2);
  model.regions[10 - kOther].paradigm = Paradigm::kUser;
  const WaitSummary summary =
      analyse(model, {Rank().call(kSend, 50, 51, {message(EventKind::kSend, 1)}),
                      Rank().call(kOther, 10, 90, {message(EventKind::kReceive, 0)})});
  EXPECT_TRUE(summary.rows.empty());
  EXPECT_EQ(summary.message_count, 1u);
}

TEST(Waits, two_threads_with_one_envelope_have_no_order) {
  Model model = make_model(3);
  model.locations[2].group = 1;  // a second thread of rank 1
  const WaitSummary summary =
      analyse(model, {Rank()
                          .call(kSend, 10, 11, {message(EventKind::kSend, 1)})
                          .call(kSend, 90, 91, {message(EventKind::kSend, 1)}),
                      Rank().call(kRecv, 5, 12, {message(EventKind::kReceive, 0)}),
                      Rank().call(kRecv, 50, 95, {message(EventKind::kReceive, 0)})});
  EXPECT_THAT(rows(summary), testing::ElementsAre(Row{1, kRecv, WaitKind::kLateSender, 1, 5, 5}));
  EXPECT_EQ(summary.unmatched_count, 2u);
  EXPECT_EQ(summary.holes[Hole::kUnreceived], 0u);
}

TEST(Waits, sends_without_a_receive_are_counted) {
  const WaitSummary summary =
      analyse(make_model(2), {Rank()
                                  .call(kSend, 10, 11, {message(EventKind::kSend, 1)})
                                  .call(kSend, 20, 21, {message(EventKind::kSend, 1)}),
                              Rank().call(kRecv, 5, 12, {message(EventKind::kReceive, 0)})});
  EXPECT_EQ(summary.message_count, 1u);
  EXPECT_EQ(summary.unmatched_count, 1u);
  EXPECT_EQ(summary.holes[Hole::kUnreceived], 1u);
}

TEST(Waits, strangers_in_a_communicator_of_the_same_name) {
  Model model = make_model(4);
  model.communicators[0].members = {0, 1};
  const std::vector<Event> barrier = {collective(CollectiveOperation::kBarrier)};
  const Rank early = Rank().call(kCollective, 10, 41, barrier);
  const Rank late = Rank().call(kCollective, 40, 42, barrier);
  EXPECT_TRUE(analyse(model, {Rank(), Rank(), early, late}).rows.empty());
}

TEST(Waits, a_collective_without_all_members_is_left_out) {
  const std::vector<Event> barrier = {collective(CollectiveOperation::kBarrier)};
  const WaitSummary summary = analyse({Rank().call(kCollective, 10, 41, barrier), Rank()});
  EXPECT_TRUE(summary.rows.empty());
  EXPECT_EQ(summary.incomplete_count, 1u);
}

TEST(Waits, nobody_waits_alone) {
  Model model = make_model(2);
  model.communicators.push_back({"MPI_COMM_SELF", CommunicatorKind::kSelf, {}, {}});
  Rank rank;
  for (Event e : {collective(CollectiveOperation::kBarrier), message(EventKind::kSend, 0),
                  message(EventKind::kSendRequest, 0, 0, 1), message(EventKind::kReceive, 0)}) {
    e.communicator = 8;
    rank.call(kCollective, 10, 20, {e});
  }
  for (Group& group : model.groups) group.communicator_map[8] = 1;
  const WaitSummary summary = analyse(model, {rank, rank});
  EXPECT_TRUE(summary.rows.empty());
  EXPECT_EQ(summary.unmatched_count, 0u);
  EXPECT_EQ(summary.incomplete_count, 0u);
}

/// Ranks 0 and 1 on nodes 0 and 1.
Model two_nodes() {
  Model model = make_model(2);
  model.groups[1].node = 1;
  model.clock_error_ns = {10, 20};
  return model;
}

TEST(Waits, says_what_the_clocks_could_explain) {
  Model model = two_nodes();
  const std::vector<Rank> ranks = {Rank().call(kSend, 150, 160, {message(EventKind::kSend, 1)}),
                                   Rank().call(kRecv, 100, 170, {message(EventKind::kReceive, 0)})};
  EXPECT_EQ(analyse(model, ranks).rows.at(0).wait_ns, 50u);
  EXPECT_EQ(analyse(model, ranks).rows.at(0).uncertain_ns, 30u);
  clock::ClockEdge edge{};  // they are neighbours
  edge.node = 1;
  edge.error_ns = 12;
  edge.is_in_tree = true;
  model.cluster.edges = {edge};
  EXPECT_EQ(analyse(model, ranks).rows.at(0).uncertain_ns, 12u);
  model.cluster.edges.clear();
  model.clock_error_ns[1] = kUnknownClockError;
  EXPECT_EQ(analyse(model, ranks).rows.at(0).uncertain_ns, 50u);
}

TEST(Waits, a_message_received_before_it_was_sent_is_the_clocks) {
  const std::vector<Rank> ranks = {
      Rank()
          .call(kSend, 150, 160, {message(EventKind::kSend, 1)})
          .call(kSend, 250, 260, {message(EventKind::kSend, 1)}),
      Rank()
          .call(kRecv, 100, 130, {message(EventKind::kReceive, 0)})
          .call(kRecv, 200, 250, {message(EventKind::kReceive, 0)})};  // as it was sent: possible
  const ClockViolations found = analyse(two_nodes(), ranks).clock_violations;
  EXPECT_EQ(found.message_count, 1u);
  EXPECT_EQ(found.max_ns, 20u);
  EXPECT_THAT(found.by_nodes, testing::ElementsAre(testing::Pair(testing::Pair(0, 1), 20)));
}

TEST(Waits, a_collective_left_before_all_entered_is_the_clocks) {
  const auto run = [](CollectiveOperation operation, uint64_t bytes) {
    Event end = collective(operation);
    end.bytes = bytes;
    end.bytes_received = bytes;
    return analyse(two_nodes(), {Rank().call(kCollective, 10, 40, {end}),
                                 Rank().call(kCollective, 75, 90, {end})})
        .clock_violations;
  };
  const ClockViolations barrier = run(CollectiveOperation::kBarrier, 0);
  EXPECT_EQ(barrier.collective_count, 1u);
  EXPECT_EQ(barrier.max_ns, 35u);
  EXPECT_EQ(run(CollectiveOperation::kAllreduce, 8).collective_count, 1u);
  // Nobody waits for nothing, and in these not for everybody.
  EXPECT_EQ(run(CollectiveOperation::kAllreduce, 0).collective_count, 0u);
  EXPECT_EQ(run(CollectiveOperation::kAlltoallv, 8).collective_count, 0u);
  EXPECT_EQ(run(CollectiveOperation::kBroadcast, 8).collective_count, 0u);
}

TEST(Waits, more_than_fits_in_memory) {
  Rank sender;
  Rank receiver;
  constexpr uint64_t kMessages = 700'000;  // 78 MB of ends
  for (uint64_t i = 0; i < kMessages; ++i) {
    sender.call(kSend, i * 100 + 10, i * 100 + 11, {message(EventKind::kSend, 1, int(i % 1000))});
    receiver.call(kRecv, i * 100, i * 100 + 12, {message(EventKind::kReceive, 0, int(i % 1000))});
  }
  const WaitSummary summary = analyse({sender, receiver});
  EXPECT_EQ(summary.message_count, kMessages);
  EXPECT_THAT(rows(summary), testing::ElementsAre(Row{1, kRecv, WaitKind::kLateSender, kMessages,
                                                      kMessages * 10, 10}));
}

}  // namespace
}  // namespace aon::writers
