#include "core/delivery/places.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/unit/temporary_folder.h"

namespace aon::delivery {
namespace {

namespace fs = std::filesystem;

class PlacesTest : public testing::Test {
 protected:
  void write(const std::string& name) const { std::ofstream(root_ / "spool" / name) << "text"; }
  bool exists(const std::string& name) const { return fs::exists(root_ / "spool" / name); }

  test::TemporaryFolder folder_;
  const fs::path& root_ = folder_.path();
};

TEST_F(PlacesTest, are_made_beside_what_is_there) {
  fs::create_directories(root_ / "spool" / "n2");
  write("n2/p0.0.aon");
  Places places(root_ / "spool");
  EXPECT_EQ(places.holder({"n2 7 1", "n2", 5}), "");
  EXPECT_TRUE(places.open({"n2 7 1", "n2", 5}));
  EXPECT_TRUE(exists("n2~2"));
  EXPECT_TRUE(exists("n2/p0.0.aon"));
}

TEST_F(PlacesTest, of_an_agent_that_comes_again_are_emptied) {
  Places places(root_ / "spool");
  ASSERT_TRUE(places.open({"n2 7 1", "n2", 5}));
  write("n2/p0.0.aon");
  places.tell("n2 7 1");
  EXPECT_EQ(places.holder({"n2 7 1", "n2", 5}), "n2 7 1");
  EXPECT_TRUE(places.open({"n2 7 1", "n2", 5}));
  EXPECT_FALSE(exists("n2/p0.0.aon"));
  EXPECT_FALSE(exists("n2~2"));
}

/// A later agent's spool holds what came here of an earlier one only where it is the same folder,
/// and that one has not removed it.
TEST_F(PlacesTest, go_over_to_who_brings_the_same_spool_again) {
  Places places(root_ / "spool");
  ASSERT_TRUE(places.open({"n2 7 1", "n2", 5}));
  EXPECT_EQ(places.holder({"n2 8 1", "n2", 6}), "") << "another folder";
  EXPECT_EQ(places.holder({"n3 8 1", "n3", 5}), "") << "of another node";
  EXPECT_EQ(places.holder({"n2 8 1", "n2", 5}), "n2 7 1");
  ASSERT_TRUE(places.open({"n2 8 1", "n2", 5}));
  EXPECT_FALSE(exists("n2~2"));
  EXPECT_EQ(places.holder({"n2 9 1", "n2", 5}), "n2 8 1");
  places.tell("n2 8 1");
  EXPECT_EQ(places.holder({"n2 9 1", "n2", 5}), "") << "it removes its own";
}

TEST_F(PlacesTest, have_the_ranks_of_who_has_them_now) {
  Places places(root_ / "spool");
  ASSERT_TRUE(places.open({"n2 7 1", "n2", 5, 4}));
  ASSERT_TRUE(places.open({"n3 7 1", "n3", 6, 2}));
  EXPECT_EQ(places.rank_count(), 6u);
  ASSERT_TRUE(places.open({"n2 8 1", "n2", 5, 3}));
  EXPECT_EQ(places.rank_count(), 5u) << "its own, and of the one before none";
  places.tell("n2 8 1");
  ASSERT_TRUE(places.open({"n2 9 1", "n2", 5, 1}));
  EXPECT_EQ(places.rank_count(), 6u) << "beside one whose records are in an archive";
}

/// One of them is named as the second folder of the other would be.
TEST_F(PlacesTest, of_agents_beside_each_other_on_a_node_stay_apart) {
  Places places(root_ / "spool");
  ASSERT_TRUE(places.open({"n2 7 1", "n2", 5}));
  ASSERT_TRUE(places.open({"n2~2 8 1", "n2~2", 6}));
  ASSERT_TRUE(places.open({"n2 9 1", "n2", 8}));
  ASSERT_TRUE(places.open({"n2~2 10 1", "n2~2", 9}));
  for (const char* name : {"n2", "n2~2", "n2~3", "n2~2~2"}) EXPECT_TRUE(exists(name)) << name;
}

TEST_F(PlacesTest, of_spools_that_are_not_known_stay_apart) {
  Places places(root_ / "spool");
  ASSERT_TRUE(places.open({"n2 7 1", "n2", 0}));
  EXPECT_EQ(places.holder({"n2 8 1", "n2", 0}), "");
}

}  // namespace
}  // namespace aon::delivery
