// Who comes late to NCCL's operations, why, and which links are slow.

#include "tests/unit/nccl/lateness_case.h"
#include "tests/unit/steps/fake_meter.h"
#include "writers/nccl/operations.h"

namespace aon::writers::nccl {
namespace {

TEST_F(NcclLateness, shortest_on_the_gpu_came_last) {
  for (uint32_t rank = 0; rank < 4; ++rank) tell(rank, 5, {.gpu_ns = rank == 2 ? 100u : 130u});
  const LatenessSummary& summary = run();
  EXPECT_EQ(summary.table.operation_count(), 1u);
  for (const LatenessRow& row : summary.table.rows()) {
    const bool is_late = summary.members[row.group].group == 2;
    EXPECT_EQ(row.last_count, is_late ? 1u : 0u);
    EXPECT_EQ(row.caused_ns, is_late ? 90u : 0u);
    EXPECT_EQ(row.wait_ns, is_late ? 0u : 30u);
  }
  EXPECT_EQ(summary.unmatched_count + summary.untimed_count, 0u);
}

TEST_F(NcclLateness, tells_the_wait_of_each_operation_to_who_has_its_row) {
  OperationTable table(&model_);
  for (uint32_t rank = 0; rank < 4; ++rank) {
    for (const uint64_t sequence : {5, 6}) {
      if (sequence == 6 && rank == 3) continue;  // not whole
      tell(rank, sequence, {.gpu_ns = rank == 2 ? 100u : 130 + sequence});
    }
    tell(rank, 5, {.gpu_ns = 500, .region = kBroadcast});  // needs not all
  }
  tell(1, 5, {.gpu_ns = 1000, .region = kSend, .peer = 3});
  tell(1, 5, {.gpu_ns = 2000, .region = kSend, .peer = 2});
  tell(3, 5, {.gpu_ns = 1700, .region = kReceive, .peer = 1});
  tell(2, 5, {.gpu_ns = 1200, .region = kReceive, .peer = 1});
  for (const Group& group : model_.groups) {
    table.begin(group);
    for (const NcclOperation& operation : told_[group.id]) table.add(operation);
  }
  analysis_.set_wait_listener([&](const OperationWait& wait) { table.add_wait(wait); });
  run();
  constexpr uint64_t kNone = OperationRow::kNoWait;
  const std::vector<uint64_t> expected = {35, kNone, kNone, 35, kNone, kNone, 0,  800,
                                          0,  kNone, kNone, 0,  35,    kNone, 700};
  std::vector<uint64_t> waits;
  for (const OperationRow& row : table.rows()) waits.push_back(row.wait_ns);
  EXPECT_EQ(waits, expected);
}

/// Three steps of each rank, a ms long, by rank.
StepSummary three_steps() {
  StepSummary steps;
  for (uint32_t group = 0; group < 4; ++group) {
    for (int64_t number = 0; number < 3; ++number) {
      StepRow row{};
      row.group = group;
      row.number = number;
      row.begin_ns = static_cast<uint64_t>(number) * 1'000'000;
      row.part_ns[static_cast<size_t>(StepPart::kDuration)] = 1'000'000;
      steps.rows.push_back(row);
    }
  }
  return steps;
}

TEST_F(NcclLateness, is_of_the_step_in_which_the_operation_was_called) {
  const test::FakeMeter meter(three_steps());
  analysis_.use_steps(&meter);
  for (uint32_t rank = 0; rank < 4; ++rank) {
    const uint64_t gpu_ns = rank == 2 ? 100'000 : 130'000;
    // Called in step 1, and begun by the GPU in step 2; of a graph only that the GPU was in step 0.
    tell(rank, 5,
         {.gpu_ns = gpu_ns, .queued_ns = 300'000, .launch_ns = 1'950'000, .start_ns = 1'900'000});
    tell(rank, 6, {.gpu_ns = gpu_ns, .launch_ns = 0});
    tell(rank, 7, {.gpu_ns = rank == 1 ? 129'000u : 130'000u});  // next to nothing
    tell(rank, 8, {.gpu_ns = gpu_ns, .launch_ns = 5'000'000, .start_ns = 5'000'000});  // no step
  }
  std::vector<uint64_t> caused_ns(12, 0);
  caused_ns[2 * 3 + 1] = caused_ns[2 * 3] = 90'000;
  EXPECT_EQ(run().step_caused_ns, caused_ns);
}

TEST_F(NcclLateness, is_of_no_step_where_there_is_none) {
  for (uint32_t rank = 0; rank < 4; ++rank) tell(rank, 5, {.gpu_ns = 100'000 + rank * 30'000});
  EXPECT_TRUE(run().step_caused_ns.empty());
}

/// As of level api: what its kernel took, where CUPTI has seen it.
devices::TimedOperation kernel_of(uint64_t sequence, uint64_t gpu_ns) {
  return {.communicator = 7,
          .region = 10 - kAllReduce,
          .call = 0,
          .device = 0,
          .sequence = sequence,
          .bytes = 4096,
          .called_ns = 0,
          .launch_ns = 1000,
          .start_ns = 1000,
          .gpu_ns = gpu_ns,
          .shared_by = 1,
          .peer = kNoPeer,
          .type = NcclType::kFloat32,
          .is_told = false};
}

TEST_F(NcclLateness, kernels_tell_it_where_nccl_does_not) {
  constexpr uint64_t kBoth = 0;
  constexpr uint64_t kInGroup = 1;
  constexpr uint64_t kToldByNccl = 2;
  ASSERT_TRUE(analysis_.begin(model_));
  for (const Location& location : model_.locations) {
    const uint32_t rank = location.group;
    tell(rank, kBoth, {.flags = 0});
    tell(rank, kInGroup, {.flags = 0});
    tell(rank, kToldByNccl, {.gpu_ns = 100});
    give(location);
    devices::TimedOperation shared = kernel_of(kInGroup, 500);
    shared.shared_by = 2;
    devices::TimedOperation told = kernel_of(kToldByNccl, 900);
    told.is_told = true;
    for (const auto& one : {kernel_of(kBoth, rank == 2 ? 100 : 130), shared, told})
      ASSERT_TRUE(analysis_.add_kernel_times(one));
  }
  ASSERT_TRUE(analysis_.finish({}));
  const LatenessSummary& summary = *analysis_.summary();
  EXPECT_EQ(summary.table.operation_count(), 2u);
  EXPECT_EQ(summary.untimed_count, 4u) << "those whose kernel is of others, too";
  for (const LatenessRow& row : summary.table.rows())
    EXPECT_EQ(row.wait_ns, summary.members[row.group].group == 2 ? 0u : 30u);
}

/// Who loads its kernels is not late.
TEST_F(NcclLateness, the_first_kernel_of_a_type_is_a_first_use) {
  constexpr uint64_t kLongNs = 50'000'000;
  ASSERT_TRUE(analysis_.begin(model_));
  for (const Location& location : model_.locations) {
    const uint32_t rank = location.group;
    for (const uint64_t sequence : {0, 1}) tell(rank, sequence, {.flags = 0});
    give(location);
    devices::TimedOperation other_type = kernel_of(1, rank == 2 ? 20'000 : kLongNs);
    other_type.type = NcclType::kBfloat16;
    other_type.launch_ns = other_type.start_ns = rank == 2 ? kLongNs : 20'000;
    for (const auto& one : {kernel_of(0, 100), other_type})
      ASSERT_TRUE(analysis_.add_kernel_times(one));
  }
  ASSERT_TRUE(analysis_.finish({}));
  EXPECT_EQ(analysis_.summary()->connecting_count, 1u);
}

TEST_F(NcclLateness, operations_are_matched_by_sequence_not_by_order) {
  for (uint64_t sequence : {1, 0}) tell(0, sequence, {.gpu_ns = 100 + sequence});
  for (uint64_t sequence : {0, 1}) {
    for (uint32_t rank = 1; rank < 4; ++rank) tell(rank, sequence, {.gpu_ns = 100 + sequence});
  }
  const LatenessSummary& summary = run();
  EXPECT_EQ(summary.table.operation_count(), 2u);
  for (const LatenessRow& row : summary.table.rows()) EXPECT_EQ(row.wait_ns, 0u);
}

TEST_F(NcclLateness, queue_of_the_last_one_tells_its_gpu_from_its_host) {
  for (uint32_t rank = 0; rank < 4; ++rank) {
    tell(rank, 0, {.gpu_ns = rank == 0 ? 10u : 110u, .queued_ns = 500});  // GPU: queued for longer
    tell(rank, 1, {.gpu_ns = rank == 1 ? 10u : 110u, .queued_ns = 5});    // host, but for 5 ns
    tell(rank, 2, {.gpu_ns = rank == 2 ? 10u : 110u, .launch_ns = 0});
  }
  const LatenessSummary& summary = run();
  const auto causes = [&](uint32_t rank) {
    for (const auto& [key, one] : summary.causes) {
      if (summary.members[std::get<2>(key)].group == rank) return one;
    }
    return Causes();
  };
  EXPECT_EQ(causes(0).gpu_ns, 300u);
  EXPECT_EQ(causes(0).host_ns, 0u);
  EXPECT_EQ(causes(1).gpu_ns, 15u);
  EXPECT_EQ(causes(1).host_ns, 285u);
  EXPECT_EQ(causes(2).untold_ns, 300u);
}

/// Of what both caused each has half, by its own queue.
TEST_F(NcclLateness, of_two_that_are_late_together_each_has_causes_of_its_own) {
  for (uint32_t rank = 0; rank < 4; ++rank) {
    const uint64_t queued_ns = rank == 1 ? 500 : 0;
    tell(rank, 0, {.gpu_ns = rank == 1 || rank == 3 ? 10u : 110u, .queued_ns = queued_ns});
  }
  const LatenessSummary& summary = run();
  for (const LatenessRow& row : summary.table.rows()) {
    const uint32_t rank = summary.members[row.group].group;
    const bool is_late = rank == 1 || rank == 3;
    EXPECT_EQ(row.caused_ns, is_late ? 100u : 0u) << rank;
    const auto found = summary.causes.find({row.communicator, row.region, row.group});
    ASSERT_EQ(found != summary.causes.end(), is_late) << rank;
    if (!is_late) continue;
    EXPECT_EQ(found->second.gpu_ns, rank == 1 ? 100u : 0u);
    EXPECT_EQ(found->second.host_ns, rank == 1 ? 0u : 100u);
  }
}

class NcclConnecting : public NcclLateness {
 protected:
  NcclConnecting() : NcclLateness(2) {}

  /// What rank `rank` caused, and how often it came last.
  std::pair<uint64_t, uint64_t> blame(const LatenessSummary& summary, uint32_t rank) const {
    for (const LatenessRow& row : summary.table.rows()) {
      if (summary.members[row.group].group == rank) return {row.caused_ns, row.last_count};
    }
    return {};
  }
};

/// AllReduces of NCCL 2.28.9 on an H200: rank 1 slept 50 ms before each. The first one connects and
/// loads kernels, which took rank 0 some 450 ms more.
TEST_F(NcclConnecting, who_takes_longer_to_connect_is_not_late) {
  tell(0, 0, {.gpu_ns = 22'339'488, .queued_ns = 17'691'722, .launch_ns = 2'715'822'625});
  tell(1, 0, {.gpu_ns = 442'897'726, .queued_ns = 5'151'711, .launch_ns = 2'264'102'603});
  tell(0, 1, {.gpu_ns = 63'116'864, .queued_ns = 2'344'379, .launch_ns = 42'670});
  tell(1, 1, {.gpu_ns = 18'298'816, .queued_ns = 6'182'696, .launch_ns = 39'399});
  const LatenessSummary& summary = run();
  EXPECT_EQ(summary.connecting_count, 1u);
  EXPECT_EQ(summary.table.operation_count(), 1u);
  EXPECT_EQ(blame(summary, 0), (std::pair<uint64_t, uint64_t>(0, 0)));
  EXPECT_EQ(blame(summary, 1), (std::pair<uint64_t, uint64_t>(44'818'048, 1)));
  ASSERT_EQ(summary.times.size(), 1u);
  EXPECT_EQ(summary.times[0].count, 2u) << "the last one has waited for nobody";
}

/// Before 2.28 nothing tells when NCCL was called and when it launched.
TEST_F(NcclConnecting, first_operation_is_left_out_where_its_launch_is_not_known) {
  for (uint32_t call : {0u, 1u}) {
    tell(0, call, {.gpu_ns = 100, .launch_ns = 0, .call = call});
    tell(1, call, {.gpu_ns = 900, .launch_ns = 0, .call = call});
  }
  const LatenessSummary& summary = run();
  EXPECT_EQ(summary.connecting_count, 1u);
  EXPECT_EQ(blame(summary, 0), (std::pair<uint64_t, uint64_t>(800, 1)));
}

/// Both connect, but rank 1 calls late; and a group takes its time, everywhere as long.
TEST_F(NcclConnecting, who_calls_late_is_late) {
  const auto gpu_ns = [](uint32_t rank) { return rank == 1 ? 5'000'000u : 90'000'000u; };
  for (uint32_t rank : {0u, 1u}) {
    const uint64_t in_nccl_ns = rank == 1 ? 60'000'000 : 58'000'000;
    tell(rank, 0, {.gpu_ns = gpu_ns(rank), .launch_ns = 2000 + in_nccl_ns, .start_ns = 2000});
    tell(rank, 1, {.gpu_ns = gpu_ns(rank), .launch_ns = 150'000'000, .call = 2});
  }
  // 0.5 ms more, as a busy core takes.
  tell(0, 2, {.gpu_ns = 1'500'000, .launch_ns = 40'000, .call = 3});
  tell(1, 2, {.gpu_ns = 900'000, .launch_ns = 540'000, .call = 3});
  const LatenessSummary& summary = run();
  EXPECT_EQ(summary.connecting_count, 0u);
  EXPECT_EQ(blame(summary, 1), (std::pair<uint64_t, uint64_t>(170'600'000, 3)));
}

/// A first use connects; whom its core, a lock or the rest of a group holds up each time is late.
TEST_F(NcclConnecting, who_is_longer_in_nccl_each_time_is_late) {
  constexpr uint64_t kLonger = 50'000'000;
  for (uint32_t call = 0; call < 20; ++call) {
    const uint64_t bytes = call == 10 ? 1 << 20 : 4096;  // one more first use
    tell(0, call, {.gpu_ns = kLonger, .bytes = bytes, .launch_ns = 20'000, .call = call});
    tell(1, call, {.gpu_ns = 10'000, .bytes = bytes, .launch_ns = kLonger, .call = call});
  }
  const LatenessSummary& summary = run();
  EXPECT_EQ(summary.connecting_count, 2u);
  EXPECT_EQ(blame(summary, 1), (std::pair<uint64_t, uint64_t>(18 * (kLonger - 10'000), 18)));
}

/// Which loads kernels of its own.
TEST_F(NcclConnecting, the_first_operation_of_a_type_is_a_first_use) {
  for (uint32_t call = 0; call < 4; ++call) {
    const NcclType type = call < 2 ? NcclType::kFloat32 : NcclType::kBfloat16;
    const uint64_t longer_ns = call == 2 ? 50'000'000 : 20'000;
    tell(0, call, {.gpu_ns = longer_ns, .launch_ns = 20'000, .call = call, .type = type});
    tell(1, call, {.gpu_ns = 20'000, .launch_ns = longer_ns, .call = call, .type = type});
  }
  EXPECT_EQ(run().connecting_count, 1u);
}

TEST_F(NcclLateness, what_is_not_whole_is_counted_and_left_out) {
  for (uint32_t rank = 0; rank < 3; ++rank) tell(rank, 0, {.gpu_ns = 100});  // one is missing
  for (uint32_t rank = 0; rank < 4; ++rank) {
    tell(rank, 1, {.gpu_ns = 100, .bytes = rank == 0 ? 8u : 16u});  // not the same
    tell(rank, 2, {.gpu_ns = 100, .flags = kNcclGpuTimed | kNcclMissedChannels});
    tell(rank, 3, {.flags = 0});            // level api
    tell(rank, 4, {.flags = kNcclNoWork});  // nothing ran
  }
  tell(0, 5, {.gpu_ns = 100});
  for (uint32_t rank = 0; rank < 3; ++rank) tell(rank, 5, {.gpu_ns = 100});  // one twice
  const LatenessSummary& summary = run();
  EXPECT_EQ(summary.table.operation_count(), 0u);
  EXPECT_EQ(summary.unmatched_count, 3u + 4u + 4u + 4u);
  EXPECT_EQ(summary.untimed_count, 4u);
}

TEST_F(NcclLateness, a_member_of_a_broadcast_need_not_wait) {
  for (uint32_t rank = 0; rank < 4; ++rank)
    tell(rank, 0, {.gpu_ns = 100 + rank, .region = kBroadcast});
  const LatenessSummary& summary = run();
  EXPECT_EQ(summary.table.operation_count() + summary.unmatched_count, 0u);
}

TEST_F(NcclLateness, slow_operations_are_those_in_which_even_the_last_one_took_long) {
  for (uint64_t sequence = 0; sequence < 10; ++sequence) {
    for (uint32_t rank = 0; rank < 4; ++rank)
      tell(rank, sequence, {.gpu_ns = (sequence == 7 ? 900u : 100u) + rank * 1000u});
  }
  const LatenessSummary& summary = run();
  ASSERT_EQ(summary.times.size(), 1u);
  const TrueTimes& times = summary.times[0];
  EXPECT_EQ(times.count, 10u);
  EXPECT_EQ(times.least_ns, 100u);
  EXPECT_EQ(times.usual_ns, 100u);
  EXPECT_EQ(times.longest_ns, 900u);
  EXPECT_EQ(times.slow_count, 1u);
  EXPECT_EQ(times.slow_ns, 800u);
}

TEST_F(NcclLateness, of_transfers_both_ends_are_one_operation_and_a_link) {
  for (uint64_t sequence = 0; sequence < 3; ++sequence) {
    for (uint32_t rank = 0; rank < 4; ++rank) {
      const auto next = static_cast<int32_t>((rank + 1) % 4);
      const auto previous = static_cast<int32_t>((rank + 3) % 4);
      const uint64_t out_ns = rank == 1 ? 1000 : 100;
      const uint64_t in_ns = previous == 1 ? 1000 : 100;
      tell(rank, sequence, {.gpu_ns = out_ns, .region = kSend, .peer = next});
      // Rank 0 waits for rank 3, which is late and makes no slow link.
      tell(rank, sequence,
           {.gpu_ns = rank == 0 ? 700 : in_ns, .region = kReceive, .peer = previous});
    }
  }
  const LatenessSummary& summary = run();
  EXPECT_EQ(summary.table.operation_count(), 12u);
  ASSERT_EQ(summary.links.size(), 4u);
  for (const LinkRow& row : summary.links) {
    const bool is_slow = summary.members[row.source].group == 1;
    EXPECT_EQ(row.time_ns, is_slow ? 3000u : 300u);
    EXPECT_EQ(row.bytes, 3u * 4096);
    EXPECT_EQ(row.log2_bytes, 12u);
    EXPECT_DOUBLE_EQ(row.ratio, is_slow ? 10.0 : 1.0);
  }
  const SlowLink slow = find_slow_link(summary);
  EXPECT_EQ(summary.members[slow.source].group, 1u);
  EXPECT_EQ(summary.members[slow.destination].group, 2u);
  EXPECT_EQ(slow.beyond_ns, 2700u);
  uint64_t caused_ns = 0;
  for (const LatenessRow& row : summary.table.rows())
    if (summary.members[row.group].group == 3) caused_ns += row.caused_ns;
  EXPECT_EQ(caused_ns, 3u * 600);
  EXPECT_FALSE(is_late(find_latecomer(summary.table.rows())));
}

TEST_F(NcclLateness, links_of_which_there_are_few_are_not_judged) {
  for (uint32_t rank : {0u, 1u}) {
    tell(rank, 0, {.gpu_ns = 1, .region = kSend, .peer = static_cast<int32_t>(1 - rank)});
    tell(rank, 0, {.gpu_ns = 90, .region = kReceive, .peer = static_cast<int32_t>(1 - rank)});
  }
  EXPECT_EQ(find_slow_link(run()).beyond_ns, 0u);
}

/// A process that no agent took has a node of its own, on the same host; another agent is another
/// machine, though it has the same name.
TEST_F(NcclLateness, links_within_a_machine_are_within_a_node) {
  job_.nodes.resize(3);
  job_.nodes[1].host = "n1";
  job_.nodes[1].processes[7].start.fallback = 1;
  job_.nodes[2].host = "n1";
  model_.groups[1].node = 1;
  model_.groups[2].node = 2;
  for (uint32_t rank : {0u, 1u, 2u}) {
    tell(rank, 0, {.gpu_ns = 9, .region = kSend, .peer = static_cast<int32_t>((rank + 1) % 3)});
    tell(rank, 0, {.gpu_ns = 9, .region = kReceive, .peer = static_cast<int32_t>((rank + 2) % 3)});
  }
  for (const LinkRow& row : run().links)
    EXPECT_EQ(row.is_in_node, row.source == 0 && row.destination == 1) << row.source;
}

TEST_F(NcclLateness, what_a_rank_sends_to_itself_has_no_partner) {
  tell(0, 0, {.gpu_ns = 100, .region = kSend, .peer = 0});
  tell(0, 0, {.gpu_ns = 100, .region = kReceive, .peer = 0});
  const LatenessSummary& summary = run();
  EXPECT_EQ(summary.table.operation_count() + summary.unmatched_count, 0u);
}

TEST_F(NcclLateness, members_are_named_with_node_and_gpu) {
  spool::Device device{};
  device.address = "0000:3b:00.0";
  processes_[1].devices[1] = device;
  run();
  EXPECT_EQ(member_text(model_, {0, kNoDevice}), "rank 0 on n1");
  EXPECT_EQ(member_text(model_, {2, 3}), "rank 2 on n1 (GPU 3)");
  EXPECT_EQ(member_text(model_, {1, 1}), "rank 1 on n1 (GPU 1 at 0000:3b:00.0)");
  EXPECT_EQ(member_text(model_, {1, kNoDevice}), "rank 1 on n1 (GPU 1 at 0000:3b:00.0)");
}

TEST(NcclUntimed, few_operations_without_times_are_not_told_and_many_are) {
  LatenessSummary summary;
  EXPECT_EQ(untimed_text(summary), "");
  summary.timed_count = 1'000;
  summary.untimed_count = 100;
  EXPECT_EQ(untimed_text(summary), "");
  summary.untimed_count = 9'000;
  EXPECT_EQ(
      untimed_text(summary),
      "9 000 of 10 000 operations of NCCL have no time of their own on the GPU: late ranks, slow "
      "links and bandwidths are told by the others; --nccl-level gpu has NCCL tell them, from "
      "2.27 on");
  summary.told_count = 10;
  EXPECT_EQ(
      untimed_text(summary),
      "9 000 of 10 000 operations of NCCL have no time of their own on the GPU: late ranks, slow "
      "links and bandwidths are told by the others");
  summary = {};
  summary.untimed_count = 4;
  EXPECT_EQ(untimed_text(summary),
            "none of 4 operations of NCCL has a time of its own on the GPU: late ranks, slow links "
            "and bandwidths are not told; --nccl-level gpu has NCCL tell them, from 2.27 on");
}

}  // namespace
}  // namespace aon::writers::nccl
