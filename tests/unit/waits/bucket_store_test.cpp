#include "writers/waits/bucket_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

namespace aon::writers {
namespace {

std::vector<uint64_t> sorted(std::vector<uint64_t> items) {
  std::sort(items.begin(), items.end());
  return items;
}

/// Puts 0 .. count - 1 into three buckets by remainder and takes them out.
void expect_all_come_back(uint64_t memory_bytes, uint64_t count) {
  BucketStore<uint64_t> store(testing::TempDir(), 3, memory_bytes);
  for (uint64_t i = 0; i < count; ++i) ASSERT_TRUE(store.add(i % 3, i));
  EXPECT_EQ(store.item_count(), count);
  for (uint64_t bucket = 0; bucket < 3; ++bucket) {
    std::vector<uint64_t> expected;
    for (uint64_t i = bucket; i < count; i += 3) expected.push_back(i);
    const Result<std::vector<uint64_t>> taken = store.take(bucket);
    ASSERT_TRUE(taken);
    EXPECT_EQ(sorted(*taken), expected);
    EXPECT_TRUE(store.take(bucket)->empty());
  }
}

TEST(BucketStore, gives_back_what_it_got) {
  expect_all_come_back(1 << 20, 10);
  expect_all_come_back(1 << 20, 20000);
}

TEST(BucketStore, gives_back_what_did_not_fit_in_memory) {
  expect_all_come_back(0, 20000);
  expect_all_come_back(16384, 20000);
}

TEST(BucketStore, needs_a_folder_only_for_what_does_not_fit) {
  BucketStore<uint64_t> store("/nowhere", 1, 0);
  Status status;
  for (uint64_t i = 0; i < 255; ++i) ASSERT_TRUE(store.add(0, i));
  EXPECT_FALSE(store.add(0, 255));
}

}  // namespace
}  // namespace aon::writers
