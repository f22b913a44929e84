#include "perf/sampling/jit_map.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>

namespace aon::perf {
namespace {

constexpr size_t kMaxNameBytes = 1024;  ///< longer ones are cut

/// A hexadecimal number and the space behind it, off the front of `line`.
bool take_number(std::string_view* line, uint64_t* number) {
  if (line->starts_with("0x")) line->remove_prefix(2);
  const auto [end, error] = std::from_chars(line->data(), line->data() + line->size(), *number, 16);
  const auto length = static_cast<size_t>(end - line->data());
  if (error != std::errc() || length >= line->size() || (*line)[length] != ' ') return false;
  line->remove_prefix(length + 1);
  return true;
}

bool is_hit(const std::vector<uint64_t>& sorted, uint64_t start, uint64_t end) {
  const auto at = std::lower_bound(sorted.begin(), sorted.end(), start);
  return at != sorted.end() && *at < end;
}

}  // namespace

std::vector<JitSymbol> find_jit_symbols(const std::string& map, std::vector<uint64_t> addresses) {
  std::sort(addresses.begin(), addresses.end());
  std::map<uint64_t, JitSymbol> found;
  for (std::string_view rest = map; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    uint64_t start = 0;
    uint64_t length = 0;
    if (!take_number(&line, &start) || !take_number(&line, &length) || line.empty()) continue;
    if (length == 0 || start + length < start || !is_hit(addresses, start, start + length))
      continue;
    found[start] = {start, start + length, std::string(line.substr(0, kMaxNameBytes))};
  }
  std::vector<JitSymbol> symbols;
  for (auto& [start, symbol] : found) symbols.push_back(std::move(symbol));
  return symbols;
}

}  // namespace aon::perf
