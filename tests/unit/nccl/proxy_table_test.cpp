// What the proxies did, added up by communicator, peer and direction.

#include "writers/nccl/proxy_table.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tests/unit/profile/one_rank.h"
#include "tests/unit/writers/two_shares.h"

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

std::string text(const ProxyTable& table) {
  std::ostringstream out;
  for (const auto& [key, row] : table.rows()) {
    const auto [communicator, group, peer, is_send] = key;
    out << communicator << ' ' << group << ' ' << peer << ' ' << is_send << ' '
        << row.operation_count << ' ' << row.step_count << ' ' << row.planned_step_count << ' '
        << row.bytes << ' ' << row.time_ns << ' ' << row.network_ns << ' ' << row.longest_step_ns
        << '\n';
  }
  out << table.left_out_count() << '\n';
  return out.str();
}

TEST(NcclProxyOfShares, is_that_of_the_whole) {
  const Model model = test::make_model(5);
  const auto feed = [](ProxyTable* table, const Group& group) {
    table->begin(group);
    for (int32_t peer = 0; peer < 6; ++peer) {
      table->add(work(peer, peer % 2 == 0));
      table->add(work(0, true));
      table->add(work(peer, false, 99));  // of no communicator
    }
  };
  ProxyTable whole;
  for (const Group& group : model.groups) feed(&whole, group);
  ProxyTable first;
  ProxyTable second;
  const auto saved = test::saved_by_two(model, &first, &second, feed);
  ProxyTable combined;
  test::load_all(saved, [&](StateIn* in) { return combined.load(model, in); });
  EXPECT_EQ(text(combined), text(whole));
  EXPECT_EQ(combined.rows().size(), 30u);
  test::expect_beginnings_to_fail(saved[1], [&](StateIn* in) {
    ProxyTable table;
    return table.load(model, in);
  });
  const Model small = test::make_model(2);
  StateIn in(saved[4]);
  EXPECT_FALSE(ProxyTable().load(small, &in));
}

TEST(NcclProxyOfShares, beyond_the_limit_is_counted_by_records) {
  const Model model = test::make_model(2);
  const auto feed = [](ProxyTable* table, const Group& group) {
    table->begin(group);
    for (size_t peer = 0; peer < ProxyTable::kMaxRows / 2 + 5; ++peer) {
      table->add(work(static_cast<int32_t>(peer), true));
      table->add(work(static_cast<int32_t>(peer), true));
    }
  };
  ProxyTable first;
  ProxyTable second;
  const auto saved = test::saved_by_two(model, &first, &second, feed);
  ProxyTable combined;
  test::load_all(saved, [&](StateIn* in) { return combined.load(model, in); });
  EXPECT_EQ(combined.rows().size(), ProxyTable::kMaxRows);
  EXPECT_EQ(combined.left_out_count(), 20u);
}

}  // namespace
}  // namespace aon::writers::nccl
