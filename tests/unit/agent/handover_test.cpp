#include "core/agent/handover.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace aon::agent {
namespace {

class HandoverTest : public testing::Test {
 protected:
  void SetUp() override {
    int pair[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    keeper_.reset(pair[0]);
    link_.emplace(UniqueFd(pair[1]));
  }

  bool keep(uint32_t number) {
    const int fd = STDERR_FILENO;
    return link_->keep(KeepKind::kProcess, number, 7, {&fd, 1});
  }
  /// The keeper's side: the next message; number kNone when there is none.
  KeepMessage take(size_t* descriptor_count) {
    KeepMessage message{KeepAction::kFinished, KeepKind::kProcess, kNone, 0};
    std::vector<UniqueFd> descriptors;
    receive_packet(keeper_.get(), {reinterpret_cast<uint8_t*>(&message), sizeof(message)},
                   &descriptors, MSG_DONTWAIT);
    *descriptor_count = descriptors.size();
    return message;
  }
  void answer(uint32_t value) { ASSERT_TRUE(send_struct(keeper_.get(), value)); }

  static constexpr uint32_t kNone = 0xffffffff;
  UniqueFd keeper_;
  std::optional<KeeperLink> link_;
};

TEST_F(HandoverTest, says_what_the_keeper_answers) {
  answer(1);
  EXPECT_TRUE(keep(1));
  answer(0);
  EXPECT_FALSE(keep(2));
}

TEST_F(HandoverTest, leaves_with_a_keeper_that_hangs_what_it_reads_later) {
  EXPECT_TRUE(keep(1)) << "comes back without an answer";
  EXPECT_TRUE(keep(2));
  link_->drop(KeepKind::kProcess, 1);
  size_t descriptor_count = 0;
  for (uint32_t number : {1u, 2u}) {
    const KeepMessage message = take(&descriptor_count);
    EXPECT_EQ(message.action, KeepAction::kKeep);
    EXPECT_EQ(message.number, number);
    EXPECT_EQ(descriptor_count, 1u);
  }
  EXPECT_EQ(take(&descriptor_count).action, KeepAction::kDrop);
  answer(1);
  answer(1);
  answer(0);
  EXPECT_FALSE(keep(3)) << "its own answer, not a late one";
}

TEST_F(HandoverTest, refuses_what_finds_no_room_and_drops_it_later) {
  uint32_t kept = 0;
  while (keep(kept)) ++kept;
  EXPECT_GT(kept, 10u);
  link_->drop(KeepKind::kProcess, 0);  // no room for it either
  size_t descriptor_count = 0;
  for (uint32_t number = 0; number < kept; ++number)
    EXPECT_EQ(take(&descriptor_count).number, number);
  EXPECT_EQ(take(&descriptor_count).number, kNone);
  EXPECT_TRUE(keep(kept));
  const KeepMessage first = take(&descriptor_count);
  EXPECT_EQ(first.action, KeepAction::kDrop);
  EXPECT_EQ(first.number, 0u);
  EXPECT_EQ(take(&descriptor_count).number, kept);
}

TEST_F(HandoverTest, needs_no_keeper) {
  keeper_.reset();
  EXPECT_TRUE(keep(1));
  link_->drop(KeepKind::kProcess, 1);
  EXPECT_TRUE(keep(2));
}

}  // namespace
}  // namespace aon::agent
