#include "core/cluster/nccl_wish.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/squashed.h"
#include "tests/unit/temporary_folder.h"

namespace aon::cluster {
namespace {

constexpr std::string_view kGood = "aon-nccl-level 1\nlevel net\nstamp 1a2b3c4d\n";

class NcclWishes : public testing::Test {
 protected:
  std::string path() const { return dir_ + "/" + kNcclWishFile; }
  void put(std::string_view text) const {
    std::ofstream(path(), std::ios::binary | std::ios::trunc) << text;
    chmod(path().c_str(), 0600);
  }
  /// Why a new look does not heed what is there.
  std::string complaint() const {
    const auto found = NcclWishFile(dir_).look();
    return found ? "none" : found.error().message;
  }

  test::TemporaryFolder folder_;
  std::string dir_ = folder_.path();
};

TEST(NcclWish, is_read_as_it_is_written) {
  const auto wish = parse_nccl_wish(kGood);
  ASSERT_TRUE(wish.has_value());
  EXPECT_EQ(wish->level, NcclLevel::kNet);
  EXPECT_EQ(wish->stamp, 0x1a2b3c4du);
  EXPECT_EQ(format_nccl_wish(*wish), kGood);
  EXPECT_TRUE(parse_nccl_wish(std::string(kGood) + "more 1\n").has_value());  // of a later version
}

TEST(NcclWish, is_none_of_what_is_cut_off_or_damaged) {
  for (size_t bytes = 0; bytes < kGood.size(); ++bytes)
    EXPECT_FALSE(parse_nccl_wish(kGood.substr(0, bytes)).has_value()) << bytes;
  for (size_t at = 0; at + 9 < kGood.size(); ++at) {
    std::string text(kGood);
    text[at] = '\0';
    EXPECT_FALSE(parse_nccl_wish(text).has_value()) << at;
  }
}

TEST(NcclWish, takes_no_other_words) {
  const auto read = [](const std::string& version, const std::string& level,
                       const std::string& stamp) {
    return parse_nccl_wish("aon-nccl-level " + version + "\nlevel " + level + "\nstamp " + stamp +
                           "\n");
  };
  EXPECT_TRUE(read("1", "step", "7fffffff").has_value());
  for (const char* level : {"", "off", "NET", "net ", " net", "net\r", "unknown", "apis"})
    EXPECT_FALSE(read("1", level, "1").has_value()) << level;
  for (const char* stamp : {"", "0", "-1", "80000000", "1ffffffff", "1 ", "0x1", "g", "1\r"})
    EXPECT_FALSE(read("1", "net", stamp).has_value()) << stamp;
  for (const char* version : {"", "2", "11", "1 ", "one"})
    EXPECT_FALSE(read(version, "net", "1").has_value()) << version;
}

TEST_F(NcclWishes, are_none_before_anybody_asks) {
  NcclWishFile file(dir_);
  const auto found = file.look();
  ASSERT_TRUE(found.has_value());
  EXPECT_FALSE(found->has_value());
  EXPECT_TRUE(NcclWishFile("/none/at/all").look().has_value());
}

TEST_F(NcclWishes, are_seen_each_time) {
  NcclWishFile file(dir_);
  uint32_t last = 0;
  for (const NcclLevel level : {NcclLevel::kNet, NcclLevel::kApi, NcclLevel::kApi}) {
    const auto written = write_nccl_wish(dir_, level);
    ASSERT_TRUE(written.has_value()) << written.error().message;
    const auto found = file.look();
    ASSERT_TRUE(found.has_value() && found->has_value());
    EXPECT_EQ((*found)->level, level);
    EXPECT_EQ((*found)->stamp, written->stamp);
    EXPECT_NE((*found)->stamp, last);
    last = (*found)->stamp;
  }
  struct stat status {};
  ASSERT_EQ(stat(path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir_), {}), 1);
}

TEST_F(NcclWishes, stay_when_the_file_goes_or_the_folder_is_moved) {
  dir_ += "/job";  // which goes with the folder under another name, too
  ASSERT_EQ(mkdir(dir_.c_str(), 0700), 0);
  NcclWishFile file(dir_);
  ASSERT_TRUE(write_nccl_wish(dir_, NcclLevel::kNet).has_value());
  ASSERT_TRUE((*file.look())->level == NcclLevel::kNet);
  const std::string moved = dir_ + ".moved";
  std::filesystem::rename(dir_, moved);
  dir_ = moved;
  ASSERT_TRUE(write_nccl_wish(dir_, NcclLevel::kGpu).has_value());
  EXPECT_EQ((*file.look())->level, NcclLevel::kGpu);
  std::filesystem::remove(path());
  EXPECT_EQ((*file.look())->level, NcclLevel::kGpu);
}

TEST_F(NcclWishes, of_a_bad_file_are_told_once_and_change_nothing) {
  NcclWishFile file(dir_);
  ASSERT_TRUE(write_nccl_wish(dir_, NcclLevel::kNet).has_value());
  ASSERT_TRUE(file.look().has_value());
  put("junk\n");
  const auto bad = file.look();
  ASSERT_FALSE(bad.has_value());
  EXPECT_NE(bad.error().message.find(path() + " is no level of NCCL"), std::string::npos);
  const auto after = file.look();
  ASSERT_TRUE(after.has_value());
  EXPECT_EQ((*after)->level, NcclLevel::kNet);
}

TEST_F(NcclWishes, are_bounded) {
  put(std::string(kGood) + std::string(kMaxNcclWishBytes, 'x'));
  EXPECT_NE(complaint().find("is too long"), std::string::npos);
  put(std::string(kGood) + std::string(kMaxNcclWishBytes - kGood.size(), 'x'));
  EXPECT_EQ(complaint(), "none");
}

TEST_F(NcclWishes, follow_no_link_and_wait_for_nobody) {
  std::ofstream(dir_ + "/elsewhere") << kGood;
  ASSERT_EQ(symlink((dir_ + "/elsewhere").c_str(), path().c_str()), 0);
  EXPECT_NE(complaint().find("is a link"), std::string::npos);
  unlink(path().c_str());
  ASSERT_EQ(mkfifo(path().c_str(), 0600), 0);
  EXPECT_NE(complaint().find("is no file"), std::string::npos);
  unlink(path().c_str());
  ASSERT_EQ(mkdir(path().c_str(), 0700), 0);
  EXPECT_NE(complaint().find("is no file"), std::string::npos);
  const auto written = write_nccl_wish(dir_, NcclLevel::kNet);
  ASSERT_FALSE(written.has_value());
  EXPECT_NE(written.error().message.find("cannot replace"), std::string::npos);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir_), {}), 2);  // nothing is left
}

TEST_F(NcclWishes, replace_a_link_and_not_what_it_names) {
  std::ofstream(dir_ + "/elsewhere") << "mine";
  ASSERT_EQ(symlink((dir_ + "/elsewhere").c_str(), path().c_str()), 0);
  ASSERT_TRUE(write_nccl_wish(dir_, NcclLevel::kNet).has_value());
  EXPECT_EQ(std::filesystem::file_size(dir_ + "/elsewhere"), 4u);
  EXPECT_EQ(complaint(), "none");
}

TEST_F(NcclWishes, of_what_others_may_write_are_not_heeded) {
  put(kGood);
  for (const mode_t mode : {0620, 0602}) {
    chmod(path().c_str(), mode);
    EXPECT_NE(complaint().find("is not this user's alone"), std::string::npos);
  }
}

TEST_F(NcclWishes, of_another_user_are_not_heeded) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make another user's file";
  put(kGood);
  ASSERT_EQ(chown(path().c_str(), test::kShownOwner, test::kShownOwner), 0);
  EXPECT_NE(complaint().find("is not this user's alone"), std::string::npos);
  ASSERT_EQ(chown(dir_.c_str(), test::kShownOwner, test::kShownOwner), 0);
  const auto written = write_nccl_wish(dir_, NcclLevel::kNet);
  ASSERT_FALSE(written.has_value());
  EXPECT_NE(written.error().message.find("is another user's"), std::string::npos);
}

TEST_F(NcclWishes, are_heeded_where_the_file_system_shows_another_owner) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make another user's file";
  ASSERT_EQ(chmod(dir_.c_str(), 0755), 0);
  const std::string folder = test::shown_folder(dir_);
  ASSERT_FALSE(folder.empty());
  const test::Squashed squashed;
  ASSERT_TRUE(write_nccl_wish(folder, NcclLevel::kGpu).has_value());
  const auto found = NcclWishFile(folder).look();
  ASSERT_TRUE(found.has_value() && found->has_value());
  EXPECT_EQ((*found)->level, NcclLevel::kGpu);
}

TEST_F(NcclWishes, cannot_be_written_where_there_is_no_folder) {
  const auto written = write_nccl_wish(dir_ + "/none", NcclLevel::kNet);
  ASSERT_FALSE(written.has_value());
  EXPECT_EQ(written.error().code, Code::kNotFound);
}

}  // namespace
}  // namespace aon::cluster
