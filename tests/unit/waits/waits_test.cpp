#include "writers/waits/waits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/profile/one_rank.h"

namespace aon::writers {
namespace {

using test::enter;
using test::event;
using test::leave;

constexpr uint32_t kSend = 0;  // local regions; the global ones are 10 - these
constexpr uint32_t kRecv = 1;
constexpr uint32_t kWaitall = 2;
constexpr uint32_t kCollective = 3;
constexpr uint32_t kOther = 4;

struct Row {
  uint32_t location;
  uint32_t region;  ///< local
  WaitKind kind;
  uint64_t count;
  uint64_t wait_ns;
  uint64_t max_ns;
  bool operator==(const Row&) const = default;
};
void PrintTo(const Row& row, std::ostream* out) {
  *out << "location " << row.location << " region " << row.region << " " << wait_kind_name(row.kind)
       << " count " << row.count << " wait " << row.wait_ns << " max " << row.max_ns;
}

/// Events of one rank.
class Rank {
 public:
  Rank& call(uint32_t region, uint64_t enter_ns, uint64_t leave_ns,
             std::vector<Event> inside = {}) {
    events_.push_back(enter(enter_ns, region));
    for (Event& e : inside) {
      if (e.time_ns == 0) e.time_ns = is_at_start(e.kind) ? enter_ns : leave_ns;
      events_.push_back(e);
    }
    events_.push_back(leave(leave_ns, region));
    return *this;
  }
  Rank& add(const Event& e) {
    events_.push_back(e);
    return *this;
  }
  const std::vector<Event>& events() const { return events_; }

 private:
  static bool is_at_start(EventKind kind) {
    return kind == EventKind::kSend || kind == EventKind::kSendRequest ||
           kind == EventKind::kCollectiveBegin;
  }
  std::vector<Event> events_;
};

Event message(EventKind kind, int32_t peer, int32_t tag = 0, uint64_t request = 0) {
  Event e = event(kind, 0, 0);
  e.communicator = 7;
  e.peer = peer;
  e.tag = tag;
  e.request = request;
  return e;
}
Event request(EventKind kind, uint64_t number) {
  Event e = message(kind, -1, 0, number);
  if (kind == EventKind::kRequestCancelled) e.flags = kCancelled;
  return e;
}
Event collective(CollectiveOperation operation, int32_t root = -1) {
  Event e = message(EventKind::kCollectiveEnd, root);
  e.operation = operation;
  return e;
}

/// All regions are MPI calls; that of kOther is named `name` and exchanges nothing.
Model make_model(uint32_t ranks, const std::string& name = "MPI_Call") {
  Model model = test::make_model(ranks);
  for (GlobalRegion& region : model.regions) region.paradigm = Paradigm::kMpi;
  for (const uint32_t region : {kSend, kRecv, kWaitall, kCollective}) {
    model.regions[10 - region].role = RegionRole::kPointToPoint;
  }
  model.regions[10 - kOther].name = name;
  return model;
}

WaitSummary analyse(const Model& model, const std::vector<Rank>& ranks) {
  const auto analysis = make_wait_analysis(testing::TempDir());
  EXPECT_TRUE(analysis->begin(model));
  for (size_t i = 0; i < ranks.size(); ++i) {
    EXPECT_TRUE(analysis->begin_location(model.locations[i]));
    EXPECT_TRUE(analysis->events(ranks[i].events()));
    EXPECT_TRUE(analysis->end_location());
  }
  EXPECT_EQ(analysis->summary(), nullptr);
  EXPECT_TRUE(analysis->finish({}));
  return *analysis->summary();
}
WaitSummary analyse(const std::vector<Rank>& ranks) {
  return analyse(make_model(static_cast<uint32_t>(ranks.size())), ranks);
}

std::vector<Row> rows(const WaitSummary& summary) {
  std::vector<Row> result;
  for (const WaitRow& row : summary.rows) {
    result.push_back({row.location, 10 - row.region, row.kind, row.count, row.wait_ns, row.max_ns});
  }
  return result;
}

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

TEST(Waits, an_exchange_waits_as_a_receive_only) {
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

TEST(Waits, non_blocking_collectives_keep_their_number) {
  Event start = message(EventKind::kCollectiveRequest, -1, 0, 9);
  start.operation = CollectiveOperation::kAllreduce;
  const std::vector<Event> barrier = {collective(CollectiveOperation::kBarrier)};
  Event creation = collective(CollectiveOperation::kCreateHandle);
  const WaitSummary summary =
      analyse({Rank().call(kCollective, 1, 2, {start}).call(kCollective, 10, 41, barrier),
               Rank()
                   .call(kCollective, 1, 2, {start})
                   .call(kCollective, 3, 4, {creation})  // of some members only
                   .call(kCollective, 40, 42, barrier)});
  EXPECT_THAT(rows(summary),
              testing::ElementsAre(Row{0, kCollective, WaitKind::kBarrier, 1, 30, 30}));
}

TEST(Waits, nothing_is_matched_after_a_loss_or_a_pause) {
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

TEST(Waits, a_receive_that_is_not_seen_to_end_hides_what_comes_after_it) {
  const Rank receiver = Rank()
                            .call(kRecv, 20, 21, {request(EventKind::kReceiveRequest, 1)})
                            .call(kRecv, 50, 95, {message(EventKind::kReceive, 0)});
  const WaitSummary summary = analyse_receiver("", receiver);
  EXPECT_TRUE(summary.rows.empty());
  EXPECT_EQ(summary.message_count, 0u);
  EXPECT_EQ(summary.unmatched_count, 3u);
}

TEST(Waits, a_freed_receive_takes_a_message_and_a_cancelled_one_does_not) {
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

TEST(Waits, a_receive_from_nobody_knows_whom_hides_what_comes_after_it) {
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

TEST(Waits, a_probed_message_keeps_its_place_only_when_it_is_received_next) {
  const auto receiver = [](bool is_next) {
    Rank rank;
    rank.call(kOther, 12, 13);
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

TEST(Waits, a_failed_call_may_have_taken_a_message) {
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

TEST(Waits, a_failed_call_that_exchanges_nothing_hides_nothing) {
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

TEST(Waits, only_level_0_of_a_pcontrol_is_a_pause) {
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

TEST(Waits, nobody_knows_who_is_late_in_another_world) {
  Model model = make_model(2);
  model.communicators[0].is_of_worlds = true;
  model.communicators[0].rank_count = 3;
  const std::vector<Event> barrier = {collective(CollectiveOperation::kBarrier)};
  const WaitSummary summary = analyse(model, {Rank().call(kCollective, 10, 41, barrier),
                                              Rank().call(kCollective, 40, 42, barrier)});
  EXPECT_TRUE(summary.rows.empty());
  EXPECT_EQ(summary.incomplete_count, 1u);
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
}

TEST(Waits, strangers_in_a_communicator_of_the_same_name) {
  Model model = make_model(4);
  model.communicators[0].members = {0, 1};
  const std::vector<Event> barrier = {collective(CollectiveOperation::kBarrier)};
  const Rank early = Rank().call(kCollective, 10, 41, barrier);
  const Rank late = Rank().call(kCollective, 40, 42, barrier);
  EXPECT_TRUE(analyse(model, {Rank(), Rank(), early, late}).rows.empty());
}

TEST(Waits, lost_samples_are_no_hole) {
  Model model = make_model(3);
  model.locations[2].type = LocationType::kMetric;
  model.locations[2].group = 0;
  const WaitSummary summary =
      analyse(model, {Rank().call(kSend, 150, 160, {message(EventKind::kSend, 1)}),
                      Rank().call(kRecv, 100, 170, {message(EventKind::kReceive, 0)}),
                      Rank().add(event(EventKind::kLostBegin, 20, 0))});
  EXPECT_EQ(summary.message_count, 1u);
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
