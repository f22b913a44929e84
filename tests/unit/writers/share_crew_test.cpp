// The processes that work on shares: children, and others of which only files are seen.

#include "writers/assemble/share_crew.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <new>
#include <string>

#include "tests/unit/temporary_folder.h"

namespace aon::writers {
namespace {

namespace fs = std::filesystem;

class Crew : public testing::Test {
 protected:
  fs::path file(uint32_t share) const { return folder_ / std::to_string(share); }
  ShareCrew::Work making_files() const {
    return [this](uint32_t share) {
      std::ofstream(file(share)) << share;
      return Status();
    };
  }

  test::TemporaryFolder temporary_;
  const fs::path& folder_ = temporary_.path();
};

TEST_F(Crew, children_do_their_shares) {
  ShareCrew crew(folder_, making_files(), [] {});
  for (uint32_t share = 0; share < 3; ++share) ASSERT_TRUE(crew.start(share));
  for (uint32_t share = 0; share < 3; ++share) EXPECT_TRUE(crew.wait_for(file(share)));
  EXPECT_EQ(crew.replaced_count(), 0u);
}

TEST_F(Crew, a_child_that_fails_or_dies_is_told) {
  const auto fail = [](uint32_t) { return Status(Error{Code::kIo, "no room"}); };
  ShareCrew failing(folder_, fail, [] {});
  ASSERT_TRUE(failing.start(4));
  const Status failed = failing.wait_for(file(4));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "the process of share 4 failed");
  ShareCrew dying(
      folder_,
      [](uint32_t) {
        abort();
        return Status();
      },
      [] {});
  ASSERT_TRUE(dying.start(5));
  EXPECT_FALSE(dying.wait_for(file(5)));
}

TEST_F(Crew, a_node_that_never_begins_is_replaced) {
  ShareCrew crew(
      folder_, making_files(), [] {}, /*begin_s=*/0);
  crew.expect(1, file(1));
  EXPECT_TRUE(crew.wait_for(file(1)));
  EXPECT_EQ(crew.replaced_count(), 1u);
}

TEST_F(Crew, a_node_that_is_heard_is_waited_for) {
  const ShareBeat beat(folder_, 1, [] { return false; });
  int beats = 0;
  ShareCrew crew(
      folder_,
      [](uint32_t) {
        return Status(Error{Code::kBug, "nobody is to be replaced"});
      },
      [&] {
        if (++beats == 20) std::ofstream(file(1)) << "done elsewhere";
      },
      /*begin_s=*/0);
  crew.expect(1, file(1));
  EXPECT_TRUE(crew.wait_for(file(1)));
  EXPECT_EQ(crew.replaced_count(), 0u);
  EXPECT_GE(beats, 20);
}

TEST_F(Crew, a_node_that_is_done_says_nothing_any_more) {
  int beats = 0;
  ShareCrew crew(
      folder_,
      [](uint32_t) {
        return Status(Error{Code::kBug, "nobody is to be replaced"});
      },
      [&] {
        if (++beats == 1) std::ofstream(file(1)) << "done elsewhere";
        if (beats == 40) std::ofstream(file(2)) << "done later";
      },
      /*begin_s=*/1);
  crew.expect(1, file(1));
  ASSERT_TRUE(crew.wait_for(file(2)));
  EXPECT_EQ(crew.replaced_count(), 0u);
}

TEST_F(Crew, who_works_for_nobody_ends) {
  EXPECT_EXIT(
      {
        const ShareBeat beat(folder_, 1, [] { return true; });
        for (;;) pause();
      },
      testing::ExitedWithCode(EXIT_FAILURE), "");
}

TEST_F(Crew, exceptions_stay_in_the_child) {
  ShareCrew crew(
      folder_, [](uint32_t) -> Status { throw std::bad_alloc(); }, [] {});
  ASSERT_TRUE(crew.start(1));
  EXPECT_FALSE(crew.wait_for(file(1)));
}

TEST_F(Crew, too_many_silent_nodes_are_an_error) {
  ShareCrew crew(
      folder_, making_files(), [] {}, /*begin_s=*/0);
  for (uint32_t share = 0; share <= kMostReplaced; ++share) crew.expect(share, file(share));
  const Status status = crew.wait_for(file(0));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "9 nodes are silent");
}

}  // namespace
}  // namespace aon::writers
