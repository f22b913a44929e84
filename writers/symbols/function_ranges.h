/// FunctionRanges: where the functions of a stripped file begin and end, from the unwind
/// information that compilers leave in it (.eh_frame: one description for each function, or for
/// each of its parts). They have no names; an address in one is told as its beginning, so that all
/// samples of a function are one function.
///
/// Source: LSB Core 5.0, "Exception Frames"; pointer encodings: DWARF extensions there.
/// Thread: one builds, any look up.   Cost: about 0.1 us a function to build, 100 ns a lookup.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/elf_file.h"

namespace aon::symbols {

class FunctionRanges {
 public:
  /// Reads those of `file`; none without .eh_frame, or those before its first damaged entry.
  void add(const ElfFile& file);

  /// Where the function around `address` begins.
  std::optional<uint64_t> begin_of(uint64_t address) const;

 private:
  struct Range {
    uint64_t begin = 0;
    uint64_t end = 0;
  };
  std::vector<Range> ranges_;  ///< by begin
};

}  // namespace aon::symbols
