// Agents of one node, one after the other, that bring the same spool.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/delivery/delivery_case.h"

namespace aon::delivery {
namespace {

class Successors : public Delivery {
 protected:
  Sender later() const {
    Sender other = sender();
    other.pid = kPid + 1;
    return other;
  }
  /// One of the node with a spool of its own, beside those that bring one after the other.
  UniqueFd offer_of_another() const {
    UniqueFd fd = connect_by_hand("n2");
    auto offer = make_frame<cluster::Offer>();
    offer.pid = kOther;
    offer.world_size = kWorld;
    EXPECT_TRUE(say(fd, offer));
    return fd;
  }
  int32_t holder_pid() const {
    const auto held = read_lease(cluster::agent_lease(job_.string(), "n2"));
    return held ? held->pid : 0;
  }

  static constexpr int32_t kOther = kPid + 2;
};

TEST_F(Successors, whose_ranks_were_counted_before_are_not_counted_twice) {
  {
    Courier first(sender());
    ASSERT_TRUE(first.connect(address_));
    ASSERT_TRUE(first.send_rest());
    ASSERT_TRUE(is_marked(Presence::kDone));
  }
  Courier second(later());
  ASSERT_TRUE(second.connect(address_));
  ASSERT_TRUE(is_marked(Presence::kLive));
  is_stopping_ = true;
  thread_.join();
  EXPECT_EQ(receiver_->rank_count(), 3u);
}

/// Its keeper was killed, and with it its courier: who goes on with its spool does so at once.
TEST_F(Successors, need_not_wait_for_the_lease_of_one_that_was_killed) {
  write(there_ / "p0.0.aon", "of the first");
  write(there_ / "p0.1.aon", "begun");
  {
    Courier first(sender());
    ASSERT_TRUE(first.connect(address_));
    ASSERT_TRUE(first.send_new());
    ASSERT_TRUE(is_there("p0.0.aon", "of the first"));
  }
  ASSERT_TRUE(is_marked(Presence::kLive));
  write(there_ / "p1.0.aon", "of the second");
  Courier second(later());
  ASSERT_TRUE(second.connect(address_));
  ASSERT_TRUE(second.send_rest());
  EXPECT_TRUE(is_marked(Presence::kDone)) << second.refusal();
  EXPECT_EQ(read(arrived("p0.0.aon")), "of the first");
  EXPECT_EQ(read(arrived("p1.0.aon")), "of the second");
  EXPECT_FALSE(fs::exists(job_ / "spool" / "n2~2"));
}

/// What they go on with keeps nobody away, but somebody else is there.
TEST_F(Successors, leave_the_lease_of_another_agent_alone) {
  {
    Courier first(sender());
    ASSERT_TRUE(first.connect(address_));
    ASSERT_TRUE(first.send_rest());
    ASSERT_TRUE(is_marked(Presence::kDone));
  }
  const UniqueFd other = offer_of_another();
  ASSERT_TRUE(wait_until([&] { return holder_pid() == kOther; }));
  for (const Sender& one : {later(), sender()}) {
    Courier courier(one);
    ASSERT_TRUE(courier.connect(address_));
    EXPECT_EQ(told(&courier), "another agent of node n2 is there");
    EXPECT_EQ(holder_pid(), kOther);
  }
}

TEST_F(Successors, lose_no_lease_to_one_that_is_delivered_late) {
  const UniqueFd first = offer_by_hand();
  ASSERT_TRUE(wait_until([&] { return holder_pid() == kPid; }));
  const std::string lease = cluster::agent_lease(job_.string(), "n2");
  ASSERT_TRUE(write_lease_of(lease, {"n2", kOther, 0, "delivered", true}));
  ASSERT_TRUE(say(first, make_frame<cluster::Complete>()));
  ASSERT_TRUE(is_marked(Presence::kDone));
  // It lasts until the receiver is through with it.
  is_stopping_ = true;
  thread_.join();
  EXPECT_EQ(holder_pid(), kOther);
}

/// Else an archive that has what it brought would not be made, or not be told to it.
TEST_F(Successors, leave_the_mark_of_another_agent_whose_spool_waits) {
  write(there_ / "definitions.aon", "of the first");
  Courier first(sender());
  ASSERT_TRUE(first.connect(address_));
  ASSERT_TRUE(first.send_rest());
  ASSERT_TRUE(is_marked(Presence::kDone));
  const std::string mark = presence().at(0).token;
  UniqueFd other = offer_of_another();
  ASSERT_TRUE(wait_until([&] { return holder_pid() == kOther; }));
  const auto is_kept = [&] {
    const auto nodes = presence();
    return std::any_of(nodes.begin(), nodes.end(), [&](const cluster::NodePresence& one) {
      return one.presence == Presence::kDone && one.token == mark;
    });
  };
  EXPECT_TRUE(is_kept());
  const auto nodes = presence();
  ASSERT_FALSE(nodes.empty());
  EXPECT_EQ(nodes[0].node, "n2");
  EXPECT_EQ(nodes[0].presence, Presence::kLive) << "the other one records";
  usleep(700'000);  // a look of the receiver
  EXPECT_TRUE(first.beat()) << first.refusal();
  ASSERT_TRUE(say(other, make_frame<cluster::Complete>()));
  ASSERT_TRUE(wait_until([&] { return presence()[0].presence == Presence::kDone; }));
  EXPECT_TRUE(is_kept());
  make_archive();
  EXPECT_EQ(told(&first), "n1:" + job_.string());
  EXPECT_FALSE(fs::exists(job_ / "agents"));
}

TEST_F(Successors, leave_one_that_has_gone_a_guest_until_an_archive_has_it) {
  {
    Courier first(sender());
    ASSERT_TRUE(first.connect(address_));
    ASSERT_TRUE(first.send_rest());
    ASSERT_TRUE(is_marked(Presence::kDone));
  }
  {
    const UniqueFd other = offer_of_another();
    ASSERT_TRUE(wait_until([&] { return holder_pid() == kOther; }));
  }
  is_stopping_ = true;
  thread_.join();
  for (int i = 0; i < 40; ++i) receiver_->step(20);
  EXPECT_EQ(receiver_->guest_count(), 1u) << "nobody would make an archive with it";
  make_archive();
  EXPECT_TRUE(wait_until([&] {
    receiver_->step(20);
    return receiver_->guest_count() == 0;
  }));
}

/// Which may be the lease of an agent that is not heard of any more.
TEST_F(Successors, have_their_lease_touched_by_nobody_else) {
  const UniqueFd first = offer_by_hand();
  ASSERT_TRUE(wait_until([&] { return holder_pid() == kPid; }));
  const UniqueFd clock = offer_by_hand("n3");
  const fs::path beaten = cluster::agent_lease(job_.string(), "n3");
  ASSERT_TRUE(wait_until([&] { return fs::exists(beaten); }));
  const std::string lease = cluster::agent_lease(job_.string(), "n2");
  ASSERT_TRUE(write_lease_of(lease, {"n2", kOther, 0, "delivered", true}));
  const auto written = fs::last_write_time(lease);
  for (int i = 0; i < 2; ++i) {
    const auto before = fs::last_write_time(beaten);
    ASSERT_TRUE(wait_until([&] { return fs::last_write_time(beaten) != before; }));
  }
  EXPECT_EQ(fs::last_write_time(lease), written);
}

}  // namespace
}  // namespace aon::delivery
