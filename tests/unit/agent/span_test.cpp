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
    note_world(&*state_, world_size);
  }
  void expect_ranks(uint32_t count) { state_->header().expected_ranks.store(count); }
  bool spans(bool is_late) {
    decide_span(&*state_, is_late);
    return state_->header().spans_nodes.load() != 0;
  }

  UniqueFd fd_;
  std::optional<State> state_;
};

TEST_F(Span, is_known_at_once_where_it_is_told_how_many_are_here) {
  add_rank(0, 4);
  EXPECT_FALSE(spans(false)) << "not told yet";
  expect_ranks(4);
  EXPECT_FALSE(spans(false));
  EXPECT_FALSE(spans(true)) << "the others may not have come yet";
  expect_ranks(2);
  EXPECT_TRUE(spans(false));
}

TEST_F(Span, counts_who_has_come_where_it_is_not_told) {
  add_rank(0, 3);
  add_rank(0, 3);  // it has exec()ed
  add_rank(2, 3);
  EXPECT_FALSE(spans(false));
  add_rank(1, 3);
  EXPECT_FALSE(spans(true));
  add_rank(0, 8);
  EXPECT_TRUE(spans(true));
}

TEST_F(Span, of_one_process_is_its_node) {
  EXPECT_FALSE(spans(true));
  add_rank(-1, 0);
  EXPECT_FALSE(spans(true));
  add_rank(0, 1);
  EXPECT_FALSE(spans(true));
}

}  // namespace
}  // namespace aon::agent
