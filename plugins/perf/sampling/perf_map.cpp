#include "perf/sampling/perf_map.h"

#include <algorithm>
#include <charconv>
#include <queue>

namespace aon::perf {
namespace {

constexpr size_t kMaxNameBytes = 1024;

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

PerfMap PerfMap::parse(std::string text) {
  PerfMap map;
  map.text_ = std::move(text);
  std::vector<Range> found;
  for (size_t begin = 0; begin < map.text_.size();) {
    const size_t end = std::min(map.text_.find('\n', begin), map.text_.size());
    map.parse_line(begin, end, &found);
    begin = end + 1;
  }
  map.lay_out(std::move(found));
  return map;
}

void PerfMap::parse_line(size_t begin, size_t end, std::vector<Range>* found) {
  std::string_view line(text_.data() + begin, end - begin);
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
  if (line.empty()) return;
  uint64_t address = 0, bytes = 0;
  if (!take_hex(&line, &address) || !take_hex(&line, &bytes) || line.empty() || bytes == 0 ||
      address + bytes < address) {
    ++bad_line_count_;
    return;
  }
  found->push_back(
      {address, address + bytes, static_cast<size_t>(line.data() - text_.data()), line.size()});
}

/// Sweeps over the borders; of the ranges that cover a place, the one written last has it.
void PerfMap::lay_out(std::vector<Range> found) {
  std::vector<uint32_t> by_begin(found.size());
  for (uint32_t i = 0; i < found.size(); ++i) by_begin[i] = i;
  std::stable_sort(by_begin.begin(), by_begin.end(),
                   [&](uint32_t a, uint32_t b) { return found[a].begin < found[b].begin; });
  std::priority_queue<uint32_t> open;  // the last line on top
  uint64_t at = 0;
  const auto advance = [&](uint64_t to) {
    while (!open.empty() && at < to) {
      const Range& top = found[open.top()];
      if (top.end <= at) {
        open.pop();
        continue;
      }
      const uint64_t end = std::min(top.end, to);
      if (!ranges_.empty() && ranges_.back().name_at == top.name_at && ranges_.back().end == at)
        ranges_.back().end = end;
      else
        ranges_.push_back({at, end, top.name_at, top.name_bytes});
      at = end;
    }
    at = to;
  };
  for (const uint32_t number : by_begin) {
    advance(found[number].begin);
    open.push(number);
  }
  advance(~uint64_t{0});
}

const PerfMap::Range* PerfMap::range_of(uint64_t address) const {
  const auto next = std::upper_bound(ranges_.begin(), ranges_.end(), address,
                                     [](uint64_t a, const Range& r) { return a < r.begin; });
  if (next == ranges_.begin() || address >= (next - 1)->end) return nullptr;
  return &*(next - 1);
}

std::string_view PerfMap::find(uint64_t address) const {
  const Range* range = range_of(address);
  if (range == nullptr) return {};
  return std::string_view(text_).substr(range->name_at, range->name_bytes);
}

std::vector<PerfMap::Symbol> PerfMap::find_all(std::vector<uint64_t> addresses) const {
  std::sort(addresses.begin(), addresses.end());
  std::vector<Symbol> symbols;
  const Range* last = nullptr;
  for (const uint64_t address : addresses) {
    const Range* range = range_of(address);
    if (range == nullptr || range == last) continue;
    last = range;
    symbols.push_back({range->begin, range->end,
                       text_.substr(range->name_at, std::min(range->name_bytes, kMaxNameBytes))});
  }
  return symbols;
}

}  // namespace aon::perf
