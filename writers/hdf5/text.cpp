#include "writers/hdf5/text.h"

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "core/spool/text.h"

namespace aon::writers::hdf5 {

std::string clean_text(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const size_t bytes = text[0] == 0 ? 0 : spool::character_bytes(text);
    if (bytes == 0) {
      clean += '?';
    } else {
      clean.append(text.substr(0, bytes));
    }
    text.remove_prefix(std::max<size_t>(bytes, 1));
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

std::string numbered(const std::string& what, size_t number, size_t count) {
  const size_t digits = std::to_string(count > 0 ? count - 1 : 0).size();
  std::string text = std::to_string(number);
  if (text.size() < digits) text.insert(0, digits - text.size(), '0');
  return what + "_" + text;
}

}  // namespace aon::writers::hdf5
