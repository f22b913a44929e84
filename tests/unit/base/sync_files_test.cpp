#include "core/base/sync_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/base/file.h"
#include "tests/unit/temporary_folder.h"

namespace aon {
namespace {

namespace fs = std::filesystem;

class SyncFiles : public testing::Test {
 protected:
  Result<UniqueFd> open_folder() const { return open_file(path().string(), O_RDONLY); }
  const fs::path& path() const { return folder_.path(); }
  void make(const std::string& name) const { std::ofstream(path() / name) << "x"; }

  test::TemporaryFolder folder_;
};

TEST_F(SyncFiles, one_that_is_missing_is_named) {
  make("there");
  const auto folder = open_folder();
  ASSERT_TRUE(folder.has_value());
  EXPECT_TRUE(sync_files(folder->get(), {}).has_value());
  EXPECT_TRUE(sync_files(folder->get(), {"there"}).has_value());
  const Status status = sync_files(folder->get(), {"there", "missing"});
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Code::kNotFound);
  EXPECT_NE(status.error().message.find("missing"), std::string::npos);
}

TEST_F(SyncFiles, many_are_synced_with_their_file_system_and_not_opened) {
  const auto folder = open_folder();
  ASSERT_TRUE(folder.has_value());
  EXPECT_FALSE(
      sync_files(folder->get(), std::vector<std::string>(kMostSyncedFiles, "missing")).has_value());
  EXPECT_TRUE(sync_files(folder->get(), std::vector<std::string>(kMostSyncedFiles + 1, "missing"))
                  .has_value());
}

TEST_F(SyncFiles, of_a_tree_links_are_left_alone) {
  fs::create_directories(path() / "a" / "b");
  make("a/b/file");
  make("file");
  fs::create_symlink("/nowhere", path() / "a" / "broken");
  fs::create_directory_symlink("/", path() / "all");
  const Status status = sync_tree(path());
  EXPECT_TRUE(status.has_value()) << status.error().message;
  EXPECT_FALSE(sync_tree(path() / "none").has_value());
}

}  // namespace
}  // namespace aon
