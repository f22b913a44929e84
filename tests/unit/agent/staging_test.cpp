#include "core/agent/staging.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace aon::agent {
namespace {

constexpr uint64_t kCapacityBytes = 64 << 10;

class StagingTest : public testing::Test {
 protected:
  void SetUp() override {
    auto fd = Staging::create(kCapacityBytes);
    ASSERT_TRUE(fd);
    fd_ = std::move(*fd);
    auto staging = Staging::map(fd_.get(), kCapacityBytes);
    ASSERT_TRUE(staging);
    staging_ = *staging;
  }
  /// Adds an entry of `bytes` records with the value `fill`; false when full.
  bool add(uint32_t bytes, uint8_t fill) {
    StagingEntry* entry = staging_.reserve(head_, tail_, bytes);
    if (entry == nullptr) return false;
    entry->stream = fill;
    std::memset(Staging::records_of(entry), fill, bytes);
    head_ += Staging::seal(entry, bytes);
    return true;
  }

  UniqueFd fd_;
  Staging staging_;
  uint64_t head_ = 0;
  uint64_t tail_ = 0;
};

TEST_F(StagingTest, keeps_entries_whole_across_the_end_of_the_memory) {
  for (uint32_t i = 0; i < 1000; ++i) {
    ASSERT_TRUE(add(32 * (i % 126 + 1), static_cast<uint8_t>(i)));
    const StagingEntry* entry = staging_.entry(tail_);
    ASSERT_EQ(entry->record_bytes, 32 * (i % 126 + 1));
    const auto* bytes = reinterpret_cast<const uint8_t*>(entry + 1);
    for (uint32_t k = 0; k < entry->record_bytes; ++k) ASSERT_EQ(bytes[k], i % 256);
    tail_ += entry->entry_bytes;
  }
  EXPECT_EQ(head_, tail_);
}

TEST_F(StagingTest, refuses_what_would_overwrite_the_unread_part) {
  uint32_t count = 0;
  while (add(4032, 1)) ++count;
  EXPECT_GE(count, kCapacityBytes / kMaxEntryBytes - 1);
  EXPECT_LE(head_ - tail_, kCapacityBytes);
  tail_ += staging_.entry(tail_)->entry_bytes;
  EXPECT_TRUE(add(4032, 2));
}

TEST_F(StagingTest, finds_the_last_entry_from_the_head) {
  EXPECT_EQ(staging_.last_entry(0), nullptr);
  for (uint32_t i = 1; i < 200; ++i) {
    ASSERT_TRUE(add(32 * i % 4000 + 32, static_cast<uint8_t>(i)));
    ASSERT_EQ(staging_.last_entry(head_)->stream, i % 256);
    tail_ = head_;
  }
}

TEST_F(StagingTest, is_the_same_memory_for_the_next_worker) {
  ASSERT_TRUE(add(64, 9));
  auto other = Staging::map(fd_.get(), kCapacityBytes);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->entry(0)->stream, 9u);
  EXPECT_EQ(other->last_entry(head_)->stream, 9u);
}

}  // namespace
}  // namespace aon::agent
