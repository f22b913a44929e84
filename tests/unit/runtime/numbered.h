/// Records that prove themselves: each holds its number and words computed from it, so a reader can
/// tell a torn, missing, doubled or reordered one.
#pragma once

#include <aon/record.h>
#include <aon/writer.h>

#include <cstdint>

namespace aon::test {

constexpr uint64_t mix(uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdull;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ull;
  return x ^ (x >> 33);
}

/// One to three slots by number, so that chunks end in every way.
constexpr uint32_t numbered_word_count(uint64_t number) {
  constexpr uint32_t kWords[] = {2, 0, 2, 5};
  return kWords[number % 4];
}
constexpr uint64_t numbered_word(uint32_t thread, uint64_t number, uint32_t index) {
  return mix(number * 64 + thread * 16 + index + 1);
}

template <uint32_t kWords>
[[gnu::always_inline]] inline bool put_numbered_words(Writer* w, uint32_t thread, uint64_t number) {
  uint64_t words[kWords + 1];
  for (uint32_t i = 0; i < kWords; ++i) words[i] = numbered_word(thread, number, i);
  return put_event<kWords>(w, RecordKind::kMark, ticks(w), 0, thread, 0, number, words);
}

/// Writes record `number` of `thread`. False: refused.
[[gnu::always_inline]] inline bool put_numbered(Writer* w, uint32_t thread, uint64_t number) {
  switch (numbered_word_count(number)) {
    case 0:
      return put_numbered_words<0>(w, thread, number);
    case 2:
      return put_numbered_words<2>(w, thread, number);
    default:
      return put_numbered_words<5>(w, thread, number);
  }
}

/// True when `record` is what put_numbered() wrote.
inline bool is_whole(const Record& record) {
  const uint32_t word_count = numbered_word_count(record.head.a64);
  if (record.head.kind != RecordKind::kMark || record.head.slot_count != 1 + (word_count + 3) / 4) {
    return false;
  }
  for (uint32_t i = 0; i < word_count; ++i) {
    if (record.words[i] != numbered_word(record.head.id, record.head.a64, i)) return false;
  }
  return true;
}

}  // namespace aon::test
