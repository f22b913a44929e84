// Whom what the proxies' sends waited for tells of.

#include "writers/nccl/proxy_waits.h"

#include <gtest/gtest.h>

#include "tests/unit/profile/one_rank.h"

namespace aon::writers::nccl {
namespace {

constexpr uint32_t kRanks = 5;

class NcclProxyWaits : public testing::Test {
 protected:
  NcclProxyWaits() : model_(test::make_model(kRanks)) {
    job_.nodes.resize(kRanks);
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      job_.nodes[rank].host = "n" + std::to_string(rank);
      model_.groups[rank].node = rank;
    }
    model_.job = &job_;
  }

  struct Waits {
    uint64_t gpu_ns = 10;
    uint64_t peer_ns = 10;
    uint64_t network_ns = 1000;
  };
  void send(uint32_t from, uint32_t to, const Waits& waits, bool is_send = true) {
    NcclProxyWork work;
    work.communicator = 7;
    work.peer = static_cast<int32_t>(to);
    work.bytes = 8u << 20;
    work.step_count = 16;
    work.gpu_ns = waits.gpu_ns;
    work.peer_ns = waits.peer_ns;
    work.network_ns = waits.network_ns;
    work.is_send = is_send;
    table_.begin(model_.groups[from]);
    table_.add(work);
  }
  /// All ranks in a ring.
  void ring(const Waits& waits) {
    for (uint32_t rank = 0; rank < kRanks; ++rank) send(rank, (rank + 1) % kRanks, waits);
  }
  ProxyWaits sums() const { return sum_up(model_, table_); }

  Model model_;
  spool::Job job_;
  ProxyTable table_;
};

TEST_F(NcclProxyWaits, of_sends_are_added_up_and_of_receives_tell_nothing) {
  ring({});
  send(1, 0, {.gpu_ns = 5000, .network_ns = 90'000}, false);
  const ProxyWaits waits = sums();
  EXPECT_EQ(waits.step_count, 16u * kRanks);
  EXPECT_EQ(waits.gpu_ns, 10u * kRanks);
  EXPECT_EQ(waits.peer_ns, 10u * kRanks);
  EXPECT_EQ(waits.network_ns, 1000u * kRanks);
  EXPECT_FALSE(waits.each_waits_for_gpu);
  EXPECT_EQ(waits.slow.ratio, 0);
}

TEST_F(NcclProxyWaits, of_one_link_beyond_the_median_make_it_slow) {
  ring({});
  send(2, 3, {.network_ns = 19'000});
  const SlowSends slow = sums().slow;
  EXPECT_EQ(slow.source, 2u);
  EXPECT_EQ(slow.destination, 3u);
  EXPECT_EQ(slow.network_ns, 20'000u);
  EXPECT_NEAR(slow.ratio, 10, 0.01);
}

TEST_F(NcclProxyWaits, that_are_not_for_the_network_make_no_link_slow) {
  ring({});
  send(2, 3, {.gpu_ns = 50'000, .network_ns = 19'000});
  EXPECT_EQ(sums().slow.ratio, 0);
}

TEST_F(NcclProxyWaits, of_few_links_tell_not_what_is_usual) {
  for (uint32_t rank = 0; rank < 3; ++rank) send(rank, rank + 1, {});
  send(1, 2, {.network_ns = 90'000});
  EXPECT_EQ(sums().slow.ratio, 0);
}

TEST_F(NcclProxyWaits, within_machines_are_not_compared_with_those_between) {
  ring({});
  send(2, 3, {.network_ns = 19'000});
  model_.groups[3].node = 2;
  EXPECT_EQ(sums().slow.ratio, 0);
}

TEST_F(NcclProxyWaits, behind_one_slow_link_are_not_the_gpus_fault) {
  ring({.gpu_ns = 1000, .network_ns = 10});
  EXPECT_TRUE(sums().each_waits_for_gpu);
  send(2, 3, {.network_ns = 19'000});
  EXPECT_FALSE(sums().each_waits_for_gpu);
}

TEST_F(NcclProxyWaits, for_peers_name_the_one_that_is_waited_for_longest) {
  ring({});
  send(0, 4, {.peer_ns = 90});
  const ProxyWaits waits = sums();
  EXPECT_EQ(waits.awaited, 4u);
  EXPECT_EQ(waits.awaited_ns, 100u);
}

TEST_F(NcclProxyWaits, of_members_that_nobody_knows_belong_to_no_link) {
  send(0, 99, {.gpu_ns = 1'000'000});
  model_.communicators[0].members[1] = -1;
  send(0, 1, {.network_ns = 1'000'000});
  const ProxyWaits waits = sums();
  EXPECT_EQ(waits.step_count, 32u);
  EXPECT_EQ(waits.awaited_ns, 0u);
  EXPECT_FALSE(waits.each_waits_for_gpu);
}

}  // namespace
}  // namespace aon::writers::nccl
