// Whose sends hold up operations that nobody is late to, and of whom that is not said.

#include <aon/nccl_level.h>

#include "tests/unit/nccl/lateness_case.h"

namespace aon::writers::nccl {
namespace {

constexpr uint64_t kUs = 1000;
constexpr uint64_t kUsualNs = 1000 * kUs;
constexpr uint64_t kExcessNs = 9000 * kUs;

/// Four ranks in a ring, whose sends usually wait 400 us for the network and 100 us for their GPUs.
class NcclNetworkLate : public NcclLateness {
 protected:
  explicit NcclNetworkLate(uint32_t ranks = 4) : NcclLateness(ranks), ranks_(ranks) {}

  void usual(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) operation({});
  }
  struct Slow {
    uint64_t excess_ns = 0;
    std::map<uint32_t, Sent> sends = {};  ///< by rank; others have nothing to send for so long
    std::map<uint32_t, uint64_t> late_ns = {};
  };
  void operation(const Slow& slow) {
    for (uint32_t rank = 0; rank < ranks_; ++rank) {
      const auto late = slow.late_ns.find(rank);
      const uint64_t latest_ns = latest(slow);
      const uint64_t own_late_ns = late == slow.late_ns.end() ? 0 : late->second;
      tell(rank, calls_,
           {.gpu_ns = kUsualNs + slow.excess_ns + latest_ns - own_late_ns, .call = calls_});
      const auto sent = slow.sends.find(rank);
      send(rank, calls_,
           sent != slow.sends.end()
               ? sent->second
               : Sent{.network_ns = 400 * kUs, .gpu_ns = 100 * kUs + 8 * slow.excess_ns});
    }
    ++calls_;
  }
  static uint64_t latest(const Slow& slow) {
    uint64_t most_ns = 0;
    for (const auto& [rank, late_ns] : slow.late_ns) most_ns = std::max(most_ns, late_ns);
    return most_ns;
  }
  void expect_nobody() {
    const NetworkSummary& network = run().network;
    EXPECT_EQ(network.all.count, 0u);
    EXPECT_EQ(network.all.lost_ns, 0u);
    EXPECT_TRUE(network.links.empty());
    EXPECT_TRUE(network.excess_ns.empty());
  }
  using Link = std::tuple<uint32_t, uint32_t, uint32_t, uint32_t>;

  uint32_t ranks_;
  uint32_t calls_ = 0;
};
constexpr uint64_t kSlowNs = 8 * kExcessNs;  ///< eight steps side by side

TEST_F(NcclNetworkLate, names_the_link_and_what_all_lost) {
  usual(5);
  operation({.excess_ns = kExcessNs, .sends = {{2, {.network_ns = kSlowNs, .gpu_ns = kUs}}}});
  operation({.excess_ns = kExcessNs, .sends = {{2, {.network_ns = kSlowNs, .gpu_ns = kUs}}}});
  const LatenessSummary& summary = run();
  const NetworkSummary& network = summary.network;
  EXPECT_EQ(network.told_count, 7u);
  EXPECT_EQ(network.all.count, 2u);
  EXPECT_EQ(network.all.lost_ns, 4 * 2 * kExcessNs);
  EXPECT_EQ(network.even.count, 0u);
  ASSERT_EQ(network.links.size(), 1u);
  const auto& [link, late] = *network.links.begin();
  EXPECT_EQ(link, Link(0, kAllReduce, 2, 3));
  EXPECT_EQ(late.count, 2u);
  EXPECT_EQ(late.lost_ns, 4 * 2 * kExcessNs);
  EXPECT_EQ(late.destination, 3u);
  EXPECT_EQ(network.excess_ns.at({0, kAllReduce, 4096}), 2 * kExcessNs);
  EXPECT_EQ(summary.unmatched_send_count, 0u);
  for (const LatenessRow& row : summary.table.rows()) EXPECT_EQ(row.late_count, 0u);
}

TEST_F(NcclNetworkLate, does_not_answer_for_more_than_its_sends_waited) {
  usual(5);
  // 3 ms beyond what the others of the same operation waited explain a third of the excess.
  operation({.excess_ns = kExcessNs, .sends = {{1, {.network_ns = 3400 * kUs}}}});
  EXPECT_EQ(run().network.links.at({0, kAllReduce, 1, 2}).lost_ns, 4 * 3000 * kUs);
}

TEST_F(NcclNetworkLate, names_no_link_where_all_wait_alike) {
  usual(5);
  const Sent slow{.network_ns = kSlowNs};
  operation({.excess_ns = kExcessNs,
             .sends = {{0, slow}, {1, slow}, {2, {.network_ns = kSlowNs + kUs}}, {3, slow}}});
  const NetworkSummary& network = run().network;
  EXPECT_EQ(network.all.lost_ns, 4 * kExcessNs);
  EXPECT_EQ(network.even.lost_ns, 4 * kExcessNs);
  EXPECT_TRUE(network.links.empty());
}

TEST_F(NcclNetworkLate, is_not_who_comes_late) {
  usual(5);
  for (uint32_t i = 0; i < 2; ++i) {
    // By sockets the sends of rank 1 wait for the network while rank 2 is not there.
    operation({.sends = {{1, {.network_ns = kSlowNs}}}, .late_ns = {{2, kExcessNs}}});
  }
  expect_nobody();
  EXPECT_EQ(analysis_.summary()->causes.at({0, kAllReduce, 2}).host_ns, 2 * 3 * kExcessNs);
}

TEST_F(NcclNetworkLate, is_not_told_of_sends_to_who_comes_late_to_a_slow_operation) {
  usual(5);
  operation({.excess_ns = kExcessNs,
             .sends = {{1, {.network_ns = kSlowNs}}},
             .late_ns = {{2, kExcessNs / 2}}});
  expect_nobody();
}

TEST_F(NcclNetworkLate, is_told_of_sends_to_somebody_else_than_who_comes_late) {
  usual(5);
  operation({.excess_ns = kExcessNs,
             .sends = {{0, {.network_ns = kSlowNs}}},
             .late_ns = {{2, kExcessNs / 2}}});
  EXPECT_EQ(run().network.links.at({0, kAllReduce, 0, 1}).lost_ns, 4 * kExcessNs);
}

TEST_F(NcclNetworkLate, is_nobody_where_the_gpus_are_slow) {
  usual(5);
  operation({.excess_ns = kExcessNs});
  expect_nobody();
}

TEST_F(NcclNetworkLate, is_nobody_whose_sends_wait_more_for_the_gpu_or_the_peer) {
  usual(5);
  operation({.excess_ns = kExcessNs, .sends = {{2, {.network_ns = kSlowNs, .gpu_ns = kSlowNs}}}});
  operation({.excess_ns = kExcessNs, .sends = {{2, {.network_ns = kSlowNs, .peer_ns = kSlowNs}}}});
  expect_nobody();
}

TEST_F(NcclNetworkLate, is_nobody_whose_sends_wait_about_as_long_as_usual) {
  const auto all = [](uint64_t network_ns) {
    const Sent sent{.network_ns = network_ns};
    return std::map<uint32_t, Sent>{{0, sent}, {1, sent}, {2, sent}, {3, sent}};
  };
  for (uint32_t i = 0; i < 5; ++i) operation({.sends = all(8 * kUsualNs)});  // eight side by side
  operation({.excess_ns = kExcessNs, .sends = all(15 * kUsualNs)});
  expect_nobody();
}

TEST_F(NcclNetworkLate, is_not_told_by_receives_and_without_steps) {
  usual(5);
  operation({.excess_ns = kExcessNs, .sends = {{2, {.network_ns = kSlowNs, .is_send = false}}}});
  operation({.excess_ns = kExcessNs, .sends = {{2, {.network_ns = kSlowNs, .steps = 0}}}});
  expect_nobody();
}

TEST_F(NcclNetworkLate, is_not_told_of_operations_that_take_less_than_twice_the_usual) {
  usual(5);
  operation({.excess_ns = kUsualNs * 9 / 10, .sends = {{2, {.network_ns = kSlowNs}}}});
  expect_nobody();
}

TEST_F(NcclNetworkLate, costs_nothing_where_the_level_was_lower) {
  const auto stands = [](NcclLevel level) {
    const NcclAnswer answer{level, level, NcclLevel::kOff, NcclLimit::kNone};
    return BudgetDefinition{0, kNcclAskedSite, answer.word(), 0, 0};
  };
  usual(3);
  EXPECT_TRUE(may_have_steps(model_));  // nobody has told of any
  for (spool::Process& process : processes_)
    process.budget_changes.push_back(stands(NcclLevel::kGpu));
  EXPECT_FALSE(may_have_steps(model_));
  processes_[1].budget_changes.push_back({0, kNcclProxySite, nccl_mode_of(NcclLevel::kGpu, false),
                                          nccl_mode_of(NcclLevel::kStep, false), 0});
  EXPECT_TRUE(may_have_steps(model_));
  processes_[1].budget_changes = {stands(NcclLevel::kNet)};
  EXPECT_FALSE(may_have_steps(model_));
  processes_[2].budget_changes = {stands(NcclLevel::kStep)};
  EXPECT_TRUE(may_have_steps(model_));
  EXPECT_FALSE(may_have_steps(model_.groups[1]));
}

TEST_F(NcclNetworkLate, is_told_where_all_operations_with_steps_were_slow) {
  // The level was raised because they were.
  for (uint32_t call = 0; call < 5; ++call, ++calls_) {
    for (uint32_t rank = 0; rank < 4; ++rank) tell(rank, call, {.gpu_ns = kUsualNs, .call = call});
  }
  operation({.excess_ns = kExcessNs, .sends = {{3, {.network_ns = kSlowNs}}}});
  EXPECT_EQ(run().network.links.at({0, kAllReduce, 3, 0}).lost_ns, 4 * kExcessNs);
}

TEST_F(NcclNetworkLate, of_several_links_of_a_member_the_slowest_is_meant) {
  usual(5);
  operation({.excess_ns = kExcessNs, .sends = {{2, {.network_ns = kUs}}}});
  send(2, calls_ - 1, {.network_ns = kSlowNs, .to = 0});
  EXPECT_EQ(run().network.links.count({0, kAllReduce, 2, 0}), 1u);
}

TEST_F(NcclNetworkLate, of_many_channels_one_that_stalls_is_enough) {
  const auto wait_on_others = [this] {
    for (uint32_t rank = 0; rank < 4; ++rank) {
      for (uint32_t channel = 2; channel < 32; channel += 2)
        send(rank, calls_ - 1, {.network_ns = 8000 * kUs, .first_channel = channel});
    }
  };
  for (uint32_t i = 0; i < 5; ++i) {
    usual(1);
    wait_on_others();
  }
  operation({.excess_ns = kExcessNs, .sends = {{2, {.network_ns = kSlowNs}}}});
  wait_on_others();
  const NetworkSummary& network = run().network;
  ASSERT_EQ(network.links.count({0, kAllReduce, 2, 3}), 1u);
  EXPECT_EQ(network.links.at({0, kAllReduce, 2, 3}).lost_ns, 4 * kExcessNs);
}

TEST_F(NcclNetworkLate, a_member_with_more_channels_than_others_does_not_stand_out) {
  usual(5);
  const Sent slow{.network_ns = kSlowNs};
  operation({.excess_ns = kExcessNs, .sends = {{0, slow}, {1, slow}, {2, slow}, {3, slow}}});
  for (uint32_t channel = 2; channel < 6; channel += 2)
    send(1, calls_ - 1, {.network_ns = kSlowNs, .first_channel = channel});
  const NetworkSummary& network = run().network;
  EXPECT_EQ(network.even.lost_ns, 4 * kExcessNs);
  EXPECT_TRUE(network.links.empty());
}

TEST_F(NcclNetworkLate, is_not_told_by_the_steps_of_one_member_alone) {
  usual(5);
  // The level of the others' nodes was lowered: they may have waited as long.
  for (uint32_t rank = 0; rank < 4; ++rank)
    tell(rank, calls_, {.gpu_ns = kUsualNs + kExcessNs, .call = calls_});
  send(2, calls_++, {.network_ns = kSlowNs});
  expect_nobody();
}

TEST_F(NcclNetworkLate, is_told_of_transfers) {
  for (uint32_t i = 0; i < 6; ++i) {
    const bool is_slow = i == 5;
    tell(0, i,
         {.gpu_ns = is_slow ? 10 * kUsualNs : kUsualNs, .region = kSend, .peer = 1, .call = i});
    tell(1, i,
         {.gpu_ns = is_slow ? 10 * kUsualNs : kUsualNs, .region = kReceive, .peer = 0, .call = i});
    send(0, i, {.network_ns = is_slow ? kSlowNs : kUs});
  }
  const NetworkSummary& network = run().network;
  ASSERT_EQ(network.links.size(), 1u);
  EXPECT_EQ(network.links.begin()->first, Link(0, kSend, 0, 1));
  EXPECT_EQ(network.all.lost_ns, 2 * kExcessNs);
}

/// Beside what `operation` told last: what `rank` receives from the one before it.
class NcclSlowGpu : public NcclNetworkLate {
 protected:
  NcclSlowGpu() { put_apart(); }
  void put_apart() {
    job_.nodes.resize(ranks_);
    for (Group& group : model_.groups) {
      group.node = group.id;
      job_.nodes[group.id].host = "n" + std::to_string(group.id);
    }
  }
  void receive(uint32_t rank, const Sent& received) {
    Sent sent = received;
    sent.is_send = false;
    if (sent.to == UINT32_MAX) sent.to = (rank + ranks_ - 1) % ranks_;
    send(rank, calls_ - 1, sent);
  }
  /// In time, and slow to take what rank 1 sends: by sockets that waits for the network.
  void slow_gpu(uint32_t rank = 2) {
    operation({.excess_ns = kExcessNs, .sends = {{rank - 1, {.network_ns = kSlowNs}}}});
    receive(rank, {.network_ns = 100 * kUs, .gpu_ns = kSlowNs});
  }
  void expect_no_gpu() {
    expect_nobody();
    EXPECT_EQ(analysis_.summary()->network.all_gpus.count, 0u);
    EXPECT_TRUE(analysis_.summary()->network.gpus.empty());
  }
};

TEST_F(NcclSlowGpu, is_named_instead_of_the_link_to_it) {
  usual(5);
  slow_gpu();
  slow_gpu();
  const NetworkSummary& network = run().network;
  EXPECT_EQ(network.all.count, 0u);
  EXPECT_TRUE(network.links.empty());
  EXPECT_EQ(network.all_gpus.count, 2u);
  ASSERT_EQ(network.gpus.size(), 1u);
  const auto& [key, gpu] = *network.gpus.begin();
  EXPECT_EQ(key, std::tuple(0u, kAllReduce, 2u));
  EXPECT_EQ(gpu.count, 2u);
  EXPECT_EQ(gpu.lost_ns, 4 * 2 * kExcessNs);
  EXPECT_EQ(network.excess_ns.at({0, kAllReduce, 4096}), 2 * kExcessNs);
}

TEST_F(NcclSlowGpu, is_not_named_beside_others_on_its_machine_for_which_it_may_have_waited) {
  job_.nodes[3].host = "n2";
  usual(5);
  slow_gpu();
  expect_no_gpu();
}

TEST_F(NcclSlowGpu, is_not_named_beside_others_that_nccl_reaches_by_nvlink) {
  for (spool::Process& process : processes_)
    process.communicators[7].definition.reserved[kNcclNodes] = 3;
  usual(5);
  slow_gpu();
  expect_no_gpu();
}

TEST_F(NcclSlowGpu, is_not_who_is_held_up_by_what_it_sends) {
  usual(5);
  // The link from rank 2 is slow: its GPU gets rid of nothing, and takes nothing.
  operation({.excess_ns = kExcessNs,
             .sends = {{1, {.network_ns = kSlowNs + kUs}}, {2, {.network_ns = kSlowNs}}}});
  receive(2, {.gpu_ns = kSlowNs});
  const NetworkSummary& network = run().network;
  ASSERT_EQ(network.links.size(), 1u);
  EXPECT_EQ(network.links.begin()->first, Link(0, kAllReduce, 2, 3));
  EXPECT_EQ(network.all_gpus.count, 0u);
}

TEST_F(NcclSlowGpu, is_not_who_sends_to_a_peer_that_is_not_ready) {
  usual(5);
  // One step of eight waits for the peer, and the others behind it.
  operation(
      {.excess_ns = kExcessNs, .sends = {{2, {.gpu_ns = 7 * kExcessNs, .peer_ns = kExcessNs}}}});
  receive(2, {.gpu_ns = kSlowNs});
  expect_no_gpu();
}

TEST_F(NcclSlowGpu, is_not_who_waits_for_data_of_somebody_else) {
  usual(5);
  slow_gpu();
  receive(2, {.network_ns = kSlowNs, .to = 0});  // a tree: it needs both
  expect_no_gpu();
}

TEST_F(NcclSlowGpu, is_not_named_by_what_different_channels_wait_for) {
  usual(5);
  operation({.excess_ns = kExcessNs, .sends = {{1, {.network_ns = kSlowNs}}}});
  receive(2, {.gpu_ns = kSlowNs, .first_channel = 8});
  expect_no_gpu();
}

TEST_F(NcclSlowGpu, is_not_who_came_late) {
  usual(5);
  operation({.excess_ns = kExcessNs,
             .sends = {{1, {.network_ns = kSlowNs}}},
             .late_ns = {{2, kExcessNs / 2}}});
  receive(2, {.gpu_ns = kSlowNs});
  expect_no_gpu();
}

TEST_F(NcclSlowGpu, is_nobodys_where_all_wait_alike) {
  usual(5);
  slow_gpu();
  for (const uint32_t rank : {0u, 1u, 3u}) receive(rank, {.gpu_ns = kSlowNs});
  expect_no_gpu();
}

TEST_F(NcclSlowGpu, does_not_excuse_a_link_for_what_little_it_waits) {
  usual(5);
  operation({.excess_ns = kExcessNs, .sends = {{1, {.network_ns = kSlowNs}}}});
  receive(2, {.network_ns = kSlowNs, .gpu_ns = kSlowNs * 6 / 10});
  EXPECT_EQ(run().network.links.count({0, kAllReduce, 1, 2}), 1u);
}

TEST_F(NcclSlowGpu, excuses_the_link_of_a_transfer) {
  for (uint32_t i = 0; i < 6; ++i) {
    const uint64_t gpu_ns = i == 5 ? 10 * kUsualNs : kUsualNs;
    tell(2, i, {.gpu_ns = gpu_ns, .region = kSend, .peer = 1, .call = i});
    tell(1, i, {.gpu_ns = gpu_ns, .region = kReceive, .peer = 2, .call = i});
    send(2, i, {.network_ns = i == 5 ? kSlowNs : kUs, .to = 1});
    send(1, i, {.gpu_ns = i == 5 ? kSlowNs : 0, .to = 2, .is_send = false});
  }
  expect_no_gpu();
}

TEST_F(NcclSlowGpu, two_shares_find_it_too) {
  usual(5);
  slow_gpu();
  LatenessAnalysis combiner("/tmp");
  test::combine({&combiner}, model_, states());
  ASSERT_NE(combiner.summary(), nullptr);
  EXPECT_EQ(combiner.summary()->network.gpus.at({0, kAllReduce, 2}).lost_ns, 4 * kExcessNs);
  const auto make = [] { return std::make_unique<LatenessAnalysis>("/tmp"); };
  test::expect_damage_is_harmless(make, model_, states()[2]);
}

/// Kernels begin 1 us after the epoch; here the proxies' waiting does, that of eight steps.
class NcclQueuedKernel : public NcclNetworkLate {
 protected:
  /// Before the first data, which come `after_ns` after the kernel's begin.
  static Sent queued(uint64_t queued_ns, uint64_t after_ns) {
    const uint64_t waited_ns = queued_ns + after_ns;
    return {.gpu_ns = 8 * waited_ns,
            .steps = 0,
            .end_ns = kBeginNs + after_ns,
            .longest_ns = waited_ns};
  }
  static constexpr uint64_t kBeginNs = 1000;
  static constexpr uint64_t kQueuedNs = 100'000 * kUs;
};

TEST_F(NcclQueuedKernel, does_not_hide_a_slow_link) {
  usual(5);
  operation({.excess_ns = kExcessNs, .sends = {{2, {.network_ns = kSlowNs, .gpu_ns = kUs}}}});
  for (uint32_t rank = 0; rank < 4; ++rank) send(rank, calls_ - 1, queued(kQueuedNs, kUs));
  EXPECT_EQ(run().network.links.at({0, kAllReduce, 2, 3}).lost_ns, 4 * kExcessNs);
}

TEST_F(NcclQueuedKernel, hides_no_gpu_that_is_slow_from_its_begin_on) {
  usual(5);
  operation({.excess_ns = kExcessNs, .sends = {{2, {.network_ns = kSlowNs}}}});
  send(2, calls_ - 1, queued(kQueuedNs, kExcessNs));
  expect_nobody();
}

TEST_F(NcclQueuedKernel, is_not_known_of_records_with_steps) {
  usual(5);
  operation({.excess_ns = kExcessNs, .sends = {{2, {.network_ns = kSlowNs}}}});
  Sent sent = queued(kQueuedNs, kUs);
  sent.steps = 16;
  send(2, calls_ - 1, sent);
  expect_nobody();
}

TEST_F(NcclNetworkLate, counts_sends_whose_operation_is_not_known) {
  usual(3);
  send(0, kNoNcclCall, {.network_ns = kUs});
  send(0, 77, {.network_ns = kUs});
  send(1, 1, {.network_ns = kUs, .to = static_cast<uint32_t>(-2)});  // no rank
  const LatenessSummary& summary = run();
  EXPECT_EQ(summary.unmatched_send_count, 3 * 3u);
  EXPECT_EQ(summary.network.told_count, 3u);
}

TEST_F(NcclNetworkLate, two_shares_find_what_one_process_finds) {
  usual(30'000);  // more than one piece, and than memory holds
  for (uint32_t rank = 0; rank < 4; ++rank)
    operation({.excess_ns = kExcessNs, .sends = {{rank, {.network_ns = kSlowNs}}}});
  send(0, kNoNcclCall, {});
  const NetworkSummary& whole = run().network;
  LatenessAnalysis combiner("/tmp");
  test::combine({&combiner}, model_, states());
  ASSERT_NE(combiner.summary(), nullptr);
  const NetworkSummary& combined = combiner.summary()->network;
  EXPECT_EQ(combiner.summary()->unmatched_send_count, 3u);
  EXPECT_EQ(combined.told_count, 30'004u);
  ASSERT_EQ(combined.links.size(), 4u);
  for (const auto& [key, late] : whole.links) {
    EXPECT_EQ(late.lost_ns, 4 * kExcessNs);
    EXPECT_EQ(combined.links.at(key).lost_ns, late.lost_ns);
    EXPECT_EQ(combined.links.at(key).destination, late.destination);
  }
}

TEST_F(NcclNetworkLate, damage_of_what_a_share_tells_is_harmless) {
  usual(2);
  operation({.excess_ns = kExcessNs, .sends = {{2, {.network_ns = kSlowNs}}}});
  const auto make = [] { return std::make_unique<LatenessAnalysis>("/tmp"); };
  test::expect_damage_is_harmless(make, model_, states()[2]);
}

}  // namespace
}  // namespace aon::writers::nccl
