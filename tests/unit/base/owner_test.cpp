#include "core/base/owner.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/base/unique_fd.h"
#include "tests/unit/squashed.h"

namespace aon {
namespace {

namespace fs = std::filesystem;

class OwnerTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "making files of another user needs root";
    folder_ = test::shown_folder(testing::TempDir());
    file_ = folder_ + "/file";
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  bool is_own_folder() const {
    const UniqueFd folder(open(folder_.c_str(), O_RDONLY | O_DIRECTORY));
    return is_of_this_user(folder.get());
  }
  bool is_own_with_folder() const {
    const UniqueFd folder(open(folder_.c_str(), O_RDONLY | O_DIRECTORY));
    const UniqueFd file(open(file_.c_str(), O_RDONLY));
    return is_of_this_user(folder.get(), file.get());
  }
  bool is_file_own() const {
    const UniqueFd file(open(file_.c_str(), O_RDONLY));
    return is_own_file(file.get(), file_);
  }

  std::string folder_;
  std::string file_;
};

TEST_F(OwnerTest, is_who_our_files_get) {
  {
    const test::Squashed squashed;
    std::ofstream(file_) << "ours";
    EXPECT_TRUE(is_own_folder());
    EXPECT_TRUE(is_own_with_folder());
    EXPECT_TRUE(is_file_own());
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
  EXPECT_FALSE(is_own_folder());
  EXPECT_FALSE(is_own_with_folder());
  EXPECT_FALSE(is_file_own());
}

TEST_F(OwnerTest, file_and_folder_have_one) {
  std::ofstream(file_) << "ours";
  EXPECT_FALSE(is_own_with_folder());
  EXPECT_TRUE(is_file_own()) << "as it is shown";
  ASSERT_EQ(chown(folder_.c_str(), 0, 0), 0);
  EXPECT_TRUE(is_own_with_folder());
  ASSERT_EQ(chown(file_.c_str(), test::kShownOwner, 0), 0);
  EXPECT_FALSE(is_own_with_folder());
  EXPECT_FALSE(is_file_own());
}

}  // namespace
}  // namespace aon
