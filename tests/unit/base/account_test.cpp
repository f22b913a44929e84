#include "core/base/account.h"

#include <gtest/gtest.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>

namespace aon {
namespace {

/// What a shell that runs `script` says.
Result<Account> ask(const std::string& script, int wait_ms = 20'000) {
  const char* const words[] = {"/bin/sh", "-c", script.c_str(), nullptr};
  return ask_account(words, wait_ms);
}

std::string line(const std::string& home) {
  return "me:x:" + std::to_string(geteuid()) + ":5:Me, Myself:" + home + ":/bin/sh";
}

class HomeTest : public testing::Test {
 protected:
  HomeTest() {
    const char* home = getenv("HOME");
    if (home != nullptr) home_ = home;
  }
  ~HomeTest() override { setenv("HOME", home_.c_str(), 1); }

  std::string home_;
};

TEST(AccountTest, is_found_by_its_number) {
  const std::string lines = "root:x:0:0::/root:/bin/sh\nann:x:1:1::/users/ann:/bin/sh\n";
  ASSERT_TRUE(find_account(lines, 1));
  EXPECT_EQ(find_account(lines, 1)->name, "ann");
  EXPECT_EQ(find_account(lines, 1)->home, "/users/ann");
  EXPECT_EQ(find_account(lines, 10).error().code, Code::kNotFound);
  for (const char* bad : {"", "\n\n", ":::::", "x", "x:1", ":x:1:1::/planted:/bin/sh"})
    EXPECT_FALSE(find_account(bad, 1)) << bad;
  EXPECT_EQ(find_account("short:x:1", 1)->home, "");
}

TEST(AccountTest, is_asked_for) {
  const Result<Account> found = ask("echo '" + line("/somewhere") + "'");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->name, "me");
  EXPECT_EQ(found->home, "/somewhere");
}

TEST(AccountTest, that_does_not_exist_is_no_failure) {
  EXPECT_EQ(ask("exit 2").error().code, Code::kNotFound);
}

TEST(AccountTest, that_nobody_can_tell_is_not_known) {
  EXPECT_EQ(ask("exit 1").error().code, Code::kUnavailable);
  EXPECT_EQ(ask("echo nonsense").error().code, Code::kUnavailable);
  EXPECT_EQ(ask("yes").error().code, Code::kUnavailable);
  const char* const none[] = {"/none/at/all", nullptr};
  EXPECT_EQ(ask_account(none, 1000).error().code, Code::kUnavailable);
}

TEST(AccountTest, is_not_waited_for_for_ever) {
  const time_t begin_s = time(nullptr);
  const Result<Account> found = ask("echo begin; exec sleep 100", 50);
  EXPECT_EQ(found.error().code, Code::kUnavailable);
  EXPECT_NE(found.error().message.find("in time"), std::string::npos);
  EXPECT_LT(time(nullptr) - begin_s, 50);
}

TEST(AccountTest, is_known_also_from_one_that_says_it_and_does_not_end) {
  const Result<Account> found = ask("echo '" + line("/there") + "'; exec sleep 100 >&-", 300);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->home, "/there");
}

TEST_F(HomeTest, is_that_of_the_environment_where_it_says_one) {
  setenv("HOME", "/by/environment", 1);
  EXPECT_EQ(*home_folder(), "/by/environment");
}

TEST_F(HomeTest, is_that_of_the_account_else) {
  const Result<Account>& mine = account();
  if (!mine) GTEST_SKIP() << mine.error().message;
  for (const char* odd : {"", "relative"}) {
    setenv("HOME", odd, 1);
    EXPECT_EQ(*home_folder(), mine->home);
  }
  unsetenv("HOME");
  EXPECT_EQ(*home_folder(), mine->home);
}

}  // namespace
}  // namespace aon
