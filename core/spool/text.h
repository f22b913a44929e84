/// Text from untrusted definitions, made fit for every writer.   Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace aon::spool {

constexpr size_t kMaxTextBytes = 4096;  ///< names longer than this are cut

/// Bytes of the valid UTF-8 character at the start of `text`, which is not empty (Unicode 15, table
/// 3-7); 0 for none.
size_t character_bytes(std::string_view text);

/// `text` as valid UTF-8 without control characters: each bad byte becomes '?'. Cut at
/// kMaxTextBytes, at the border of a character.
std::string clean_text(std::string_view text);

/// "0-3,7" of an ascending list.
std::string listed_ranks(const std::vector<uint32_t>& ranks);

}  // namespace aon::spool
