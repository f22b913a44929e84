#include "writers/profile/messages.h"

#include <gtest/gtest.h>

#include "tests/unit/profile/one_rank.h"

namespace aon::writers::profile {
namespace {

using test::send;

TEST(Messages, sums_by_sender_and_destination) {
  const Model model = test::make_model(3);
  MessageTable table(model);
  table.begin(model.groups[0]);
  table.add(send(0, 2, 10));
  table.add(send(1, 1, 100));
  table.add(send(2, 2, 20));
  table.add(test::enter(3, 0));
  table.begin(model.groups[2]);
  table.add(send(4, 0, 1));
  table.begin(model.groups[0]);  // a second thread of rank 0
  table.add(send(5, 2, 1000));
  const auto rows = table.rows();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].source, 0u);
  EXPECT_EQ(rows[0].destination, 1);
  EXPECT_EQ(rows[1].destination, 2);
  EXPECT_EQ(rows[1].count, 3u);
  EXPECT_EQ(rows[1].bytes, 1030u);
  EXPECT_EQ(rows[2].source, 2u);
  EXPECT_EQ(rows[2].bytes, 1u);
}

TEST(Messages, sums_up_destinations_beyond_64_as_other) {
  const Model model = test::make_model(100);
  MessageTable table(model);
  table.begin(model.groups[5]);
  for (int32_t peer = 0; peer < 100; ++peer) table.add(send(0, peer, 2));
  table.add(send(0, 99, 3));
  const auto rows = table.rows();
  ASSERT_EQ(rows.size(), kMaxPartners + 1);
  EXPECT_EQ(rows[0].destination, kOtherDestination);
  EXPECT_EQ(rows[0].count, 37u);
  EXPECT_EQ(rows[0].bytes, 75u);
}

TEST(Messages, translates_communicator_ranks) {
  Model model = test::make_model(4);
  model.communicators.push_back({"odd", CommunicatorKind::kIntra, 0u, {1, 3}});
  model.communicators.push_back({"bridge", CommunicatorKind::kInter, 0u, {1, 3}});
  model.groups[1].communicator_map[8] = 1;
  model.groups[1].communicator_map[9] = 2;
  MessageTable table(model);
  table.begin(model.groups[1]);
  Event e = send(0, 1, 10);
  e.communicator = 8;
  table.add(e);
  e.peer = 2;  // beyond its members
  table.add(e);
  e.communicator = 9;  // peers are ranks of both groups, one after the other
  e.peer = 0;
  table.add(e);
  e.communicator = 4'000'000'000u;
  table.add(e);
  const auto rows = table.rows();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].destination, kOtherDestination);
  EXPECT_EQ(rows[0].count, 2u);
  EXPECT_EQ(rows[1].destination, 1);
  EXPECT_EQ(rows[2].destination, 3);
}

TEST(Messages, to_another_world_are_to_others) {
  const Model model = test::make_model(2);
  MessageTable table(model);
  table.begin(model.groups[1]);
  Event foreign = test::event(EventKind::kForeignMessage, 0, 0);
  foreign.bytes = 10;
  foreign.flags = kOutgoing;
  table.add(foreign);
  foreign.flags = kIncoming;
  table.add(foreign);
  const auto rows = table.rows();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].destination, kOtherDestination);
  EXPECT_EQ(rows[0].count, 1u);
  EXPECT_EQ(rows[0].bytes, 10u);
}

TEST(Messages, to_oneself_are_ones_own) {
  Model model = test::make_model(2);
  model.communicators.push_back({"MPI_COMM_SELF", CommunicatorKind::kSelf, std::nullopt, {}});
  model.groups[1].communicator_map[8] = 1;
  MessageTable table(model);
  table.begin(model.groups[1]);
  Event e = send(0, 0, 10);
  e.communicator = 8;
  table.add(e);
  const auto rows = table.rows();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].source, 1u);
  EXPECT_EQ(rows[0].destination, 1);
}

}  // namespace
}  // namespace aon::writers::profile
