#include "node/text.h"

#include <charconv>

namespace aon::node {
namespace {

constexpr std::string_view kSpaces = " \t\r\n";
constexpr size_t kMaxCpus = 65536;

}  // namespace

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
}

std::optional<uint64_t> number_in(std::string_view text) {
  text = trimmed(text);
  const bool is_hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  if (is_hexadecimal) text.remove_prefix(2);
  uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, is_hexadecimal ? 16 : 10);
  if (error != std::errc()) return std::nullopt;
  return value;
}

std::optional<double> fraction_in(std::string_view text) {
  text = trimmed(text);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

std::optional<std::string_view> line_of(std::string_view text, std::string_view key) {
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    if (line.starts_with(key)) {
      line.remove_prefix(key.size());
      if (!line.empty() && (line[0] == ':' || line[0] == ' ' || line[0] == '\t')) {
        return trimmed(line[0] == ':' ? line.substr(1) : line);
      }
    }
    begin = end + 1;
  }
  return std::nullopt;
}

std::optional<uint64_t> field_of(std::string_view text, std::string_view key) {
  const auto line = line_of(text, key);
  if (!line) return std::nullopt;
  return number_in(*line);
}

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  while ((begin = text.find_first_not_of(separators, begin)) != std::string_view::npos) {
    const size_t end = std::min(text.find_first_of(separators, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return parts;
}

std::vector<int> cpus_in(std::string_view text) {
  std::vector<int> cpus;
  for (const std::string_view part : split(trimmed(text), ",")) {
    const auto first = number_in(part);
    if (!first) return {};
    const size_t dash = part.find('-');
    const auto last = dash == std::string_view::npos ? first : number_in(part.substr(dash + 1));
    if (!last || *last < *first || *last >= kMaxCpus) return {};
    for (uint64_t cpu = *first; cpu <= *last; ++cpu) cpus.push_back(static_cast<int>(cpu));
  }
  return cpus;
}

}  // namespace aon::node
