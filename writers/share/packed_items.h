/// Items of one type in a quarter of their room, for temporary files: of each 64-bit word its
/// difference to that of the item before, in as many bytes as it has, and half a byte for how many
/// these are. In items that are in order most words are as before, or a time a little later.
///
///     lengths   4 bits a word, in the order of the words; an item's last word is filled up
///     words     zigzag of the difference, its low bytes
///
/// Thread: any.   Cost: some 2 ns a word either way.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

namespace aon::writers::share {

/// Behind packed bytes so many may be read, whatever they are.
constexpr size_t kPackedSlackBytes = 8;

template <class Item>
class ItemPacker {
  static_assert(std::is_trivially_copyable_v<Item>);
  static_assert(std::endian::native == std::endian::little);

 public:
  /// Of `count` items, at most.
  static constexpr size_t max_bytes(size_t count) {
    return length_bytes(count) + 8 * kWords * count;
  }

  /// Appends them to `out`.
  static void pack(std::span<const Item> items, std::vector<char>* out) {
    const size_t begin = out->size();
    out->resize(begin + max_bytes(items.size()) + kPackedSlackBytes);
    char* const lengths = out->data() + begin;
    char* to = lengths + length_bytes(items.size());
    Words before{};
    size_t index = 0;
    for (const Item& item : items) {
      Words words{};
      std::memcpy(words.data(), &item, sizeof(Item));
      for (size_t i = 0; i < kWords; ++i, ++index) {
        const uint64_t value = zigzag(words[i] - before[i]);
        const auto byte_count = static_cast<unsigned>(71 - std::countl_zero(value)) / 8;
        std::memcpy(to, &value, sizeof value);
        to += byte_count;
        lengths[index / 2] = static_cast<char>(
            index % 2 == 0 ? byte_count
                           : static_cast<uint8_t>(lengths[index / 2]) | byte_count << 4);
      }
      before = words;
    }
    out->resize(static_cast<size_t>(to - out->data()));
  }

  /// All of `items` from `bytes`, behind which kPackedSlackBytes may be read. False: damaged.
  static bool unpack(std::span<const char> bytes, std::span<Item> items) {
    const size_t head = length_bytes(items.size());
    if (bytes.size() < head) return false;
    const char* from = bytes.data() + head;
    const char* const end = bytes.data() + bytes.size();
    Words words{};
    size_t index = 0;
    for (Item& item : items) {
      for (size_t i = 0; i < kWords; ++i, ++index) {
        const auto both = static_cast<uint8_t>(bytes[index / 2]);
        const unsigned byte_count = index % 2 == 0 ? both & 15 : both >> 4;
        if (byte_count > 8 || end - from < static_cast<ptrdiff_t>(byte_count)) return false;
        uint64_t value = 0;
        std::memcpy(&value, from, sizeof value);
        from += byte_count;
        words[i] += unzigzag(value & kMasks[byte_count]);
      }
      std::memcpy(static_cast<void*>(&item), words.data(), sizeof(Item));
    }
    return from == end;
  }

 private:
  static constexpr size_t kWords = (sizeof(Item) + 7) / 8;
  using Words = std::array<uint64_t, kWords>;

  /// Of the low bytes of a word, by how many.
  static constexpr std::array<uint64_t, 9> kMasks = {
      0,           0xff,           0xffff,           0xff'ffff,
      0xffff'ffff, 0xff'ffff'ffff, 0xffff'ffff'ffff, ~uint64_t{0} >> 8,
      ~uint64_t{0}};

  static constexpr size_t length_bytes(size_t count) { return (kWords * count + 1) / 2; }
  static constexpr uint64_t zigzag(uint64_t difference) {
    return difference << 1 ^ (0 - (difference >> 63));
  }
  static constexpr uint64_t unzigzag(uint64_t value) { return value >> 1 ^ (0 - (value & 1)); }
};

}  // namespace aon::writers::share
