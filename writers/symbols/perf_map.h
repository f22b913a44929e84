/// PerfMap: names of code made at run time, from the text file that JIT compilers write for perf
/// (linux/tools/perf/Documentation/jit-interface.txt): /tmp/perf-PID.map, per line
///
///     START BYTES NAME        hexadecimal without 0x (some write it), NAME may hold spaces
///
/// A line that was written later replaces what it overlaps: code is moved and its place reused.
/// Lines that are none of these are counted and left out; of a file that is longer than the limit
/// the rest is left out, and says so.
/// Thread: one reads, any look up.   Cost: about 0.5 us a line; 100 ns a lookup.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace aon::symbols {

class PerfMap {
 public:
  static constexpr size_t kDefaultLimitBytes = size_t{256} << 20;

  /// Errors: kNotFound, kUnavailable (permission), kInvalid (not an ordinary file), kIo.
  static Result<PerfMap> read(const std::string& path, size_t limit_bytes = kDefaultLimitBytes);
  static PerfMap parse(std::string text);

  /// Name of the code at `address`, an address of the process; empty when there is none.
  std::string_view find(uint64_t address) const;

  size_t range_count() const { return ranges_.size(); }
  uint64_t bad_line_count() const { return bad_line_count_; }
  bool is_cut() const { return is_cut_; }

 private:
  struct Range {
    uint64_t begin = 0;
    uint64_t end = 0;
    size_t name_at = 0;  ///< in text_: an offset, so that a PerfMap can be moved
    size_t name_bytes = 0;
  };

  void parse_line(size_t begin, size_t end, std::vector<Range>* found);
  void lay_out(std::vector<Range> found);

  std::string text_;
  std::vector<Range> ranges_;  ///< by address, without overlap
  uint64_t bad_line_count_ = 0;
  bool is_cut_ = false;
};

}  // namespace aon::symbols
