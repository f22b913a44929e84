#include "cupti/pool.h"

#include <string.h>
#include <sys/mman.h>

namespace aon::cupti {

bool BufferPool::start(uint32_t count) {
  count_ = count < kMaxBuffers ? count : kMaxBuffers;
  void* memory = mmap(nullptr, (size_t{count_} + 1) * kBufferBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  base_ = static_cast<uint8_t*>(memory);
  for (uint32_t i = 0; i < count_; ++i) {
    free_[i / 64].fetch_or(uint64_t{1} << (i % 64), std::memory_order_relaxed);
  }
  return true;
}

uint8_t* BufferPool::take() {
  for (uint32_t word = 0; word < kWords; ++word) {
    uint64_t bits = free_[word].load(std::memory_order_relaxed);
    while (bits != 0) {
      const uint64_t lowest = bits & -bits;
      // pairs with cupti:free
      if (free_[word].compare_exchange_weak(bits, bits & ~lowest, std::memory_order_acquire)) {
        return at(word * 64 + static_cast<uint32_t>(__builtin_ctzll(lowest)));
      }
    }
  }
  return nullptr;
}

bool BufferPool::complete(uint8_t* buffer, size_t valid_bytes) {
  if (buffer < at(0) || buffer >= at(count_)) return false;
  const auto index = static_cast<uint32_t>(static_cast<size_t>(buffer - at(0)) / kBufferBytes);
  if (buffer != at(index)) return false;
  valid_bytes_[index] = valid_bytes < kBufferBytes ? valid_bytes : kBufferBytes;
  queued_count_.fetch_add(1, std::memory_order_relaxed);
  uint32_t last = queued_.load(std::memory_order_relaxed);
  do {
    before_[index] = last;
  } while (!queued_.compare_exchange_weak(last, index + 1,
                                          std::memory_order_release));  // pairs with cupti:queue
  return true;
}

FilledBuffer BufferPool::next() {
  if (first_ == kNone) {
    uint32_t entry = queued_.exchange(kNone, std::memory_order_acquire);  // pairs with cupti:queue
    while (entry != kNone) {
      const uint32_t before = before_[entry - 1];
      before_[entry - 1] = first_;
      first_ = entry;
      entry = before;
    }
  }
  if (first_ == kNone) return {.bytes = nullptr, .valid_bytes = 0};
  const uint32_t index = first_ - 1;
  first_ = before_[index];
  queued_count_.fetch_sub(1, std::memory_order_relaxed);
  return {.bytes = at(index), .valid_bytes = valid_bytes_[index]};
}

void BufferPool::give_back(const FilledBuffer& buffer) {
  memset(buffer.bytes + buffer.cleared_bytes, 0, buffer.valid_bytes - buffer.cleared_bytes);
  const auto index =
      static_cast<uint32_t>(static_cast<size_t>(buffer.bytes - at(0)) / kBufferBytes);
  free_[index / 64].fetch_or(uint64_t{1} << (index % 64),
                             std::memory_order_release);  // pairs with cupti:free
}

}  // namespace aon::cupti
