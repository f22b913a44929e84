/// Names of code made at run time, from the map that its compiler writes for perf: lines "START
/// LENGTH NAME" in hexadecimal (linux/tools/perf/Documentation/jit-interface.txt). Code is moved,
/// so a later line replaces an earlier one of the same place.
/// Thread: any.   Cost: a pass over the text; memory for the symbols that are hit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace aon::perf {

struct JitSymbol {
  uint64_t start;
  uint64_t end;
  std::string name;
};

/// The symbols of `map` that `addresses` lie in, by start.
std::vector<JitSymbol> find_jit_symbols(const std::string& map, std::vector<uint64_t> addresses);

}  // namespace aon::perf
