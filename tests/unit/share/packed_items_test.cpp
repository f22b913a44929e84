#include "writers/share/packed_items.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <random>

#include "core/base/unique_fd.h"
#include "writers/share/room.h"

namespace aon::writers::share {
namespace {

struct Item {
  uint64_t key;
  uint64_t time_ns;
  uint32_t place;
  uint16_t kind;
  bool operator==(const Item&) const = default;
};

std::vector<Item> made(size_t count, uint64_t mask) {
  std::mt19937_64 random(count);
  std::vector<Item> items;
  for (size_t i = 0; i < count; ++i) {
    items.push_back({random() & mask, random() & mask, static_cast<uint32_t>(random() & mask),
                     static_cast<uint16_t>(random() & mask)});
  }
  return items;
}

std::vector<char> packed(const std::vector<Item>& items) {
  std::vector<char> bytes;
  ItemPacker<Item>::pack(items, &bytes);
  EXPECT_LE(bytes.size(), ItemPacker<Item>::max_bytes(items.size()));
  return bytes;
}

bool unpack(const std::vector<char>& bytes, size_t byte_count, std::vector<Item>* items) {
  std::vector<char> with_slack(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(byte_count));
  with_slack.resize(byte_count + kPackedSlackBytes, '\xff');
  return ItemPacker<Item>::unpack({with_slack.data(), byte_count}, *items);
}

TEST(PackedItems, are_as_before) {
  for (const size_t count : {0, 1, 2, 3, 1000}) {
    for (const uint64_t mask : {~uint64_t{0}, uint64_t{0xffff'ffff}, uint64_t{0xff}, uint64_t{0}}) {
      const std::vector<Item> items = made(count, mask);
      const std::vector<char> bytes = packed(items);
      std::vector<Item> read(count);
      ASSERT_TRUE(unpack(bytes, bytes.size(), &read));
      EXPECT_EQ(read, items) << count << " items of " << mask;
    }
  }
}

TEST(PackedItems, in_order_take_a_quarter) {
  std::vector<Item> items;
  for (uint64_t i = 0; i < 1000; ++i) items.push_back({i / 100, 5'000'000'000 + 7000 * i, 3, 1});
  EXPECT_LT(4 * packed(items).size(), items.size() * sizeof(Item));
}

TEST(PackedItems, are_refused_where_bytes_lack_or_are_too_many) {
  const std::vector<Item> items = made(50, ~uint64_t{0});
  const std::vector<char> bytes = packed(items);
  for (size_t byte_count = 0; byte_count < bytes.size(); ++byte_count) {
    std::vector<Item> read(items.size());
    ASSERT_FALSE(unpack(bytes, byte_count, &read)) << byte_count;
  }
  std::vector<Item> fewer(items.size() - 1);
  EXPECT_FALSE(unpack(bytes, bytes.size(), &fewer));
}

/// Lengths above 8, and what they point at.
TEST(PackedItems, of_any_bytes_do_no_harm) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<char> bytes(random() % 300);
    for (char& byte : bytes) byte = static_cast<char>(random() & 0x8f);
    std::vector<Item> read(random() % 10);
    (void)unpack(bytes, bytes.size(), &read);
  }
}

TEST(Room, is_refused_before_the_disk_is_full) {
  const UniqueFd folder(open(testing::TempDir().c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_TRUE(check_room(folder.get(), 0));
  struct statvfs status {};
  ASSERT_EQ(fstatvfs(folder.get(), &status), 0);
  EXPECT_FALSE(check_room(folder.get(), status.f_blocks * status.f_frsize));
  EXPECT_TRUE(check_room(-1, 1)) << "where it is not known";
}

}  // namespace
}  // namespace aon::writers::share
