#include "core/base/log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "core/base/file.h"

namespace aon {
namespace {

TEST(Log, writes_whole_lines_up_to_the_level) {
  const std::string path = "/tmp/aon-log-test-" + std::to_string(getpid());
  ASSERT_TRUE(set_log_file(path.c_str()).has_value());
  set_log_name("aon-test");
  set_log_level(LogLevel::kInfo);
  AON_LOG_INFO("%d ranks", 4);
  AON_LOG_DEBUG("not seen");
  AON_LOG_ERROR("%s", std::string(5000, 'x').c_str());
  const Result<std::string> text = read_text_file(path);
  ::unlink(path.c_str());
  ASSERT_TRUE(text.has_value());
  const size_t first_end = text->find('\n');
  EXPECT_EQ(text->substr(0, first_end), "aon-test[" + std::to_string(getpid()) + "] info: 4 ranks");
  EXPECT_EQ(text->find("not seen"), std::string::npos);
  EXPECT_EQ(text->size() - first_end - 1, 1023u);
  EXPECT_EQ(text->back(), '\n');
}

TEST(Log, fills_no_disk) {
  const std::string path = "/tmp/aon-log-full-" + std::to_string(getpid());
  ASSERT_TRUE(set_log_file(path.c_str()).has_value());
  constexpr off_t kNearlyFull = (16 << 20) - 10'000;
  ASSERT_EQ(::truncate(path.c_str(), kNearlyFull), 0);  // a hole
  for (int i = 0; i < 100; ++i) AON_LOG_ERROR("%s", std::string(5000, 'x').c_str());
  const Result<std::string> text = read_text_file(path, 32 << 20);
  ::unlink(path.c_str());
  ASSERT_TRUE(text.has_value());
  EXPECT_GT(text->size(), static_cast<size_t>(kNearlyFull) + 9'000);
  EXPECT_LT(text->size(), static_cast<size_t>(kNearlyFull) + 12'000);
  EXPECT_TRUE(text->ends_with("x\nthe log is full: nothing more is written\n"));
}

TEST(Log, file_that_cannot_be_opened_is_an_error) {
  const Status status = set_log_file("/nonexistent/aon.log");
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Code::kNotFound);
}

}  // namespace
}  // namespace aon
