// What dead assemblers left, and what looks like it and was put there by somebody else.
#include "writers/assemble/publish.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "tests/unit/writers/spool_fixture.h"

namespace aon::writers {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kOther = 65534;

class StaleStaging : public testing::Test {
 protected:
  /// A spool elsewhere, and a staging folder whose spool was to be dropped and links to it.
  void SetUp() override {
    for (const fs::path& folder : {job_, staging_ / "spool", target_})
      fs::create_directories(folder);
    std::ofstream(target_ / "definitions.aon") << "1";
    fs::create_directory_symlink(target_, link_);
    for (const fs::path& folder : {staging_, staging_ / "spool", target_.parent_path(), target_})
      fs::permissions(folder, fs::perms::owner_all);
  }
  static void give_away(const fs::path& path) {
    ASSERT_EQ(lchown(path.c_str(), kOther, kOther), 0);
  }

  test::TemporaryFolder folder_;
  fs::path job_ = folder_.path() / "job";
  fs::path staging_ = job_ / ".assemble-1";
  fs::path target_ = folder_.path() / "place" / "aon-one" / "n1";
  fs::path link_ = staging_ / "spool" / "n1";
};

TEST_F(StaleStaging, goes_with_what_its_links_point_to) {
  ASSERT_TRUE(remove_stale_staging(job_));
  EXPECT_TRUE(fs::is_empty(job_));
  EXPECT_TRUE(fs::is_empty(folder_.path() / "place"));
}

TEST_F(StaleStaging, of_another_user_stays) {
  if (geteuid() != 0) GTEST_SKIP() << "making files of another user needs root";
  give_away(staging_);
  ASSERT_TRUE(remove_stale_staging(job_));
  EXPECT_TRUE(fs::exists(target_ / "definitions.aon"));
  EXPECT_TRUE(fs::exists(staging_));
}

TEST_F(StaleStaging, that_others_may_write_stays) {
  fs::permissions(staging_, fs::perms::group_write, fs::perm_options::add);
  ASSERT_TRUE(remove_stale_staging(job_));
  EXPECT_TRUE(fs::exists(target_ / "definitions.aon"));
}

TEST_F(StaleStaging, that_is_a_link_stays) {
  fs::rename(staging_, folder_.path() / "elsewhere");
  fs::create_directory_symlink(folder_.path() / "elsewhere", staging_);
  ASSERT_TRUE(remove_stale_staging(job_));
  EXPECT_TRUE(fs::exists(target_ / "definitions.aon"));
  EXPECT_TRUE(fs::exists(folder_.path() / "elsewhere" / "spool"));
}

TEST_F(StaleStaging, takes_no_spool_that_others_may_write_or_own) {
  fs::permissions(target_, fs::perms::others_write, fs::perm_options::add);
  ASSERT_TRUE(remove_stale_staging(job_));
  EXPECT_FALSE(fs::exists(staging_));
  EXPECT_TRUE(fs::exists(target_ / "definitions.aon"));
}

TEST_F(StaleStaging, follows_no_links_of_a_spool_that_is_a_link) {
  fs::rename(staging_ / "spool", folder_.path() / "planted");
  fs::create_directory_symlink(folder_.path() / "planted", staging_ / "spool");
  ASSERT_TRUE(remove_stale_staging(job_));
  EXPECT_FALSE(fs::exists(staging_));
  EXPECT_TRUE(fs::exists(target_ / "definitions.aon"));
  EXPECT_TRUE(fs::exists(folder_.path() / "planted" / "n1"));
}

/// As users have them: -o to a link into a larger disk.
TEST(Publish, into_a_folder_that_is_named_by_a_link) {
  test::TemporaryFolder folder;
  fs::create_directory(folder.path() / "disk");
  fs::create_directory_symlink("disk", folder.path() / "job");
  Result<Staging> staging = Staging::create(folder.path() / "job");
  ASSERT_TRUE(staging.has_value());
  std::ofstream(staging->path() / "aon.json") << "{}";
  ASSERT_TRUE(staging->sync().has_value());
  const Status status = staging->publish();
  EXPECT_TRUE(status) << status.error().message;
  EXPECT_TRUE(fs::exists(folder.path() / "disk" / "aon.json"));
}

/// Files of this user; what only root may do fails, too.
class AsUser {
 public:
  explicit AsUser(const fs::path& folder) : is_root_(geteuid() == 0) {
    if (!is_root_) return;
    EXPECT_EQ(chown(folder.c_str(), kOther, kOther), 0);
    EXPECT_EQ(seteuid(kOther), 0);
  }
  AsUser(const AsUser&) = delete;
  AsUser& operator=(const AsUser&) = delete;
  ~AsUser() { EXPECT_EQ(seteuid(is_root_ ? 0 : geteuid()), 0); }

 private:
  bool is_root_;
};

/// A folder that its owner may not write cannot move into another one.
TEST(Publish, that_fails_leaves_the_older_result) {
  test::TemporaryFolder folder;
  const AsUser user(folder.path());
  const fs::path job = folder.path() / "job";
  std::error_code error;
  fs::create_directory(job, error);
  if (error) GTEST_SKIP() << "another user cannot get to " << folder.path();
  for (const bool is_old_in_the_way : {true, false}) {
    fs::create_directories(job / "traces");
    for (const char* name : {"aon.json", "traces.otf2", "traces/1"})
      std::ofstream(job / name) << "old";
    {
      Result<Staging> staging = Staging::create(job);
      ASSERT_TRUE(staging.has_value());
      fs::create_directories(staging->path() / "traces");
      fs::create_directories(staging->path() / "samples");
      for (const char* name : {"aon.json", "traces.def", "traces.otf2", "traces/1"})
        std::ofstream(staging->path() / name) << "new";
      const fs::path locked = is_old_in_the_way ? job / "traces" : staging->path() / "samples";
      fs::permissions(locked, fs::perms::owner_read | fs::perms::owner_exec);
      EXPECT_FALSE(staging->publish());
      fs::permissions(locked, fs::perms::owner_all);
    }
    for (const char* name : {"aon.json", "traces.otf2", "traces/1"}) {
      std::string text;
      std::ifstream(job / name) >> text;
      EXPECT_EQ(text, "old") << name;
    }
    EXPECT_FALSE(fs::exists(job / "traces.def"));
    fs::remove_all(job);
  }
}

}  // namespace
}  // namespace aon::writers
