#include "core/agent/span.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "core/base/unique_fd.h"

namespace aon::agent {
namespace {

class Span : public ::testing::Test {
 protected:
  void SetUp() override {
    auto fd = State::create();
    ASSERT_TRUE(fd);
    fd_ = std::move(*fd);
    auto state = State::map(fd_.get());
    ASSERT_TRUE(state);
    state_ = *state;
  }

  void add_rank(int32_t rank, uint32_t world_size) {
    StateHeader& header = state_->header();
    const uint32_t cell = header.process_count.load();
    state_->process(cell).rank = rank;
    state_->process(cell).world_size = world_size;
    header.process_count.store(cell + 1);
    note_world(&*state_, world_size, now_ns_);
  }
  void expect_ranks(uint32_t count) { state_->header().expected_ranks.store(count); }
  bool spans() {
    decide_span(&*state_, now_ns_);
    return state_->header().spans_nodes.load() != 0;
  }

  UniqueFd fd_;
  std::optional<State> state_;
  uint64_t now_ns_ = 1'000'000'000'000;  ///< long after the agent has begun
};

TEST_F(Span, is_known_at_once_where_it_is_told_how_many_are_here) {
  add_rank(0, 4);
  EXPECT_FALSE(spans()) << "not told yet";
  expect_ranks(4);
  EXPECT_FALSE(spans());
  now_ns_ += kRegisterWaitNs + 1;
  EXPECT_FALSE(spans()) << "the others may not have come yet";
  expect_ranks(2);
  EXPECT_TRUE(spans());
}

TEST_F(Span, counts_who_has_come_where_it_is_not_told) {
  add_rank(0, 3);
  add_rank(0, 3);  // it has exec()ed
  add_rank(2, 3);
  EXPECT_FALSE(spans());
  add_rank(1, 3);
  now_ns_ += kRegisterWaitNs + 1;
  EXPECT_FALSE(spans());
  add_rank(0, 8);
  EXPECT_FALSE(spans()) << "a program that starts late has as long as another";
  now_ns_ += kRegisterWaitNs;
  EXPECT_FALSE(spans());
  now_ns_ += 1;
  EXPECT_TRUE(spans());
}

TEST_F(Span, of_a_world_that_did_not_come_is_known_at_the_end) {
  add_rank(0, 2);
  now_ns_ = kAtTheEnd;
  EXPECT_TRUE(spans());
}

TEST_F(Span, of_one_process_is_its_node) {
  now_ns_ = kAtTheEnd;
  EXPECT_FALSE(spans());
  now_ns_ = kRegisterWaitNs;
  add_rank(-1, 0);
  add_rank(0, 1);
  EXPECT_FALSE(spans());
  now_ns_ = kAtTheEnd;
  EXPECT_FALSE(spans());
}

}  // namespace
}  // namespace aon::agent
