/// Short names for long texts. Thread: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace aon {

/// 16 hex digits that depend on `text`.   Source: FNV-1a, 64 bit; names need no more.
inline std::string name_hash(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  constexpr char kDigits[] = "0123456789abcdef";
  std::string name(16, '0');
  for (size_t place = name.size(); place-- > 0; hash >>= 4) name[place] = kDigits[hash & 15];
  return name;
}

}  // namespace aon
