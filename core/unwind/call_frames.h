/// CallFrames: how to get from a function to its caller, from a file's .eh_frame through libdw.
/// What it says of a range of instructions is kept, so a second sample there costs a look-up.
///
/// libdw trusts its input: what anybody may have written belongs into a process that may die. What
/// it reads is copied first (frame_image.h): the file may be written anew meanwhile.
/// Thread: one owner.   Cost: 10 us for a new range, 0.2 us for a known one; a copy of .eh_frame.
#pragma once

#include <elfutils/libdw.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/elf_file.h"
#include "core/base/result.h"
#include "core/unwind/frame_image.h"
#include "core/unwind/registers.h"

namespace aon::unwind {

/// Where the caller's value of a register is.
struct Rule {
  enum class Kind : uint8_t {
    kSame,       ///< not changed
    kUndefined,  ///< lost; of the instruction pointer: there is no caller
    kSaved,      ///< in memory at what `operations` say
    kValue,      ///< it is what `operations` say
  };
  Kind kind = Kind::kUndefined;
  std::vector<Dwarf_Op> operations;
};

/// The rules of instructions [begin, end).
struct FrameRules {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool is_signal_frame = false;
  std::vector<Dwarf_Op> cfa;
  std::array<Rule, kFollowed.size()> registers;
};

class CallFrames {
 public:
  /// Copies at most `max_bytes` of the file.
  /// Errors: those of ElfFile::open and FrameImage::copy; kInvalid when the build-id is another, or
  /// the file is for another machine.
  static Result<CallFrames> open(const std::string& path, const std::string& build_id,
                                 uint64_t max_bytes = UINT64_MAX);

  /// Rules at a byte of the file; nullptr when there are none. The pointer is good until the next
  /// call.
  const FrameRules* find(uint64_t file_offset);

  /// Ranges that are kept, of some 700 bytes each.
  size_t known_count() const { return known_.size(); }
  void forget() { known_.clear(); }
  uint64_t copied_bytes() const { return image_->copied_bytes(); }

 private:
  struct EndCfi {
    void operator()(Dwarf_CFI* cfi) const { dwarf_cfi_end(cfi); }
  };
  bool read_rules(uint64_t address, FrameRules* rules);

  std::unique_ptr<ElfFile> file_;
  std::unique_ptr<FrameImage> image_;
  std::unique_ptr<Dwarf_CFI, EndCfi> cfi_;  // behind the image that it reads: goes first
  std::map<uint64_t, FrameRules> known_;    ///< by their begin; rules without CFA: there are none
};

}  // namespace aon::unwind
