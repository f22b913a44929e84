// plugins/mpi/handle_map.h: look-ups, removal, growth, and readers beside a writer.
#include "plugins/mpi/handle_map.h"

#include <gtest/gtest.h>

#include <fstream>
#include <thread>

namespace aon::mpi {
namespace {

void* value_of(Handle handle) { return reinterpret_cast<void*>(handle * 2); }

TEST(HandleMap, finds_what_was_put_and_not_what_was_taken) {
  static SharedHandleMap map;
  EXPECT_EQ(map.find(64), nullptr);
  for (Handle h = 64; h < 64 + 5000 * 16; h += 16) ASSERT_TRUE(map.put(h, value_of(h)));
  for (Handle h = 64; h < 64 + 5000 * 16; h += 32) EXPECT_EQ(map.take(h), value_of(h));
  for (Handle h = 64; h < 64 + 5000 * 16; h += 16) {
    EXPECT_EQ(map.find(h), (h - 64) % 32 == 0 ? nullptr : value_of(h));
  }
  EXPECT_EQ(map.take(64), nullptr);
}

TEST(HandleMap, a_handle_that_comes_back_has_its_new_value) {
  static SharedHandleMap map;
  for (Handle round = 1; round < 10'000; ++round) {
    ASSERT_TRUE(map.put(4096, value_of(round)));
    ASSERT_EQ(map.find(4096), value_of(round));
    ASSERT_EQ(map.take(4096), value_of(round));
    ASSERT_EQ(map.find(4096), nullptr);
  }
}

/// ThreadSanitizer maps shadows for what the map touches.
#ifdef __has_feature
constexpr bool kMapsShadows = __has_feature(thread_sanitizer);
#else
constexpr bool kMapsShadows = false;
#endif

uint64_t mapped_pages() {
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages;
}

/// Handles that never come back, as addresses do not.
TEST(HandleMap, what_was_taken_leaves_room) {
  static SharedHandleMap map;
  for (Handle h = 16; h <= 640; h += 16) ASSERT_TRUE(map.put(h, value_of(h)));
  const uint64_t before = mapped_pages();
  for (Handle h = 1; h < 300'000; ++h) {
    const Handle key = 4096 + h * 48;
    ASSERT_TRUE(map.put(key, value_of(key)));
    ASSERT_EQ(map.find(key), value_of(key));
    ASSERT_EQ(map.take(key), value_of(key));
    ASSERT_EQ(map.find(key), nullptr);
  }
  for (Handle h = 16; h <= 640; h += 16) ASSERT_EQ(map.find(h), value_of(h));
  EXPECT_LT(mapped_pages() - before, kMapsShadows ? 4096u : 32u);
}

/// As communicators are that a program makes and frees by turns.
TEST(HandleMap, as_many_as_there_were_before_take_no_more_memory) {
  static SharedHandleMap map;
  constexpr Handle kFew = 60;
  constexpr Handle kMany = 100;
  for (Handle h = 1; h <= kFew; ++h) ASSERT_TRUE(map.put(h * 16, value_of(h)));
  Handle key = 4096;
  uint64_t before = 0;
  for (int round = 0; round < 1000; ++round) {
    if (round == 100) before = mapped_pages();
    for (Handle h = kFew + 1; round % 2 == 0 && h <= kMany; ++h) map.put(h * 16, value_of(h));
    for (int i = 0; i < 4000; ++i, key += 48) {
      ASSERT_TRUE(map.put(key, value_of(key)));
      ASSERT_EQ(map.take(key), value_of(key));
    }
    for (Handle h = kFew + 1; round % 2 == 0 && h <= kMany; ++h) map.take(h * 16);
  }
  EXPECT_LT(mapped_pages() - before, kMapsShadows ? 4096u : 32u);
}

TEST(HandleMap, readers_always_find_what_stays) {
  static SharedHandleMap map;
  for (Handle h = 16; h <= 160; h += 16) map.put(h, value_of(h));
  std::atomic<bool> stops{false};
  std::thread reader([&] {
    while (!stops.load(std::memory_order_relaxed)) {
      for (Handle h = 16; h <= 160; h += 16) ASSERT_EQ(map.find(h), value_of(h));
    }
  });
  for (Handle h = 1600; h < 1600 + 20'000 * 16; h += 16) {
    map.put(h, value_of(h));
    if (h % 3 == 0) map.take(h);
  }
  stops.store(true, std::memory_order_relaxed);
  reader.join();
}

}  // namespace
}  // namespace aon::mpi
