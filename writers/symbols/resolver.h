/// Resolver: names, source lines and inlined functions for addresses of programs and libraries,
/// after the run. docs/symbols.md says where names come from and what is told when there are none.
///
/// Each module is read in a process of its own (helper.h), so that a file that was damaged or made
/// to harm costs that module and nothing else. Names are told before lines are looked up: what
/// breaks on the lines leaves the names.
///
/// Thread: one at a time; the program may have others.   Signal: never.
/// Cost: a fork per module; 1 million addresses of libLLVM are named in about 1 s (scripts/bench
/// symbols). Lines cost about 0.2 us per entry of the units hit.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "writers/symbols/debug_search.h"
#include "writers/symbols/string_pool.h"

namespace aon::symbols {

struct ResolverOptions {
  bool wants_lines = true;  ///< lines and inlined functions, not only the symbol's name
  DebugSearch search;
  uint64_t memory_bytes = uint64_t{1} << 30;  ///< for one module, in each of the two processes
  uint32_t module_seconds = 60;               ///< after them a module has what was found by then
};

/// A file that was mapped executable, as perf or /proc/PID/maps name it.
struct ModuleReference {
  std::string path;
  std::string build_id;  ///< raw bytes; empty: not known, the file at `path` is taken as it is
};

/// One function of an address. Texts live as long as the Resolver; equal ones have one address.
struct Frame {
  std::string_view function;  ///< readable; empty: not known, only its line is
  std::string_view file;      ///< empty: not known
  uint32_t line = 0;          ///< 0: not known
  bool is_inlined = false;    ///< into the next frame
  /// Of a function without a name: the byte of the file where it begins; 0: not known.
  uint64_t begin_offset = 0;
};

/// What was found in a module, for the ledger.
struct ModuleReport {
  uint64_t named_count = 0;
  uint64_t unnamed_count = 0;  ///< the caller shows module and offset
  uint64_t line_count = 0;     ///< of the named ones, have a source line
  std::string source;          ///< which file the names are from
  std::string remark;          ///< what is missing and how to get it; empty: nothing
};

/// Takes the frames of file_offsets[index], innermost first; none when nothing is known of it.
using FrameSink = std::function<void(size_t index, std::span<const Frame> frames)>;

class Resolver {
 public:
  explicit Resolver(ResolverOptions options = {});

  /// Gives `sink` the frames of each of `file_offsets`, in their order.
  ///
  /// An offset is one into the module's file: address - begin of the mapping + the mapping's file
  /// offset. **A return address is looked up as offset - 1**: the call is what is executing, and
  /// the instruction behind it may be another line or another function. The innermost address of a
  /// chain is taken as it is.
  /// Errors, and then `sink` is not called: kNotFound, kUnavailable (permission, no memory),
  /// kInvalid (not a program, or "build-id differs"), kDamaged; the message has the remedy.
  Result<ModuleReport> resolve(const ModuleReference& module,
                               std::span<const uint64_t> file_offsets, const FrameSink& sink);

 private:
  ResolverOptions options_;
  StringPool strings_;
};

}  // namespace aon::symbols
