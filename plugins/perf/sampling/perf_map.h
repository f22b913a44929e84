/// PerfMap: names of code made at run time, from the text file that JIT compilers write for perf
/// (linux/tools/perf/Documentation/jit-interface.txt): /tmp/perf-PID.map, per line
///
///     START BYTES NAME        hexadecimal without 0x (some write it), NAME may hold spaces
///
/// A line that was written later replaces what it overlaps: code is moved and its place reused.
/// Lines that are none of these are counted and left out.
/// Thread: one parses, any look up.   Cost: about 0.5 us a line; 100 ns a lookup.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace aon::perf {

class PerfMap {
 public:
  /// Where a name holds: a part of its line's range where others overlap it.
  struct Symbol {
    uint64_t start;
    uint64_t end;
    std::string name;
  };

  static PerfMap parse(std::string text);

  /// Name of the code at `address`, an address of the process; empty when there is none.
  std::string_view find(uint64_t address) const;
  /// What `addresses` lie in, each once, by start. Long names are cut.
  std::vector<Symbol> find_all(std::vector<uint64_t> addresses) const;

  size_t range_count() const { return ranges_.size(); }
  uint64_t bad_line_count() const { return bad_line_count_; }

 private:
  struct Range {
    uint64_t begin = 0;
    uint64_t end = 0;
    size_t name_at = 0;  ///< in text_: an offset, so that a PerfMap can be moved
    size_t name_bytes = 0;
  };

  void parse_line(size_t begin, size_t end, std::vector<Range>* found);
  void lay_out(std::vector<Range> found);
  const Range* range_of(uint64_t address) const;

  std::string text_;
  std::vector<Range> ranges_;  ///< by address, without overlap
  uint64_t bad_line_count_ = 0;
};

}  // namespace aon::perf
