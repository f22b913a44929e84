#include "core/base/avoid_list.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/squashed.h"
#include "tests/unit/temporary_folder.h"

namespace aon {
namespace {

class AvoidListTest : public testing::Test {
 protected:
  test::TemporaryFolder folder_;
  const std::string path_ = folder_.path("config/aon/avoid");
};

TEST_F(AvoidListTest, missing_is_empty) {
  const AvoidList list(path_);
  ASSERT_TRUE(list.read());
  EXPECT_TRUE(list.read()->empty());
  EXPECT_FALSE(list.holds("/bin/app"));
}

TEST_F(AvoidListTest, added_once_and_removed) {
  AvoidList list(path_);
  ASSERT_TRUE(list.add("/opt/my app", "libaon.so+0x12"));
  ASSERT_TRUE(list.add("/opt/my app", "libaon.so+0x34"));
  ASSERT_TRUE(list.add("/opt/other", "libaon-mpi.so"));
  ASSERT_EQ(list.read()->size(), 2u);
  AvoidedProgram found;
  ASSERT_TRUE(list.holds("/opt/my app", &found));
  EXPECT_EQ(found.place, "libaon.so+0x12");
  EXPECT_EQ(found.version, AON_VERSION);
  EXPECT_EQ(found.date.size(), 10u);
  EXPECT_FALSE(list.holds("/opt/my"));
  ASSERT_TRUE(list.remove("/opt/my app"));
  EXPECT_FALSE(list.holds("/opt/my app"));
  EXPECT_TRUE(list.holds("/opt/other"));
  EXPECT_EQ(list.remove("/opt/my app").error().code, Code::kNotFound);
}

TEST_F(AvoidListTest, another_version_tries_again) {
  AvoidList list(path_);
  ASSERT_TRUE(list.add("/bin/app", "libaon.so"));
  std::ofstream(path_) << "0.0.0\t2020-01-01\tlibaon.so+0x1\t/bin/app\n";
  EXPECT_EQ(list.read()->size(), 1u);
  EXPECT_FALSE(list.holds("/bin/app"));
  ASSERT_TRUE(list.add("/bin/app", "libaon.so"));
  EXPECT_TRUE(list.holds("/bin/app"));
}

TEST_F(AvoidListTest, not_a_list_of_ours) {
  AvoidList list(path_);
  ASSERT_TRUE(list.add("/bin/app", "libaon.so"));
  std::ofstream(path_, std::ios::app) << "\n\t\t\t\nnonsense\n1\t2\t3\n";
  EXPECT_EQ(list.read()->size(), 1u);
  ASSERT_EQ(::chmod(path_.c_str(), 0666), 0);
  EXPECT_EQ(list.read().error().code, Code::kInvalid);
  EXPECT_FALSE(list.holds("/bin/app"));
  EXPECT_FALSE(list.add("/bin/other", "libaon.so"));
}

TEST_F(AvoidListTest, is_own_where_the_home_shows_another_owner) {
  if (::geteuid() != 0) GTEST_SKIP() << "making files of another user needs root";
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
  AvoidList list(test::shown_folder(folder_.path()) + "/aon/avoid");
  {
    const test::Squashed squashed;
    ASSERT_TRUE(list.add("/bin/app", "libaon.so"));
    EXPECT_TRUE(list.holds("/bin/app"));
    ASSERT_TRUE(list.add("/bin/other", "libaon.so"));
    ASSERT_TRUE(list.remove("/bin/other"));
  }
  EXPECT_FALSE(list.holds("/bin/app")) << "of another user";
}

TEST_F(AvoidListTest, link_is_not_followed) {
  AvoidList list(path_);
  ASSERT_TRUE(list.add("/bin/app", "libaon.so"));
  std::filesystem::rename(path_, folder_.path("real"));
  std::filesystem::create_symlink(folder_.path("real"), path_);
  EXPECT_FALSE(list.holds("/bin/app"));
}

TEST_F(AvoidListTest, names_that_cannot_stand_in_a_list) {
  AvoidList list(path_);
  for (const char* name : {"", "/bin/a\tb", "/bin/a\nb"})
    EXPECT_EQ(list.add(name, "libaon.so").error().code, Code::kInvalid);
}

TEST_F(AvoidListTest, no_home) {
  AvoidList list("");
  EXPECT_TRUE(list.read()->empty());
  EXPECT_EQ(list.add("/bin/app", "libaon.so").error().code, Code::kUnavailable);
}

}  // namespace
}  // namespace aon
