#include "plugins/cupti/pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace aon::cupti {
namespace {

TEST(Pool, gives_no_more_than_its_cap) {
  static BufferPool pool;  // as the one of a process its memory is never given back
  ASSERT_TRUE(pool.start(3));
  std::vector<uint8_t*> taken;
  for (int i = 0; i < 3; ++i) taken.push_back(pool.take(1));
  EXPECT_EQ(std::count(taken.begin(), taken.end(), nullptr), 0);
  EXPECT_EQ(pool.take(1), nullptr);
  std::sort(taken.begin(), taken.end());
  EXPECT_EQ(std::unique(taken.begin(), taken.end()), taken.end());
}

TEST(Pool, buffers_come_out_in_the_order_of_their_completion) {
  static BufferPool pool;  // as the one of a process its memory is never given back
  ASSERT_TRUE(pool.start(4));
  uint8_t* buffers[4];
  for (uint8_t*& buffer : buffers) buffer = pool.take(1);
  for (const int i : {2, 0, 3})
    ASSERT_TRUE(pool.complete(buffers[i], 100u + static_cast<size_t>(i)));
  EXPECT_EQ(pool.next().bytes, buffers[2]);
  ASSERT_TRUE(pool.complete(buffers[1], 101));
  EXPECT_EQ(pool.next().bytes, buffers[0]);
  EXPECT_EQ(pool.next().valid_bytes, 103u);
  EXPECT_EQ(pool.next().bytes, buffers[1]);
  EXPECT_EQ(pool.next().bytes, nullptr);
}

TEST(Pool, a_buffer_that_was_read_is_zero_again) {
  static BufferPool pool;  // as the one of a process its memory is never given back
  ASSERT_TRUE(pool.start(1));
  uint8_t* buffer = pool.take(1);
  memset(buffer, 0xab, 5000);
  ASSERT_TRUE(pool.complete(buffer, 5000));
  pool.give_back(pool.next());
  ASSERT_EQ(pool.take(1), buffer);
  EXPECT_TRUE(std::all_of(buffer, buffer + 5000, [](uint8_t b) { return b == 0; }));
}

TEST(Pool, what_is_no_buffer_of_its_own_is_not_read) {
  static BufferPool pool;  // as the one of a process its memory is never given back
  ASSERT_TRUE(pool.start(2));
  uint8_t foreign[16];
  EXPECT_FALSE(pool.complete(foreign, 16));
  EXPECT_FALSE(pool.complete(pool.discard_buffer(), 16));
  EXPECT_FALSE(pool.complete(pool.take(1) + 8, 16));
  EXPECT_EQ(pool.next().bytes, nullptr);
}

TEST(Pool, a_buffer_that_another_client_frees_is_gone_and_nothing_else) {
  static BufferPool pool;  // as the one of a process its memory is never given back
  ASSERT_TRUE(pool.start(2));
  free(pool.take(1));
  uint8_t* other = pool.take(1);
  ASSERT_TRUE(pool.complete(other, 100));
  pool.give_back(pool.next());
  EXPECT_EQ(pool.take(1), other);
  EXPECT_EQ(pool.take(1), nullptr);
}

TEST(Pool, what_is_thrown_away_does_not_go_into_one_buffer_twice_in_a_row) {
  static BufferPool pool;  // as the one of a process its memory is never given back
  ASSERT_TRUE(pool.start(1));
  EXPECT_NE(pool.discard_buffer(), pool.discard_buffer());
}

TEST(Pool, no_buffer_is_lost_between_threads) {
  constexpr int kThreads = 4, kRounds = 2000;
  static BufferPool pool;  // as the one of a process its memory is never given back
  ASSERT_TRUE(pool.start(8));
  std::vector<std::thread> writers;
  for (int t = 0; t < kThreads; ++t) {
    writers.emplace_back([&] {
      for (int i = 0; i < kRounds; ++i) {
        uint8_t* buffer = nullptr;
        while ((buffer = pool.take(1)) == nullptr) std::this_thread::yield();
        memcpy(buffer, &i, sizeof i);
        pool.complete(buffer, sizeof i);
      }
    });
  }
  int seen = 0;
  while (seen < kThreads * kRounds) {
    const FilledBuffer buffer = pool.next();
    if (buffer.bytes == nullptr) continue;
    ++seen;
    pool.give_back(buffer);
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(pool.queued_count(), 0u);
  int free_count = 0;
  while (pool.take(1) != nullptr) ++free_count;
  EXPECT_EQ(free_count, 8);
}

TEST(Pool, knows_since_when_records_are_kept_back) {
  static BufferPool pool;  // as the one of a process its memory is never given back
  ASSERT_TRUE(pool.start(3));
  uint8_t* first = pool.take(100);
  uint8_t* second = pool.take(200);
  second[0] = 10;
  EXPECT_EQ(pool.kept_since_ns(1000), 200u);
  first[0] = 5;
  EXPECT_EQ(pool.kept_since_ns(1500), 200u) << "the first one was empty at 1000";
  pool.complete(second, 8);
  EXPECT_EQ(pool.kept_since_ns(1500), 1000u);
  pool.complete(first, 8);
  EXPECT_EQ(pool.kept_since_ns(1500), 1500u);
  pool.give_back(pool.next());
  EXPECT_EQ(pool.take(1600), second);
  second[0] = 10;
  EXPECT_EQ(pool.kept_since_ns(2000), 1600u);
}

TEST(Pool, a_buffer_that_another_client_freed_is_not_read) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer keeps what was freed";
#endif
  static BufferPool pool;  // as the one of a process its memory is never given back
  ASSERT_TRUE(pool.start(1));
  uint8_t* buffer = pool.take(100);
  buffer[0] = 1;
  free(buffer);  // a MiB goes back to the system at once
  EXPECT_EQ(pool.kept_since_ns(1000), 1000u);
}

}  // namespace
}  // namespace aon::cupti
