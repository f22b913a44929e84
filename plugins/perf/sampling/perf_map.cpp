#include "perf/sampling/perf_map.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

namespace aon::perf {
namespace {

constexpr size_t kMaxNameBytes = 1024;
constexpr size_t kMaxLineBytes = kMaxNameBytes + 64;  ///< of which is kept

/// Takes a hexadecimal number and the spaces behind it off `text`; false when there is none.
bool take_hex(std::string_view* text, uint64_t* value) {
  if (text->starts_with("0x") || text->starts_with("0X")) text->remove_prefix(2);
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), *value, 16);
  const auto digits = static_cast<size_t>(end - text->data());
  if (error != std::errc() || digits == text->size() || (*text)[digits] != ' ') return false;
  text->remove_prefix(std::min(text->find_first_not_of(' ', digits), text->size()));
  return true;
}

}  // namespace

PerfMap::PerfMap(std::vector<uint64_t> addresses) : wanted_(std::move(addresses)) {
  std::sort(wanted_.begin(), wanted_.end());
}

void PerfMap::add(std::string_view piece) {
  while (!piece.empty()) {
    const size_t end = piece.find('\n');
    line_ += piece.substr(0, std::min(end, kMaxLineBytes - line_.size()));
    if (end == std::string_view::npos) return;
    take_line();
    piece.remove_prefix(end + 1);
  }
}

void PerfMap::finish() { take_line(); }

void PerfMap::take_line() {
  std::string_view line = line_;
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
  uint64_t address = 0, bytes = 0;
  const bool is_empty = line.empty();
  if (!is_empty && take_hex(&line, &address) && take_hex(&line, &bytes) && !line.empty() &&
      bytes != 0 && address + bytes >= address)
    put(address, address + bytes, line.substr(0, kMaxNameBytes));
  else if (!is_empty)
    ++bad_line_count_;
  line_.clear();
}

/// Of what it overlaps the parts beside it stay.
void PerfMap::put(uint64_t begin, uint64_t end, std::string_view name) {
  auto at = ranges_.lower_bound(begin);
  if (at != ranges_.begin() && std::prev(at)->second.end > begin) --at;
  while (at != ranges_.end() && at->first < end) {
    const uint64_t old_begin = at->first;
    const Range old = std::move(at->second);
    at = ranges_.erase(at);
    keep(old_begin, begin, old.name);
    keep(end, old.end, old.name);
  }
  keep(begin, end, name);
}

void PerfMap::keep(uint64_t begin, uint64_t end, std::string_view name) {
  const auto hit = std::lower_bound(wanted_.begin(), wanted_.end(), begin);
  if (begin < end && hit != wanted_.end() && *hit < end)
    ranges_.insert_or_assign(begin, Range{end, std::string(name)});
}

std::string_view PerfMap::find(uint64_t address) const {
  const auto next = ranges_.upper_bound(address);
  if (next == ranges_.begin() || address >= std::prev(next)->second.end) return {};
  return std::prev(next)->second.name;
}

std::vector<PerfMap::Symbol> PerfMap::symbols() const {
  std::vector<Symbol> symbols;
  for (const auto& [begin, range] : ranges_) symbols.push_back({begin, range.end, range.name});
  return symbols;
}

}  // namespace aon::perf
