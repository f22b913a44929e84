/// FrameImage: what libdw reads of a file to unwind its code (headers, call frame information),
/// each part at its place in memory of our own. A file that is mapped ends who reads it, by SIGBUS,
/// when it is truncated, as a library that is built anew in place.
///
/// Thread: one owner.   Cost: the parts are read once, by pread; the rest is address space only.
/// Errors: kUnavailable (no call frame information, or more than there is room for), kDamaged (the
/// file is shorter than its headers say), kIo.
#pragma once

#include <cstdint>
#include <memory>

#include "core/base/elf_file.h"
#include "core/base/result.h"

namespace aon::unwind {

struct UnmapImage {
  uint64_t byte_count = 0;
  void operator()(void* memory) const;
};

class FrameImage {
 public:
  /// At most `max_bytes` are copied.
  static Result<FrameImage> copy(const ElfFile& file, uint64_t max_bytes);

  Elf* elf() const { return elf_.get(); }
  uint64_t copied_bytes() const { return copied_bytes_; }

 private:
  struct EndElf {
    void operator()(Elf* elf) const { elf_end(elf); }
  };

  std::unique_ptr<void, UnmapImage> memory_;
  std::unique_ptr<Elf, EndElf> elf_;  // behind what it reads from: goes first
  uint64_t copied_bytes_ = 0;
};

}  // namespace aon::unwind
