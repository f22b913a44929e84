// What the proxies did, added up by communicator, peer and direction.

#include "writers/nccl/proxy_table.h"

#include <gtest/gtest.h>

namespace aon::writers::nccl {
namespace {

NcclProxyWork work(int32_t peer, bool is_send, uint32_t communicator = 7) {
  NcclProxyWork one;
  one.communicator = communicator;
  one.start_ns = 100;
  one.end_ns = 150;
  one.bytes = 4096;
  one.network_ns = 30;
  one.longest_ns = 20;
  one.peer = peer;
  one.step_count = 16;
  one.planned_step_count = 32;
  one.is_send = is_send;
  return one;
}

class NcclProxy : public testing::Test {
 protected:
  NcclProxy() {
    group_.communicator_map[7] = 2;
    table_.begin(group_);
  }
  Group group_{};
  ProxyTable table_;
};

TEST_F(NcclProxy, parts_of_one_piece_of_work_are_one_operation) {
  NcclProxyWork first = work(3, true);
  NcclProxyWork last = work(3, true);
  last.is_last = true;
  last.longest_ns = 25;
  table_.add(first);
  table_.add(last);
  ASSERT_EQ(table_.rows().size(), 1u);
  const auto& [key, row] = *table_.rows().begin();
  EXPECT_EQ(key, ProxyKey(2, 0, 3, true));
  EXPECT_EQ(row.operation_count, 1u);
  EXPECT_EQ(row.step_count, 32u);
  EXPECT_EQ(row.planned_step_count, 32u);
  EXPECT_EQ(row.bytes, 8192u);
  EXPECT_EQ(row.time_ns, 100u);
  EXPECT_EQ(row.network_ns, 60u);
  EXPECT_EQ(row.longest_step_ns, 25u);
}

TEST_F(NcclProxy, peers_and_directions_are_told_apart) {
  table_.add(work(3, true));
  table_.add(work(3, false));
  table_.add(work(1, true));
  EXPECT_EQ(table_.rows().size(), 3u);
}

TEST_F(NcclProxy, of_communicators_that_nobody_defined_is_counted) {
  table_.add(work(3, true, 8));
  EXPECT_TRUE(table_.rows().empty());
  EXPECT_EQ(table_.left_out_count(), 1u);
}

}  // namespace
}  // namespace aon::writers::nccl
