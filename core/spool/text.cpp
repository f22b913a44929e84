#include "core/spool/text.h"

#include <cstdint>

namespace aon::spool {

size_t character_bytes(std::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  size_t bytes = 0;
  uint8_t low = 0x80;
  uint8_t high = 0xbf;
  if (lead >= 0xc2 && lead <= 0xdf) {
    bytes = 2;
  } else if (lead >= 0xe0 && lead <= 0xef) {
    bytes = 3;
    if (lead == 0xe0) low = 0xa0;
    if (lead == 0xed) high = 0x9f;
  } else if (lead >= 0xf0 && lead <= 0xf4) {
    bytes = 4;
    if (lead == 0xf0) low = 0x90;
    if (lead == 0xf4) high = 0x8f;
  }
  if (bytes == 0 || text.size() < bytes) return 0;
  if (byte(1) < low || byte(1) > high) return 0;
  for (size_t i = 2; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  return bytes;
}

std::string clean_text(std::string_view text) {
  std::string clean;
  while (!text.empty()) {
    const size_t bytes = character_bytes(text);
    const size_t taken = bytes == 0 ? 1 : bytes;
    if (clean.size() + taken > kMaxTextBytes) break;
    const bool is_control = bytes == 1 && (static_cast<uint8_t>(text[0]) < 0x20 || text[0] == 0x7f);
    if (bytes == 0 || is_control) {
      clean.push_back('?');
    } else {
      clean.append(text.substr(0, bytes));
    }
    text.remove_prefix(taken);
  }
  return clean;
}

std::string listed_ranks(const std::vector<uint32_t>& ranks) {
  std::string text;
  for (size_t i = 0; i < ranks.size();) {
    size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    text += (text.empty() ? "" : ",") + std::to_string(ranks[i]);
    if (end - i > 1) text += "-" + std::to_string(ranks[end - 1]);
    i = end;
  }
  return text;
}

}  // namespace aon::spool
