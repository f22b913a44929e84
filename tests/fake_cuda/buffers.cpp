#include "tests/fake_cuda/buffers.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace aon::fake {
namespace {

struct Buffer {
  uint8_t* bytes = nullptr;
  size_t capacity = 0;
  size_t used = 0;
  uint64_t over_ns = 0;  ///< of its last record to be over
};

struct ThreadBuffer {
  std::mutex mutex;
  Buffer buffer;
};

/// All of it lives for ever: the worker may run while the process exits.
struct Buffers {
  std::mutex mutex;
  std::vector<ThreadBuffer*> threads;
  std::vector<Buffer> sealed;
  std::condition_variable has_sealed;
  std::condition_variable delivered;
  bool has_worker = false;
  bool is_released = knob("HOLD") == 0;
  bool is_forced = false;
  uint32_t in_delivery = 0;
  uint64_t first_ns = host_ns();
  std::atomic<bool> is_promised_zeros{false};
  std::atomic<size_t> dropped{0};
  BufferUser user;
};
Buffers& all() {
  static Buffers* one = new Buffers;
  return *one;
}

/// Work that runs, or has not begun, is consumed by a forced flush: it never gets its end.
void forget_open_ends(const Buffer& buffer) {
  const uint64_t now_ns = host_ns();
  if (buffer.over_ns <= now_ns) return;
  uint8_t* record = nullptr;
  while (next_record(buffer.bytes, buffer.used, &record) == cupti::kSuccess)
    forget_end(record, now_ns);
}

void deliver(const std::vector<Buffer>& buffers) {
  const BufferUser& user = all().user;
  for (const Buffer& b : buffers) {
    if (user.complete_v2 != nullptr) {
      user.complete_v2(b.bytes, b.capacity, b.used, nullptr);
    } else {
      user.complete(nullptr, 0, b.bytes, b.capacity, b.used);
    }
  }
}

/// With the lock.
bool is_stuck() {
  const uint64_t from_ms = knob("STUCK");
  const uint64_t passed_ms = (host_ns() - all().first_ns) / 1'000'000;
  const bool is_over = knob("STUCK_MS") != 0 && passed_ms >= from_ms + knob("STUCK_MS");
  return from_ms != 0 && passed_ms >= from_ms && !is_over;
}

/// Takes out what can be handed over. With the lock.
std::vector<Buffer> take_ready() {
  Buffers& s = all();
  if (is_stuck()) return {};
  const uint64_t now_ns = host_ns();
  const auto ready = std::stable_partition(s.sealed.begin(), s.sealed.end(), [&](const Buffer& b) {
    return b.over_ns > now_ns && !s.is_forced;
  });
  std::vector<Buffer> buffers(ready, s.sealed.end());
  s.sealed.erase(ready, s.sealed.end());
  if (s.is_forced) std::for_each(buffers.begin(), buffers.end(), forget_open_ends);
  if (knob("REORDER") != 0) std::reverse(buffers.begin(), buffers.end());
  return buffers;
}

void run_worker() {
  constexpr std::chrono::microseconds kPause(200);
  Buffers& s = all();
  std::unique_lock lock(s.mutex);
  for (;;) {
    std::vector<Buffer> buffers;
    if (s.is_released) buffers = take_ready();
    if (buffers.empty()) {
      s.delivered.notify_all();
      if (s.is_released && !s.sealed.empty()) {
        s.has_sealed.wait_for(lock, kPause);
      } else {
        s.has_sealed.wait(lock);
      }
      continue;
    }
    ++s.in_delivery;
    lock.unlock();
    const uint64_t start_ns = host_ns();
    deliver(buffers);
    if (knob("WORKER_ASKS") != 0)
      put(overhead_record(Overhead::kFlush, start_ns, host_ns(), 0), 0, 0, true);
    lock.lock();
    --s.in_delivery;
  }
}

void seal(Buffer* buffer) {
  Buffers& s = all();
  if (knob("INLINE") != 0) return deliver({std::exchange(*buffer, {})});
  const std::lock_guard lock(s.mutex);
  s.sealed.push_back(std::exchange(*buffer, {}));
  if (!s.has_worker) std::thread(run_worker).detach();
  s.has_worker = true;
  s.has_sealed.notify_one();
}

ThreadBuffer& thread_buffer() {
  thread_local ThreadBuffer* mine = nullptr;
  if (mine == nullptr) {
    mine = new ThreadBuffer;
    const std::lock_guard lock(all().mutex);
    all().threads.push_back(mine);
  }
  return *mine;
}

/// False: there is none.
bool request(Buffer* buffer) {
  const BufferUser& user = all().user;
  size_t max_records = 0;
  if (user.request_v2 != nullptr) {
    user.request_v2(&buffer->bytes, &buffer->capacity, &max_records, nullptr);
  } else {
    user.request(&buffer->bytes, &buffer->capacity, &max_records);
  }
  if (buffer->bytes == nullptr) {
    if (knob("VERSION") != 0 && knob("VERSION") < 27) abort();  // as CUDA before 12.9
    return false;
  }
  if (knob("INLINE") != 0) buffer->capacity = knob("INLINE");
  for (size_t i = 0; i < 4096 && all().is_promised_zeros; ++i) {
    if (buffer->bytes[i] != 0) abort();
  }
  return true;
}

void append(const Record& record, uint64_t over_ns, Buffer* buffer) {
  memcpy(buffer->bytes + buffer->used, record.data(), record.size());
  buffer->used += record.size();
  buffer->over_ns = std::max(buffer->over_ns, over_ns);
}

}  // namespace

uint64_t knob(const char* name) {
  const char* text = getenv((std::string("FAKE_CUPTI_") + name).c_str());
  return text == nullptr ? 0 : strtoull(text, nullptr, 10);
}

uint64_t host_ns() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

void set_buffer_user(const BufferUser& user) { all().user = user; }
bool has_buffer_user() { return all().user.request != nullptr || all().user.request_v2 != nullptr; }
void promise_zeros(bool is_promised) { all().is_promised_zeros = is_promised; }
size_t take_dropped() { return all().dropped.exchange(0); }
void drop() { ++all().dropped; }

void put(const Record& record, uint64_t over_ns, uint32_t correlation, bool has_overhead) {
  ThreadBuffer& mine = thread_buffer();
  const std::lock_guard lock(mine.mutex);
  Buffer& buffer = mine.buffer;
  if (buffer.bytes != nullptr && buffer.used + record.size() > buffer.capacity) seal(&buffer);
  if (buffer.bytes != nullptr) return append(record, over_ns, &buffer);
  const uint64_t start_ns = host_ns();
  if (!request(&buffer)) return drop();
  const uint64_t end_ns = host_ns();
  append(record, over_ns, &buffer);
  if (has_overhead)
    append(overhead_record(Overhead::kBufferRequest, start_ns, end_ns, correlation), 0, &buffer);
}

void flush(bool is_forced) {
  Buffers& s = all();
  std::vector<ThreadBuffer*> threads;
  {
    const std::lock_guard lock(s.mutex);
    s.is_released = s.is_released || is_forced;
    if (!s.is_released) return;
    threads = s.threads;
  }
  for (ThreadBuffer* thread : threads) {
    const std::lock_guard lock(thread->mutex);
    if (thread->buffer.used != 0) seal(&thread->buffer);
  }
  std::unique_lock lock(s.mutex);
  s.is_forced = is_forced;
  s.has_sealed.notify_one();
  const auto is_ready = [&](const Buffer& b) { return is_forced || b.over_ns <= host_ns(); };
  s.delivered.wait(lock, [&] {
    const bool is_done =
        s.in_delivery == 0 && std::none_of(s.sealed.begin(), s.sealed.end(), is_ready);
    return is_done || is_stuck();
  });
  s.is_forced = false;
}

void lose_records() {
  std::vector<ThreadBuffer*> threads;
  {
    const std::lock_guard lock(all().mutex);
    threads = all().threads;
  }
  for (ThreadBuffer* thread : threads) {
    const std::lock_guard lock(thread->mutex);
    // What is behind its last record is as it was handed out.
    if (thread->buffer.used != 0) memset(thread->buffer.bytes, 0, thread->buffer.used);
    thread->buffer.used = 0;
  }
}

}  // namespace aon::fake
