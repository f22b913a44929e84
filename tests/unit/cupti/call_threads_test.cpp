#include "plugins/cupti/call_threads.h"

#include <gtest/gtest.h>

namespace aon::cupti {
namespace {

TEST(CallThreads, knows_the_thread_of_a_call) {
  CallThreads threads;
  threads.note(7, 1234);
  EXPECT_EQ(threads.thread_of(7), 1234u);
  EXPECT_EQ(threads.thread_of(8), 0u);
}

TEST(CallThreads, knows_when_the_record_of_a_call_begins) {
  CallThreads threads;
  threads.note(7, 1234, 99);
  ASSERT_NE(threads.find(7), nullptr);
  EXPECT_EQ(threads.find(7)->start_ticks, 99u);
  EXPECT_EQ(threads.find(8), nullptr);
  EXPECT_EQ(threads.find(7 + CallThreads::kEntries), nullptr);
}

TEST(CallThreads, a_call_without_a_number_is_of_no_wait) {
  CallThreads threads;
  threads.note(0, 1234);
  EXPECT_EQ(threads.thread_of(0), 0u);
}

TEST(CallThreads, a_younger_call_takes_the_place_and_is_not_mistaken) {
  CallThreads threads;
  threads.note(7, 1);
  threads.note(7 + CallThreads::kEntries, 2);
  EXPECT_EQ(threads.thread_of(7), 0u);
  EXPECT_EQ(threads.thread_of(7 + CallThreads::kEntries), 2u);
}

TEST(CallThreads, tell_how_many_threads_share_the_calls) {
  CallThreads threads;
  EXPECT_DOUBLE_EQ(threads.take_width(), 1);
  for (uint32_t i = 0; i < 800; ++i) threads.note(i, 1000 + i % 8);
  EXPECT_DOUBLE_EQ(threads.take_width(), 8);
  EXPECT_DOUBLE_EQ(threads.take_width(), 8) << "nothing new";
  for (uint32_t i = 0; i < 1000; ++i) threads.note(i, 7);
  for (uint32_t thread = 100; thread < 132; ++thread) threads.note(1, thread);
  EXPECT_NEAR(threads.take_width(), 1, 0.04) << "one launches, 32 hardly do";
}

}  // namespace
}  // namespace aon::cupti
