/// Whether a file has some bytes: read in pieces. Mapped, a file that is truncated meanwhile, as
/// one that is built anew in place, would end who looks into it.
/// Thread: any.   Cost: a read of the range, and 256 KiB.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>

#include "core/base/file.h"

namespace aon {

/// Whether one of `wanted` stands in the `byte_count` bytes from `begin` on, or before the file's
/// end.
inline bool file_has(int fd, uint64_t begin, uint64_t byte_count,
                     std::initializer_list<std::string_view> wanted) {
  constexpr size_t kPieceBytes = size_t{256} << 10;
  size_t longest = 1;
  for (const std::string_view one : wanted) longest = std::max(longest, one.size());
  std::string piece(kPieceBytes, 0);
  size_t kept = 0;  // what may be the beginning of one that goes on behind the piece
  for (uint64_t done = 0; done < byte_count;) {
    const size_t most = std::min<uint64_t>(kPieceBytes - kept, byte_count - done);
    const Result<size_t> count = read_at(fd, piece.data() + kept, most, begin + done);
    if (!count || *count == 0) return false;
    const size_t there_count = kept + *count;
    for (const std::string_view one : wanted) {
      if (memmem(piece.data(), there_count, one.data(), one.size()) != nullptr) return true;
    }
    done += *count;
    kept = std::min(longest - 1, there_count);
    std::memmove(piece.data(), piece.data() + there_count - kept, kept);
  }
  return false;
}

}  // namespace aon
