// Where the order of a process's messages has a hole, and what is left out behind it.

#include "tests/unit/waits/ranks.h"

namespace aon::writers {
namespace {

TEST(WaitHoles, nothing_is_matched_after_a_loss_or_a_pause) {
  const auto receiver = [] {
    return Rank()
        .call(kRecv, 100, 170, {message(EventKind::kReceive, 0)})
        .call(kRecv, 300, 370, {message(EventKind::kReceive, 0)});
  };
  const auto sender = [](bool is_pause) {
    Rank rank;
    rank.call(kSend, 150, 160, {message(EventKind::kSend, 1)});
    if (is_pause) {
      rank.call(kOther, 200, 201);
    } else {
      rank.add(event(EventKind::kLostBegin, 200, 0)).add(event(EventKind::kLostEnd, 210, 0));
    }
    return rank.call(kSend, 350, 360, {message(EventKind::kSend, 1)});
  };
  for (const bool is_pause : {false, true}) {
    const WaitSummary summary =
        analyse(make_model(2, "MPI_Pcontrol"), {sender(is_pause), receiver()});
    EXPECT_THAT(rows(summary),
                testing::ElementsAre(Row{1, kRecv, WaitKind::kLateSender, 1, 50, 50}));
    EXPECT_EQ(summary.message_count, 1u);
    EXPECT_EQ(summary.unmatched_count, 2u);
    EXPECT_EQ(summary.holes[Hole::kLoss], is_pause ? 0u : 1u);
    EXPECT_EQ(summary.holes[Hole::kPause], is_pause ? 1u : 0u);
  }
}

/// Two sends of rank 0, the second of them late, and what rank 1 does: its second message would
/// show 40 ns of waiting if it were matched with the late one.
WaitSummary analyse_receiver(const std::string& other, const Rank& receiver) {
  return analyse(make_model(2, other), {Rank()
                                            .call(kSend, 10, 11, {message(EventKind::kSend, 1)})
                                            .call(kSend, 90, 91, {message(EventKind::kSend, 1)}),
                                        receiver});
}

TEST(WaitHoles, a_receive_that_is_not_seen_to_end_hides_what_comes_after_it) {
  const Rank receiver = Rank()
                            .call(kRecv, 20, 21, {request(EventKind::kReceiveRequest, 1)})
                            .call(kRecv, 50, 95, {message(EventKind::kReceive, 0)});
  const WaitSummary summary = analyse_receiver("", receiver);
  EXPECT_TRUE(summary.rows.empty());
  EXPECT_EQ(summary.message_count, 0u);
  EXPECT_EQ(summary.unmatched_count, 3u);
  EXPECT_EQ(summary.holes[Hole::kReceive], 1u);
}

TEST(WaitHoles, a_receive_that_is_not_seen_to_end_hides_no_collective) {
  const Rank receiver = Rank()
                            .call(kRecv, 1, 2, {request(EventKind::kReceiveRequest, 1)})
                            .call(kCollective, 20, 60, {collective(CollectiveOperation::kBarrier)})
                            .call(kRecv, 70, 95, {message(EventKind::kReceive, 0)});
  const Rank sender = Rank()
                          .call(kCollective, 50, 60, {collective(CollectiveOperation::kBarrier)})
                          .call(kSend, 90, 91, {message(EventKind::kSend, 1)});
  const WaitSummary summary = analyse({sender, receiver});
  EXPECT_THAT(rows(summary),
              testing::ElementsAre(Row{1, kCollective, WaitKind::kBarrier, 1, 30, 30}));
  EXPECT_EQ(summary.message_count, 0u);
  EXPECT_EQ(summary.collective_count, 1u);
  EXPECT_EQ(summary.holes[Hole::kReceive], 1u);
}

TEST(WaitHoles, a_freed_receive_takes_a_message_and_a_cancelled_one_does_not) {
  const auto receiver = [](uint32_t region) {
    return Rank()
        .call(kRecv, 5, 6, {message(EventKind::kReceive, 0)})
        .call(kRecv, 20, 21, {request(EventKind::kReceiveRequest, 1)})
        .call(region, 30, 31, {request(EventKind::kRequestCancelled, 1)})
        .call(kRecv, 50, 95, {message(EventKind::kReceive, 0)});
  };
  EXPECT_THAT(rows(analyse_receiver("MPI_Request_free", receiver(kWaitall))),
              testing::ElementsAre(Row{1, kRecv, WaitKind::kLateSender, 2, 41, 40}));
  EXPECT_EQ(analyse_receiver("MPI_Request_free", receiver(kOther)).message_count, 1u);
}

TEST(WaitHoles, a_receive_from_nobody_knows_whom_hides_what_comes_after_it) {
  const auto receiver = [](uint16_t flags) {
    Event end = request(EventKind::kRequestCancelled, 1);
    end.flags = flags;
    return Rank()
        .call(kRecv, 20, 21, {request(EventKind::kReceiveRequest, 1)})
        .call(kWaitall, 30, 31, {end})
        .call(kRecv, 50, 95, {message(EventKind::kReceive, 0)});
  };
  EXPECT_EQ(analyse_receiver("", receiver(0)).message_count, 0u);
  EXPECT_EQ(analyse_receiver("", receiver(kCancelled)).message_count, 1u);
}

TEST(WaitHoles, a_send_that_perhaps_was_none_hides_what_comes_after_it) {
  const auto count = [](uint16_t flags) {
    Event end = request(EventKind::kSendComplete, 1);
    end.flags = flags;
    const Rank sender = Rank()
                            .call(kSend, 5, 6, {message(EventKind::kSend, 1)})
                            .call(kSend, 10, 11, {message(EventKind::kSendRequest, 1, 0, 1)})
                            .call(kOther, 20, 21, {end})
                            .call(kSend, 90, 91, {message(EventKind::kSend, 1)});
    const Rank receiver = Rank()
                              .call(kRecv, 7, 8, {message(EventKind::kReceive, 0)})
                              .call(kRecv, 50, 95, {message(EventKind::kReceive, 0)});
    const WaitSummary summary = analyse(make_model(2, "MPI_Request_free"), {sender, receiver});
    EXPECT_TRUE(summary.rows.empty());
    EXPECT_EQ(summary.holes[Hole::kFailure], flags == 0 ? 0u : 1u);
    return summary.message_count;
  };
  EXPECT_EQ(count(0), 2u);
  EXPECT_EQ(count(kFailed), 1u);
}

Event probe(uint64_t time_ns, uint16_t flags) {
  Event event = enter(time_ns, kOther);
  event.flags = flags;
  return event;
}

TEST(WaitHoles, a_probed_message_keeps_its_place_only_when_it_is_received_next) {
  const auto receiver = [](bool is_next) {
    Rank rank;
    rank.add(probe(12, kIncoming)).add(leave(13, kOther));
    if (!is_next) rank.call(kRecv, 50, 95, {message(EventKind::kReceive, 0)});
    rank.call(kCollective, 96, 97, {message(EventKind::kReceive, 0)});
    if (is_next) rank.call(kRecv, 98, 99, {message(EventKind::kReceive, 0)});
    return rank;
  };
  for (const bool is_next : {false, true}) {
    Model model = make_model(2, "MPI_Mprobe");
    model.regions[10 - kCollective].name = "MPI_Mrecv";
    const Rank sender = Rank()
                            .call(kSend, 10, 11, {message(EventKind::kSend, 1)})
                            .call(kSend, 90, 91, {message(EventKind::kSend, 1)});
    const WaitSummary summary = analyse(model, {sender, receiver(is_next)});
    EXPECT_EQ(summary.message_count, is_next ? 2u : 0u);
    EXPECT_TRUE(summary.rows.empty());
  }
}

TEST(WaitHoles, a_matched_probe_that_took_nothing_out_hides_nothing) {
  const auto count = [](uint16_t flags) {
    const Rank receiver = Rank()
                              .add(probe(2, flags))
                              .add(leave(3, kOther))
                              .call(kRecv, 5, 12, {message(EventKind::kReceive, 0)})
                              .add(probe(20, flags))
                              .add(leave(21, kOther))
                              .call(kRecv, 50, 95, {message(EventKind::kReceive, 0)});
    return analyse_receiver("MPI_Improbe", receiver).message_count;
  };
  EXPECT_EQ(count(kSampledCall), 2u);
  EXPECT_EQ(count(kSampledCall | kIncoming), 0u);
}

TEST(WaitHoles, a_failed_call_may_have_taken_a_message) {
  Event failed = enter(20, kRecv);
  failed.flags = kFailed;
  const Rank receiver = Rank()
                            .call(kRecv, 5, 12, {message(EventKind::kReceive, 0)})
                            .add(failed)
                            .add(leave(21, kRecv))
                            .call(kRecv, 50, 95, {message(EventKind::kReceive, 0)});
  EXPECT_THAT(rows(analyse_receiver("", receiver)),
              testing::ElementsAre(Row{1, kRecv, WaitKind::kLateSender, 1, 5, 5}));
}

TEST(WaitHoles, a_failed_call_that_exchanges_nothing_hides_nothing) {
  Event failed = enter(20, kOther);
  failed.flags = kFailed;
  const auto receiver = [&] {
    return Rank()
        .call(kRecv, 5, 12, {message(EventKind::kReceive, 0)})
        .add(failed)
        .add(leave(21, kOther))
        .call(kRecv, 50, 95, {message(EventKind::kReceive, 0)});
  };
  EXPECT_EQ(analyse_receiver("MPI_File_open", receiver()).message_count, 2u);
}

TEST(WaitHoles, a_failed_creation_of_a_communicator_hides_nothing) {
  Event failed = enter(20, kOther);
  failed.flags = kFailed;
  const auto count = [&](const std::string& name) {
    Model model = make_model(2, name);
    model.regions[10 - kOther].role = RegionRole::kCollectiveOther;
    return analyse(model, {Rank()
                               .call(kSend, 10, 11, {message(EventKind::kSend, 1)})
                               .call(kSend, 60, 61, {message(EventKind::kSend, 1)}),
                           Rank()
                               .call(kRecv, 5, 12, {message(EventKind::kReceive, 0)})
                               .add(failed)
                               .add(leave(21, kOther))
                               .call(kRecv, 50, 95, {message(EventKind::kReceive, 0)})})
        .message_count;
  };
  for (const char* name : {"MPI_Comm_connect", "MPI_Cart_create", "MPI_Dist_graph_create"})
    EXPECT_EQ(count(name), 2u);
  EXPECT_EQ(count("MPI_Scan"), 1u) << "it may have taken a number";
}

/// A rank that is refused collectives at these times and calls one that is not at `done_ns`.
Rank refused_at(const std::vector<uint64_t>& times_ns, uint64_t done_ns) {
  Rank rank;
  for (const uint64_t time_ns : times_ns) {
    Event failed = enter(time_ns, kCollective);
    failed.flags = kFailed;
    failed.communicator = 7;
    failed.operation = CollectiveOperation::kBroadcast;
    rank.add(failed).add(leave(time_ns + 1, kCollective));
  }
  return rank.call(kCollective, done_ns, 100, {collective(CollectiveOperation::kBarrier)});
}

TEST(WaitHoles, a_collective_that_failed_on_all_members_alike_hides_nothing) {
  const WaitSummary alike = analyse({refused_at({10, 20}, 50), refused_at({11, 30}, 60)});
  EXPECT_EQ(alike.alike_failure_count, 4u);
  EXPECT_EQ(alike.collective_count, 1u);
  EXPECT_THAT(rows(alike),
              testing::ElementsAre(Row{0, kCollective, WaitKind::kBarrier, 1, 10, 10}));
  const WaitSummary alone = analyse({refused_at({10, 20}, 50), refused_at({11}, 60)});
  EXPECT_EQ(alone.alike_failure_count, 2u) << "the first one";
  EXPECT_EQ(alone.collective_count, 0u);
  EXPECT_EQ(alone.holes[Hole::kFailure], 1u);
}

TEST(WaitHoles, failures_behind_a_hole_are_not_alike) {
  const Rank refused = refused_at({11}, 60);
  Rank with_loss;
  with_loss.add(event(EventKind::kLostBegin, 5, 0));
  for (const Event& e : refused.events()) with_loss.add(e);
  const WaitSummary summary = analyse({refused_at({10}, 50), with_loss});
  EXPECT_EQ(summary.alike_failure_count, 0u);
  EXPECT_EQ(summary.collective_count, 0u);
}

TEST(WaitHoles, only_level_0_of_a_pcontrol_is_a_pause) {
  const auto count = [](int64_t level) {
    Event control = enter(20, kOther);
    control.set_value(static_cast<uint32_t>(ValueType::kSigned), static_cast<uint64_t>(level));
    const Rank receiver = Rank()
                              .call(kRecv, 5, 12, {message(EventKind::kReceive, 0)})
                              .add(control)
                              .add(leave(21, kOther))
                              .call(kRecv, 50, 95, {message(EventKind::kReceive, 0)});
    return analyse_receiver("MPI_Pcontrol", receiver).message_count;
  };
  EXPECT_EQ(count(0), 1u);
  EXPECT_EQ(count(1), 2u);
  EXPECT_EQ(count(2), 2u);
  EXPECT_EQ(count(-1), 2u);
}

TEST(WaitHoles, lost_samples_are_no_hole) {
  Model model = make_model(3);
  model.locations[2].type = LocationType::kMetric;
  model.locations[2].group = 0;
  const WaitSummary summary =
      analyse(model, {Rank().call(kSend, 150, 160, {message(EventKind::kSend, 1)}),
                      Rank().call(kRecv, 100, 170, {message(EventKind::kReceive, 0)}),
                      Rank().add(event(EventKind::kLostBegin, 20, 0))});
  EXPECT_EQ(summary.message_count, 1u);
}

}  // namespace
}  // namespace aon::writers
