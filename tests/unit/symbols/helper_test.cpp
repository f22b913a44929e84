// The helper process: what it does wrong stays with it.
#include "writers/symbols/helper.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/unit/sanitizer.h"

namespace aon::symbols {
namespace {

constexpr HelperLimits kLimits{uint64_t{64} << 20, 60};

std::string all_of(Helper* helper) {
  std::string text;
  char part[64];
  while (const size_t got = helper->read(part, sizeof(part))) text.append(part, got);
  return text;
}

void say(int pipe, const char* text) {
  if (write(pipe, text, strlen(text)) < 0) _exit(1);
}

TEST(Helper, tells_its_results) {
  auto helper = Helper::start(kLimits, [](int pipe) { say(pipe, "hello"); });
  ASSERT_TRUE(helper.has_value());
  EXPECT_EQ(all_of(&*helper), "hello");
  EXPECT_EQ(helper->end(), "");
}

TEST(Helper, what_was_told_before_a_crash_arrives) {
  auto helper = Helper::start(kLimits, [](int pipe) {
    say(pipe, "first");
    raise(SIGKILL);
  });
  ASSERT_TRUE(helper.has_value());
  EXPECT_EQ(all_of(&*helper), "first");
  EXPECT_THAT(helper->end(), testing::HasSubstr("crashed: signal 9"));
}

TEST(Helper, ends_when_it_wants_more_memory_than_allowed) {
#ifdef AON_TEST_IS_SANITIZED
  GTEST_SKIP() << "the sanitizer's allocator ends the process in its own way";
#endif
  auto helper = Helper::start(kLimits, [](int) {
    std::vector<std::vector<char>> blocks;
    for (;;) blocks.emplace_back(size_t{1} << 20, 'x');
  });
  ASSERT_TRUE(helper.has_value());
  EXPECT_EQ(all_of(&*helper), "");
  EXPECT_EQ(helper->end(), "ran out of memory");
}

TEST(Helper, ends_when_its_time_is_over) {
  auto helper = Helper::start({kLimits.memory_bytes, 1}, [](int pipe) {
    say(pipe, "first");
    for (;;) pause();
  });
  ASSERT_TRUE(helper.has_value());
  EXPECT_EQ(all_of(&*helper), "first");
  EXPECT_EQ(helper->end(), "took longer than 1 s");
}

TEST(Helper, goes_when_nobody_waits_for_it) {
  auto helper = Helper::start(kLimits, [](int) {
    for (;;) pause();
  });
  ASSERT_TRUE(helper.has_value());  // its destructor ends it: the test would hang
}

TEST(Helper, holds_none_of_our_descriptors) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  auto helper = Helper::start(kLimits, [&](int pipe) {
    say(pipe, fcntl(ends[1], F_GETFD) < 0 || ends[1] == pipe ? "closed" : "open");
  });
  ASSERT_TRUE(helper.has_value());
  EXPECT_EQ(all_of(&*helper), "closed");
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace aon::symbols
