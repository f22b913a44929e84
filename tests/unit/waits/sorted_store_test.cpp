#include "writers/waits/sorted_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace aon::writers {
namespace {

std::vector<uint64_t> read_all(SortedStore<uint64_t>* store) {
  Result<SortedStore<uint64_t>::Reader> reader = store->read();
  EXPECT_TRUE(reader);
  std::vector<uint64_t> items;
  for (;;) {
    const Result<const uint64_t*> item = reader->next();
    EXPECT_TRUE(item);
    if (!item || *item == nullptr) return items;
    items.push_back(**item);
  }
}

void expect_in_order(size_t memory_bytes, size_t count) {
  SortedStore<uint64_t> store(testing::TempDir(), memory_bytes);
  std::mt19937_64 random(count);
  std::vector<uint64_t> expected;
  for (size_t i = 0; i < count; ++i) {
    expected.push_back(random() % 1000);
    ASSERT_TRUE(store.add(expected.back()));
  }
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(read_all(&store), expected);
  EXPECT_EQ(read_all(&store), expected) << "a second time";
}

TEST(SortedStore, gives_back_in_order) {
  expect_in_order(1 << 20, 0);
  expect_in_order(1 << 20, 5000);
}

TEST(SortedStore, gives_back_what_did_not_fit_in_memory) {
  expect_in_order(0, 50);
  expect_in_order(4096, 512);  // the memory is full exactly
  expect_in_order(4096, 20000);
  expect_in_order(400'000, 200'000);  // runs longer than a buffer
}

TEST(SortedStore, has_a_small_file_of_what_is_alike) {
  SortedStore<uint64_t> store(testing::TempDir(), 400'000);
  for (uint64_t i = 0; i < 200'000; ++i) {
    const uint64_t next = store.next_file_bytes();
    ASSERT_TRUE(store.add(1'000'000'000 + 100 * i));
    ASSERT_EQ(store.file_bytes(), next);
  }
  EXPECT_EQ(store.file_bytes(), 8u * 200'000);
  EXPECT_GT(store.packed_bytes(), 0u);
  EXPECT_LT(store.packed_bytes(), 2u * 200'000);
}

TEST(SortedStore, needs_a_folder_only_for_what_does_not_fit) {
  SortedStore<uint64_t> store("/nowhere", 80);
  for (uint64_t i = 0; i < 9; ++i) ASSERT_TRUE(store.add(i));
  EXPECT_FALSE(store.add(9));
}

/// What comes behind the failure is not sorted and tried again each time.
TEST(SortedStore, refuses_all_after_a_failure) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / ("sorted_store." + std::to_string(getpid()));
  SortedStore<uint64_t> store(folder, 80);
  for (uint64_t i = 0; i < 9; ++i) ASSERT_TRUE(store.add(i));
  const Status first = store.add(9);
  ASSERT_FALSE(first);
  std::filesystem::create_directory(folder);
  const Status later = store.add(10);
  ASSERT_FALSE(later) << "with a folder, too";
  EXPECT_EQ(later.error().message, first.error().message);
  EXPECT_FALSE(store.read());
  std::filesystem::remove(folder);
}

}  // namespace
}  // namespace aon::writers
