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

}  // namespace
}  // namespace aon::delivery
