#include "core/spool/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace aon::spool {
namespace {

constexpr uint32_t kReversedPolynomial = 0x82f63b78u;

constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1u) ? kReversedPolynomial : 0u);
    table[byte] = crc;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kTable = make_table();

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t crc32c_by_instruction(const void* data, size_t bytes) {
  const auto* at = static_cast<const uint8_t*>(data);
  uint64_t crc = 0xffffffffu;
  for (; bytes >= 8; at += 8, bytes -= 8) {
    uint64_t word;
    std::memcpy(&word, at, sizeof(word));
    crc = _mm_crc32_u64(crc, word);
  }
  for (; bytes > 0; ++at, --bytes) crc = _mm_crc32_u8(static_cast<uint32_t>(crc), *at);
  return ~static_cast<uint32_t>(crc);
}
#endif

}  // namespace

uint32_t crc32c_by_table(const void* data, size_t bytes) noexcept {
  const auto* at = static_cast<const uint8_t*>(data);
  uint32_t crc = 0xffffffffu;
  for (size_t i = 0; i < bytes; ++i) crc = (crc >> 8) ^ kTable[(crc ^ at[i]) & 0xffu];
  return ~crc;
}

uint32_t crc32c(const void* data, size_t bytes) noexcept {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return crc32c_by_instruction(data, bytes);
#endif
  return crc32c_by_table(data, bytes);
}

}  // namespace aon::spool
