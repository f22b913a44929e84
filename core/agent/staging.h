/// The staging ring between the two threads of a worker: copies of records on their way from the
/// rings of the processes to the blocks. It lies in a memfd that the keeper holds too, so what was
/// taken from a ring is not lost with a worker.
///
///     drain thread --reserve, fill, publish(head)--> entries --read up to head--> encode thread
///                  <------------- free space: tail ------------ release(tail) after its commit
///
/// An entry is a StagingEntry and `record_bytes` of records, padded to 32. Offsets only grow; the
/// memory is mapped twice in a row, so that no entry is ever split. Contents of records are
/// untrusted but cannot change any more.
///
/// Where everything was committed, the next entry begins at the start of the memory: few records a
/// second stay in few pages, in use and in the cache. The offset that this skips to is published as
/// the base, before the head that it becomes; there is nothing between the tail and a base above.
/// Thread: one producer, one consumer.   Cost: one memcpy per record.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/agent/state.h"
#include "core/base/result.h"
#include "core/base/unique_fd.h"

namespace aon::agent {

struct StagingEntry {
  uint32_t entry_bytes;   ///< of the whole entry
  uint32_t record_bytes;  ///< behind this struct
  uint32_t stream;        ///< StreamCell
  uint32_t counted;       ///< counted records, as the writer says
  uint32_t has_position;  ///< 0: records the agent itself added
  uint32_t reserved;
  ring::StreamPosition position;  ///< of the stream behind these records
};

constexpr uint32_t kStagingUnitBytes = 32;
/// Largest entry: one chunk.
constexpr uint32_t kMaxEntryBytes = sizeof(StagingEntry) + kChunkCapacityBytes + kStagingUnitBytes;

class Staging {
 public:
  /// A memfd of `capacity_bytes`, a power of two and a multiple of the page.   Errors: kIo.
  static Result<UniqueFd> create(uint64_t capacity_bytes);
  /// Maps it.   Errors: kIo.
  static Result<Staging> map(int fd, uint64_t capacity_bytes);

  uint64_t capacity_bytes() const noexcept { return mask_ + 1; }
  /// The next offset, `offset` itself included, that is the start of the memory.
  uint64_t next_start(uint64_t offset) const noexcept { return (offset + mask_) & ~mask_; }

  /// Drain thread: room for an entry with up to `record_bytes` of records behind `head`; null when
  /// it is full.
  StagingEntry* reserve(uint64_t head, uint64_t tail, uint32_t record_bytes) const noexcept {
    const uint64_t used = head - tail;
    if (used + entry_bytes(record_bytes) + sizeof(uint64_t) > capacity_bytes()) return nullptr;
    return reinterpret_cast<StagingEntry*>(data_ + (head & mask_));
  }
  static uint8_t* records_of(StagingEntry* entry) noexcept {
    return reinterpret_cast<uint8_t*>(entry + 1);
  }
  /// Bytes of an entry; its last 8 hold its own size, so that the last one can be found.
  static constexpr uint32_t entry_bytes(uint32_t record_bytes) noexcept {
    const uint32_t bytes = static_cast<uint32_t>(sizeof(StagingEntry)) + record_bytes + 8;
    return (bytes + kStagingUnitBytes - 1) / kStagingUnitBytes * kStagingUnitBytes;
  }
  /// Drain thread: closes the entry that reserve() gave; the caller then stores the new head.
  /// Returns the bytes that the head moves by.
  static uint32_t seal(StagingEntry* entry, uint32_t record_bytes) noexcept;

  const StagingEntry* entry(uint64_t offset) const noexcept {
    return reinterpret_cast<const StagingEntry*>(data_ + (offset & mask_));
  }
  /// The entry that ends at `head`; null when there never was one.
  const StagingEntry* last_entry(uint64_t head) const noexcept;

 private:
  uint8_t* data_ = nullptr;
  uint64_t mask_ = 0;
};

}  // namespace aon::agent
