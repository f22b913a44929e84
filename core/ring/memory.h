/// The memory of rings: made, preallocated and sealed by the agent; or read from the file that a
/// process without an agent left.
#pragma once

#include <aon/ring.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/base/unique_fd.h"

namespace aon::ring {

/// One ring of a live process: a sealed memfd of its full size, of which chunks are preallocated
/// and offered to the writers bit by bit. The process cannot shrink or grow it.
/// Thread: one; free_chunk_count() races with the writers and is a good guess.
class RingMemory {
 public:
  /// Makes a ring of `chunk_count` chunks, of which the first `offered` are there at once.
  /// Errors: kIo when there is no memory.
  static Result<RingMemory> create(uint32_t process, uint32_t slot_count, uint32_t chunk_count,
                                   uint32_t offered, bool clock_is_tsc);
  /// Maps a ring that another agent process made with these numbers.
  static Result<RingMemory> attach(UniqueFd fd, uint32_t slot_count, uint32_t chunk_count,
                                   uint32_t offered);

  RingMemory(RingMemory&& other) noexcept;
  RingMemory& operator=(RingMemory&& other) noexcept;
  ~RingMemory();

  /// Preallocates `count` more chunks (as far as the ring has them), then offers them.
  /// Errors: kIo; nothing is offered then.
  Status offer(uint32_t count);

  /// Shows a call of the process's first thread as open, in the stead of a process that has not
  /// mapped the ring yet; it takes that back when it does. A call with start 0 takes it back here,
  /// and changes nothing once the process has come.
  void show_call(uint32_t tid, uint64_t start_ticks, uint32_t region);

  int fd() const { return fd_.get(); }
  void* base() const { return base_; }
  const RingGeometry& geometry() const { return geometry_; }
  uint32_t offered_chunk_count() const { return offered_; }
  uint32_t free_chunk_count() const;
  /// Has the process wake the agent when half of the free chunks are used.
  void wake_at_half();
  /// Memory in use: header, slots and offered chunks.
  uint64_t committed_bytes() const;
  /// Mode words of the call sites.
  std::atomic<uint32_t>* modes() const;

 private:
  RingMemory(UniqueFd fd, void* base, const RingGeometry& geometry, uint32_t offered)
      : fd_(std::move(fd)), base_(base), geometry_(geometry), offered_(offered) {}

  UniqueFd fd_;
  void* base_ = nullptr;
  RingGeometry geometry_;
  uint32_t offered_ = 0;
};

struct alignas(kPageBytes) Page {
  char bytes[kPageBytes];
};

/// A ring file without an agent, copied into our memory. The copy is as untrusted as the file.
struct RingImage {
  std::vector<Page> memory;  ///< geometry.total_bytes in all
  RingGeometry geometry;
  ProcessIdentity identity;  ///< program is NUL-terminated
  bool clock_is_tsc;
  ClockPair clock_first;
  ClockPair clock_last;
  void* base() { return memory.data(); }
};

/// Errors: kIo, kDamaged when the file is no ring, is shorter than its geometry, or larger than
/// `max_bytes`.
Result<RingImage> read_ring_file(const std::string& path, uint64_t max_bytes = uint64_t{2} << 30);

/// RingHeader::launch_mark of a ring file; 0 also where that cannot be read.
uint64_t read_launch_mark(const std::string& path);

}  // namespace aon::ring
