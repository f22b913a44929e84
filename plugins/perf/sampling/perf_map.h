/// PerfMap: names of code made at run time, from the text file that JIT compilers write for perf
/// (linux/tools/perf/Documentation/jit-interface.txt): /tmp/perf-PID.map, per line
///
///     START BYTES NAME        hexadecimal without 0x (some write it), NAME may hold spaces
///
/// A line that was written later replaces what it overlaps: code is moved and its place reused.
/// Lines that are none of these are counted and left out. Such a file grows with every function
/// that was ever compiled, so it is taken in pieces, and what is asked for is told before.
/// Thread: one adds, any look up.   Cost: about 0.5 us a line, 100 ns a lookup; memory for one name
/// of each address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
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

  /// Names are wanted of `addresses`, of the process, alone.
  explicit PerfMap(std::vector<uint64_t> addresses);

  /// The next piece of the file; it may end anywhere in a line.
  void add(std::string_view piece);
  /// Behind the last piece, whose line may have no end.
  void finish();

  /// Name of the code at `address`, one of those that are wanted; empty when there is none. Long
  /// names are cut.
  std::string_view find(uint64_t address) const;
  /// What the addresses lie in, each once, by start.
  std::vector<Symbol> symbols() const;

  size_t range_count() const { return ranges_.size(); }
  uint64_t bad_line_count() const { return bad_line_count_; }

 private:
  struct Range {
    uint64_t end = 0;
    std::string name;
  };

  void take_line();
  void put(uint64_t begin, uint64_t end, std::string_view name);
  void keep(uint64_t begin, uint64_t end, std::string_view name);

  std::vector<uint64_t> wanted_;      ///< ascending
  std::string line_;                  ///< as far as it is here
  std::map<uint64_t, Range> ranges_;  ///< by begin, without overlap; each holds a wanted address
  uint64_t bad_line_count_ = 0;
};

}  // namespace aon::perf
