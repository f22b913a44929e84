/// Parsing of what /proc and /sys say. Pure functions; what is not of the expected form is nothing.
/// Thread: any.   Cost: linear in the text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace aon::node {

/// The decimal number (or hexadecimal, with 0x) at the beginning of `text`, after spaces.
std::optional<uint64_t> number_in(std::string_view text);

/// A decimal fraction such as "2.3283064365386962890625e-10", whatever the locale.
std::optional<double> fraction_in(std::string_view text);

/// The rest of the line that begins with `key`, which ends at a colon, a space or a tab.
std::optional<std::string_view> line_of(std::string_view text, std::string_view key);

/// The number in that line.
std::optional<uint64_t> field_of(std::string_view text, std::string_view key);

/// "0-3,8" -> 0 1 2 3 8 (at most 65536 of them).
std::vector<int> cpus_in(std::string_view text);

/// Parts of `text` between separators; empty ones are left out.
std::vector<std::string_view> split(std::string_view text, std::string_view separators);

/// `text` without white space at both ends.
std::string_view trimmed(std::string_view text);

}  // namespace aon::node
