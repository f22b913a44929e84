/// Unwinder: the call chain of a sample that holds registers and a copy of the top of the stack
/// (perf's PERF_SAMPLE_REGS_USER and PERF_SAMPLE_STACK_USER), after the run. It needs no frame
/// pointers: it follows .eh_frame, which compilers write for every function unless told not to.
/// Code without (made at run time, by hand) is passed by its frame pointer, if it keeps one.
///
/// Each step goes up the stack, and there is a largest number of them: the time is bounded. What
/// lies above the copy is not known: the chain then ends with kStackEnds.
/// Thread: one owner.   Cost: about 1 us a frame when its module was seen before; a descriptor for
/// each file that is known, 256 at most, a copy of its .eh_frame, and of all kMaxKnown ranges
/// (45 MiB). x86-64 only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "core/unwind/call_frames.h"
#include "core/unwind/registers.h"

namespace aon::unwind {

/// Tells a file from another one that was put in its place.
struct FileId {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t size_bytes = 0;
  int64_t changed_ns = 0;  ///< its content, since the epoch

  bool operator==(const FileId&) const = default;
  bool operator<(const FileId& other) const {
    return std::tie(device, inode, size_bytes, changed_ns) <
           std::tie(other.device, other.inode, other.size_bytes, other.changed_ns);
  }
};

/// Of the file at `path` now; all 0 where there is none.
FileId file_id_of(const std::string& path);

/// Executable memory at [begin, end): part of a file, or without a path of none.
struct Mapping {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t file_offset = 0;
  std::string path;
  std::string build_id;  ///< raw bytes; empty: not known, the file is taken as it is
  FileId file;           ///< as of when it was mapped; all 0: not known, the same
};

/// One frame, innermost first.
struct ChainEntry {
  uint64_t address = 0;
  bool is_return_address = false;  ///< the call is before it: look its name up at address - 1
};

enum class End : uint8_t {
  kOutermost,   ///< the thread's first function: the chain is whole
  kStackEnds,   ///< the copy of the stack does not reach further
  kNoModule,    ///< an address outside of every mapping
  kNoRules,     ///< no call frame information and no frame pointer
  kNoProgress,  ///< damaged: the stack would not get smaller
  kLimit,       ///< more frames than were asked for
};

struct Chain {
  std::vector<ChainEntry> entries;
  End end = End::kLimit;
};

class Unwinder {
 public:
  /// More ranges than this are forgotten at once: memory is bounded, whatever the files say.
  static constexpr size_t kMaxKnown = 1 << 16;
  /// Of the copies. A file that has no room is taken as one without .eh_frame: to forget others for
  /// it would read all of them again at each sample.
  static constexpr uint64_t kMaxCopiedBytes = 128u << 20;

  /// The chain from `registers` on, at most `max_frames` long. `mappings` ascend without overlap.
  Chain unwind(Registers registers, const StackCopy& stack, std::span<const Mapping> mappings,
               size_t max_frames = 128);

  /// Files whose call frame information could not be read, and why, of those that are known.
  const std::vector<std::string>& failures() const { return failures_; }
  /// Ranges of instructions whose rules are kept.
  size_t known_count() const;

 private:
  /// Rules at `address`, nullptr when there are none; `*is_mapped`: there is such a mapping.
  const FrameRules* rules_at(uint64_t address, std::span<const Mapping> mappings, bool* is_mapped);
  CallFrames* module_of(const Mapping& mapping);
  const FrameRules* find_rules(CallFrames* frames, uint64_t file_offset);

  using ModuleKey = std::tuple<std::string, std::string, FileId>;  ///< path, build-id, file
  std::map<ModuleKey, std::optional<CallFrames>> modules_;         ///< nullopt: it cannot be read
  std::vector<std::string> failures_;
  size_t known_count_ = 0;
  uint64_t copied_bytes_ = 0;
};

}  // namespace aon::unwind
