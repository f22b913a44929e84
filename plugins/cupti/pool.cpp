#include "cupti/pool.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

namespace aon::cupti {
namespace {

/// False where it cannot be read as well: then nothing is claimed.
bool has_records(uint8_t* buffer) {
  uint64_t first = 0;
  const iovec to = {&first, sizeof first};
  const iovec from = {buffer, sizeof first};
  return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == sizeof first && first != 0;
}

}  // namespace

bool BufferPool::start(uint32_t count) {
  count_ = count < kMaxBuffers ? count : kMaxBuffers;
  discarded_ = static_cast<uint8_t*>(calloc(kDiscardBuffers, kBufferBytes));
  if (discarded_ == nullptr) return false;
  for (uint32_t i = 0; i < count_; ++i) {
    buffers_[i] = static_cast<uint8_t*>(calloc(1, kBufferBytes));
    if (buffers_[i] == nullptr) count_ = i;
  }
  if (count_ == 0) return false;
  for (uint32_t i = 0; i < count_; ++i) {
    free_[i / 64].fetch_or(uint64_t{1} << (i % 64), std::memory_order_relaxed);
  }
  return true;
}

uint8_t* BufferPool::take(uint64_t now_ns) {
  for (uint32_t word = 0; word < kWords; ++word) {
    uint64_t bits = free_[word].load(std::memory_order_relaxed);
    while (bits != 0) {
      const uint64_t lowest = bits & -bits;
      // pairs with cupti:free
      if (free_[word].compare_exchange_weak(bits, bits & ~lowest, std::memory_order_acquire)) {
        const uint32_t index = word * 64 + static_cast<uint32_t>(__builtin_ctzll(lowest));
        taken_ns_[index].store(now_ns, std::memory_order_relaxed);
        return buffers_[index];
      }
    }
  }
  return nullptr;
}

uint8_t* BufferPool::discard_buffer() {
  const uint32_t index = last_discarded_.fetch_add(1, std::memory_order_relaxed) % kDiscardBuffers;
  return discarded_ + size_t{index} * kBufferBytes;
}

uint32_t BufferPool::index_of(const uint8_t* buffer) const {
  uint32_t index = 0;
  while (index < count_ && buffers_[index] != buffer) ++index;
  return index;
}

bool BufferPool::complete(uint8_t* buffer, size_t valid_bytes) {
  const uint32_t index = index_of(buffer);
  if (index == count_) return false;
  taken_ns_[index].store(0, std::memory_order_relaxed);
  valid_bytes_[index] = valid_bytes < kBufferBytes ? valid_bytes : kBufferBytes;
  queued_count_.fetch_add(1, std::memory_order_relaxed);
  uint32_t last = queued_.load(std::memory_order_relaxed);
  do {
    before_[index] = last;
  } while (!queued_.compare_exchange_weak(last, index + 1,
                                          std::memory_order_release));  // pairs with cupti:queue
  return true;
}

uint64_t BufferPool::kept_since_ns(uint64_t now_ns) {
  uint64_t first_ns = now_ns;
  for (uint32_t i = 0; i < count_; ++i) {
    const uint64_t taken_ns = taken_ns_[i].load(std::memory_order_relaxed);
    if (taken_ns == 0) continue;
    if (has_records(buffers_[i])) {
      const uint64_t since_ns = taken_ns > empty_ns_[i] ? taken_ns : empty_ns_[i];
      if (since_ns < first_ns) first_ns = since_ns;
    } else {
      empty_ns_[i] = now_ns;
    }
  }
  return first_ns;
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
  return {.bytes = buffers_[index], .valid_bytes = valid_bytes_[index]};
}

void BufferPool::give_back(const FilledBuffer& buffer) {
  memset(buffer.bytes + buffer.cleared_bytes, 0, buffer.valid_bytes - buffer.cleared_bytes);
  const uint32_t index = index_of(buffer.bytes);
  free_[index / 64].fetch_or(uint64_t{1} << (index % 64),
                             std::memory_order_release);  // pairs with cupti:free
}

}  // namespace aon::cupti
