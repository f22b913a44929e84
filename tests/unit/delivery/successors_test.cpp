// Agents of one node, one after the other, that bring the same spool.
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace aon::delivery
