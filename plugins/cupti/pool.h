/// The buffers that CUPTI fills: 1 MiB each, at most as many as start() was told, zero when they
/// are handed out, so that CUPTI need not clear them inside the program's calls.
///
///     free --take(): CUPTI, in a call of the program--> filling --complete(): CUPTI's thread-->
///     queued --next(): our thread--> read --give_back(): our thread, which clears the rest--> free
///
/// Each is memory of its own from the program's malloc: another client of CUPTI that takes the
/// callbacks over, as the older interface lets it, gets what we have handed out and may free() it.
/// So one that is filling may be gone: whether it has records is asked of the kernel.
/// Thread: as drawn.   Cost: a few atomic operations; memory is taken by start() alone, and touched
/// when it is filled.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace aon::cupti {

constexpr size_t kBufferBytes = 1u << 20;
constexpr uint32_t kMaxBuffers = 1024;
constexpr uint32_t kDiscardBuffers = 8;

struct FilledBuffer {
  uint8_t* bytes;  ///< null: none
  size_t valid_bytes;
  size_t cleared_bytes = 0;  ///< at its begin, by the reader
};

class BufferPool {
 public:
  /// Room for `count` buffers, at most kMaxBuffers, and those to throw away. False: no memory.
  bool start(uint32_t count);

  /// A free buffer, or null. `now_ns` is when.   Thread: any.
  uint8_t* take(uint64_t now_ns);
  /// A buffer for what must be thrown away. They go round: CUPTI still changes records in one that
  /// it has handed over before.   Thread: any.
  uint8_t* discard_buffer();

  /// Queues a buffer that has `valid_bytes`. False: it is none to be read.   Thread: any.
  bool complete(uint8_t* buffer, size_t valid_bytes);

  /// The buffer that was queued first.   Thread: the reader.
  FilledBuffer next();
  void give_back(const FilledBuffer& buffer);

  /// Since when CUPTI has had a buffer with records, the longest of all: when it was taken, or was
  /// empty for the last time that this was asked. `now_ns`: it has none.
  /// Thread: the reader.   Cost: a syscall for each that is filling.
  uint64_t kept_since_ns(uint64_t now_ns);

  uint32_t queued_count() const { return queued_count_.load(std::memory_order_relaxed); }

 private:
  static constexpr uint32_t kNone = 0;  ///< entries are indices + 1
  static constexpr uint32_t kWords = kMaxBuffers / 64;

  /// Its index; count_: it is none of them.
  uint32_t index_of(const uint8_t* buffer) const;

  // Constant after start().
  uint8_t* discarded_ = nullptr;
  uint8_t* buffers_[kMaxBuffers] = {};
  uint32_t count_ = 0;

  // Shared.
  std::atomic<uint32_t> last_discarded_{0};
  std::atomic<uint64_t> free_[kWords] = {};
  std::atomic<uint64_t> taken_ns_[kMaxBuffers] = {};  ///< of those that are filling, else 0
  std::atomic<uint32_t> queued_{kNone};               ///< last one; each names the one before it
  std::atomic<uint32_t> queued_count_{0};
  uint32_t before_[kMaxBuffers] = {};  ///< written by the thread that queues
  size_t valid_bytes_[kMaxBuffers] = {};

  // Reader.
  uint32_t first_ = kNone;               ///< taken from the queue and turned around
  uint64_t empty_ns_[kMaxBuffers] = {};  ///< when it was seen to be filling and empty
};

}  // namespace aon::cupti
