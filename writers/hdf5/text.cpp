#include "writers/hdf5/text.h"

#include <cstdio>
#include <ctime>

namespace aon::writers::hdf5 {
namespace {

/// Bytes of the UTF-8 sequence that starts at text[i], or 0 when it is not one.
size_t sequence_bytes(std::string_view text, size_t i) {
  const auto byte = [&](size_t k) { return static_cast<unsigned char>(text[k]); };
  const unsigned char first = byte(i);
  if (first < 0x80) return first == 0 ? 0 : 1;
  const size_t length = first >= 0xc2 && first < 0xe0   ? 2
                        : first >= 0xe0 && first < 0xf0 ? 3
                        : first >= 0xf0 && first < 0xf5 ? 4
                                                        : 0;
  if (length == 0 || i + length > text.size()) return 0;
  for (size_t k = i + 1; k < i + length; ++k) {
    if ((byte(k) & 0xc0) != 0x80) return 0;
  }
  return length;
}

}  // namespace

std::string clean_text(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t bytes = sequence_bytes(text, i);
    if (bytes == 0) {
      clean += '?';
      ++i;
    } else {
      clean.append(text.substr(i, bytes));
      i += bytes;
    }
  }
  return clean;
}

std::string object_name(std::string_view text) {
  std::string name = clean_text(text);
  for (char& c : name) {
    if (c == '/' || c == ' ' || static_cast<unsigned char>(c) < 0x20) c = '_';
  }
  return name.empty() || name == "." || name == "time" ? "_" + name : name;
}

std::string iso_time(uint64_t time_ns) {
  const time_t seconds = static_cast<time_t>(time_ns / 1'000'000'000u);
  tm utc{};
  gmtime_r(&seconds, &utc);
  char text[40];
  const size_t bytes = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc);
  snprintf(text + bytes, sizeof(text) - bytes, ".%09uZ",
           static_cast<unsigned>(time_ns % 1'000'000'000u));
  return text;
}

std::string numbered(const std::string& what, size_t number, size_t count) {
  const size_t digits = std::to_string(count > 0 ? count - 1 : 0).size();
  std::string text = std::to_string(number);
  if (text.size() < digits) text.insert(0, digits - text.size(), '0');
  return what + "_" + text;
}

}  // namespace aon::writers::hdf5
