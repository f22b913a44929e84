#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/unit/temporary_folder.h"
#include "tools/ledger_summary.h"

namespace aon::tools {
namespace {

namespace fs = std::filesystem;

class Summary : public ::testing::Test {
 protected:
  std::string text() const {
    std::ifstream file(dir_ / "summary.txt");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  size_t file_count() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(dir_), fs::directory_iterator()));
  }

  test::TemporaryFolder folder_;
  const fs::path& dir_ = folder_.path();
};

TEST_F(Summary, is_the_text_and_nobody_elses_to_read) {
  ASSERT_TRUE(leave_summary(dir_, "aon: 2 ranks\n"));
  ASSERT_TRUE(leave_summary(dir_, "aon: 3 ranks\n"));
  EXPECT_EQ(text(), "aon: 3 ranks\n");
  EXPECT_EQ(file_count(), 1u);
  const fs::perms mode = fs::status(dir_ / "summary.txt").permissions();
  EXPECT_EQ(mode & (fs::perms::group_all | fs::perms::others_all), fs::perms::none);
}

/// Names are the program's: one with a newline would be two of the few lines that are shown.
TEST_F(Summary, has_no_more_lines_than_it_says_and_nothing_that_a_terminal_obeys) {
  std::ofstream(dir_ / "aon.json")
      << R"({"ranks": [{"rank": 0, "node": "n", "emitted": 1}], "findings": ["a\nb\u001b[2J"]})";
  const std::string said = summary_of(dir_);
  EXPECT_NE(said.find("aon: a?b?[2J\n"), std::string::npos) << said;
}

/// An aon-run that waits would show it for the archive that is there now.
TEST_F(Summary, of_an_earlier_archive_goes_when_there_is_no_room_for_the_new_one) {
  ASSERT_TRUE(leave_summary(dir_, "aon: 2 ranks\n"));
  rlimit old_limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const auto old_handler = signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{4, old_limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const Status status = leave_summary(dir_, "aon: 3 ranks\n");
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  signal(SIGXFSZ, old_handler);
  EXPECT_FALSE(status);
  EXPECT_EQ(file_count(), 0u);
}

TEST_F(Summary, of_an_earlier_archive_goes_without_a_ledger) {
  ASSERT_TRUE(leave_summary(dir_, "aon: 2 ranks\n"));
  EXPECT_FALSE(leave_summary(dir_, summary_of(dir_)));
  EXPECT_EQ(file_count(), 0u);
}

}  // namespace
}  // namespace aon::tools
