/// The buffers that CUPTI fills: 1 MiB each, at most as many as start() was told, zero when they
/// are handed out, so that CUPTI need not clear them inside the program's calls.
///
///     free --take(): CUPTI, in a call of the program--> filling --complete(): CUPTI's thread-->
///     queued --next(): our thread--> read --give_back(): our thread, which clears the rest--> free
///
/// Thread: as drawn.   Cost: a few atomic operations; memory is touched only when it is filled.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace aon::cupti {

constexpr size_t kBufferBytes = 1u << 20;
constexpr uint32_t kMaxBuffers = 1024;

struct FilledBuffer {
  uint8_t* bytes;  ///< null: none
  size_t valid_bytes;
  size_t cleared_bytes = 0;  ///< at its begin, by the reader
};

class BufferPool {
 public:
  /// Maps `count` buffers, at most kMaxBuffers, and one to throw away. False: no memory.
  bool start(uint32_t count);

  /// A free buffer, or null.   Thread: any.
  uint8_t* take();
  /// The buffer for what must be thrown away: all callers share it.
  uint8_t* discard_buffer() const { return base_; }

  /// Queues a buffer that has `valid_bytes`. False: it is none to be read.   Thread: any.
  bool complete(uint8_t* buffer, size_t valid_bytes);

  /// The buffer that was queued first.   Thread: the reader.
  FilledBuffer next();
  void give_back(const FilledBuffer& buffer);

  uint32_t queued_count() const { return queued_count_.load(std::memory_order_relaxed); }

 private:
  static constexpr uint32_t kNone = 0;  ///< entries are indices + 1
  static constexpr uint32_t kWords = kMaxBuffers / 64;

  uint8_t* at(uint32_t index) const { return base_ + (size_t{index} + 1) * kBufferBytes; }

  // Constant after start().
  uint8_t* base_ = nullptr;  ///< the discard buffer, then the others
  uint32_t count_ = 0;

  // Shared.
  std::atomic<uint64_t> free_[kWords] = {};
  std::atomic<uint32_t> queued_{kNone};  ///< last one; each names the one before it
  std::atomic<uint32_t> queued_count_{0};
  uint32_t before_[kMaxBuffers] = {};  ///< written by the thread that queues
  size_t valid_bytes_[kMaxBuffers] = {};

  // Reader.
  uint32_t first_ = kNone;  ///< taken from the queue and turned around
};

}  // namespace aon::cupti
