#include "core/delivery/names.h"

#include <algorithm>
#include <string>

#include "core/cluster/frames.h"
#include "core/spool/files.h"

namespace aon::delivery {
namespace {

constexpr std::string_view kRingStart = "fallback-";
constexpr std::string_view kRingEnd = ".ring";
constexpr std::string_view kUnrecorded = "unrecorded";  // core/runtime/fallback.cpp
constexpr std::string_view kLinkStart = "unrecorded-";

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

bool is_made_of_numbers(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char letter) {
    return is_digit(letter) || letter == '-';
  });
}

}  // namespace

bool is_ring_name(std::string_view name) {
  if (!name.starts_with(kRingStart) || !name.ends_with(kRingEnd)) return false;
  name.remove_prefix(kRingStart.size());
  name.remove_suffix(kRingEnd.size());
  return is_made_of_numbers(name);
}

/// "unrecorded-PID-TIME"
bool is_link_name(std::string_view name) {
  return name.starts_with(kLinkStart) && is_made_of_numbers(name.substr(kLinkStart.size()));
}

std::string part_name(const std::string& name) { return "." + name + ".part"; }

bool is_file_name(std::string_view name) {
  if (name.size() >= cluster::kMaxPartName) return false;
  if (name == spool::kDefinitionsFile || name == spool::kTopologyFile || name == kUnrecorded)
    return true;
  const std::optional<spool::SegmentName> segment = spool::parse_segment_file_name(name);
  return (segment && spool::segment_file_name(*segment) == name) || is_ring_name(name) ||
         is_link_name(name);
}

bool is_node_name(std::string_view name) {
  if (name.size() >= cluster::kMaxNodeName) return false;
  const size_t number = name.find('~');
  if (number != name.npos) {
    const std::string_view digits = name.substr(number + 1);
    if (digits.empty() || !std::all_of(digits.begin(), digits.end(), is_digit)) return false;
    name = name.substr(0, number);
  }
  if (name.empty() || name.front() == '.') return false;
  return std::all_of(name.begin(), name.end(), [](unsigned char letter) {
    return letter > ' ' && letter < 0x7f && letter != '/';
  });
}

}  // namespace aon::delivery
