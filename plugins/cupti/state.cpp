#include "cupti/state.h"

#include <aon/process_mutex.h>
#include <aon/writer.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cupti/interface.h"
#include "cupti/system_clock.h"

namespace aon::cupti {

Shared g_shared;

namespace {

constexpr uint32_t kLeastRecordBytes = 24;
constexpr const char* kMoreBuffers = "a larger --cupti-memory";
constexpr const char* kLessWork =
    "less work under way at a time: CUPTI has room for 3.2 million pieces in a context";
constexpr const char* kOtherCupti = "a CUPTI of the driver's version";
constexpr const char* kLoneClient = "AON_CUPTI_API=v1, where these can be read";
constexpr int kFlushAttempts = 100;  ///< a ms apart

/// Threads that asked for a buffer are the program's: what they compute is no cost of ours, also
/// where they hand one over. One bit for all ids of the same remainder: a thread of CUPTI may be
/// taken for one of them, but none of them for CUPTI's.
constexpr uint32_t kThreadBits = 4096;
std::atomic<uint64_t> g_users[kThreadBits / 64];

uint32_t own_thread() { return static_cast<uint32_t>(syscall(SYS_gettid)); }
std::atomic<uint64_t>& users_of(uint32_t thread) { return g_users[thread % kThreadBits / 64]; }
uint64_t user_bit(uint32_t thread) { return uint64_t{1} << (thread % 64); }

void note_user(uint32_t thread) {
  if ((users_of(thread).load(std::memory_order_relaxed) & user_bit(thread)) == 0)
    users_of(thread).fetch_or(user_bit(thread), std::memory_order_relaxed);
}

bool is_of_program(uint32_t thread) {
  const auto id = static_cast<int>(thread);
  return id != g_shared.drain_thread.load(std::memory_order_relaxed) &&
         id != g_shared.worker_thread.load(std::memory_order_relaxed);
}

void note_worker() {
  const uint32_t thread = own_thread();
  const bool is_user = (users_of(thread).load(std::memory_order_relaxed) & user_bit(thread)) != 0;
  const auto id = static_cast<int>(thread);
  if (!is_user && id != g_shared.drain_thread.load(std::memory_order_relaxed))
    g_shared.worker_thread.store(id, std::memory_order_relaxed);
}

}  // namespace

bool is_our_process() { return g_shared.pid != 0 && getpid() == g_shared.pid; }

bool flush_alone(Code (*flush_all)(uint32_t flag), uint32_t flag, bool may_wait, Code* code) {
  note_user(own_thread());  // buffers may be handed over here
  for (int attempt = 0; attempt < kFlushAttempts; ++attempt) {
    if (!g_shared.is_flushing.exchange(true,
                                       std::memory_order_acquire)) {  // pairs with cupti:flush
      const Code answer = flush_all(flag);
      if (code != nullptr) *code = answer;
      g_shared.is_flushing.store(false, std::memory_order_release);  // pairs with cupti:flush
      return true;
    }
    if (!may_wait) return false;
    usleep(1000);
  }
  return false;
}

void wake_drain() {
  g_shared.wake.fetch_add(1, std::memory_order_release);  // pairs with cupti:wake
  syscall(SYS_futex, &g_shared.wake, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

void wait_for_wake(uint32_t seen, uint32_t timeout_ms) {
  const timespec timeout = {timeout_ms / 1000, static_cast<long>(timeout_ms % 1000) * 1'000'000};
  syscall(SYS_futex, &g_shared.wake, FUTEX_WAIT_PRIVATE, seen, &timeout, nullptr, 0);
}

void request_buffer(uint8_t** buffer, size_t* bytes, size_t* max_records) {
  *max_records = 0;
  *bytes = kBufferBytes;
  const uint64_t now_ns = read_clock(CLOCK_REALTIME);
  *buffer = is_our_process() ? g_shared.pool.take(now_ns) : nullptr;
  // Our thread says that there is work that may be lost.
  if (!g_shared.has_requested.exchange(true, std::memory_order_relaxed)) wake_drain();
  const uint32_t thread = own_thread();
  note_user(thread);
  if (is_of_program(thread)) g_shared.last_request_ns.store(now_ns, std::memory_order_relaxed);
  if (*buffer != nullptr) return;
  g_shared.missing.refused.fetch_add(1, std::memory_order_relaxed);
  if (!g_shared.wants_flush.exchange(true, std::memory_order_relaxed)) wake_drain();
  if (g_shared.quirks.may_refuse_buffers) {
    *bytes = 0;
  } else {
    *buffer = g_shared.pool.discard_buffer();
  }
}

void complete_buffer(void*, uint32_t, uint8_t* buffer, size_t, size_t valid_bytes) {
  if (buffer == nullptr || !is_our_process()) return;
  note_worker();
  if (g_shared.pool.complete(buffer, valid_bytes)) {
    wake_drain();
  } else {
    g_shared.missing.discarded_bytes.fetch_add(valid_bytes, std::memory_order_relaxed);
  }
}

void request_buffer_v2(uint8_t** buffer, size_t* bytes, size_t* max_records, void*) {
  request_buffer(buffer, bytes, max_records);
}

void complete_buffer_v2(uint8_t* buffer, size_t bytes, size_t valid_bytes, void*) {
  complete_buffer(nullptr, 0, buffer, bytes, valid_bytes);
}

void on_callback(void*, int32_t domain, uint32_t id, const void*) {
  if (domain != kStateDomain || id != kFatalError || !is_our_process()) return;
  g_shared.is_dead.store(true, std::memory_order_relaxed);
  wake_drain();
}

void tell(Remark remark, ProviderState state, const char* reason, const char* remedy) {
  static constinit ProcessMutex mutex;
  static Remarks remarks AON_GUARDED_BY(mutex);
  char text[2 * Remarks::kMaxText + 16] = "cupti";
  size_t bytes = sizeof "cupti";
  ProviderDefinition provider = {};
  mutex.lock();
  remarks.set(remark, state, reason, remedy);
  provider.state = remarks.state();
  bytes += remarks.write_reasons(text + bytes) + 1;
  bytes += remarks.write_remedies(text + bytes) + 1;
  mutex.unlock();
  aon_define(static_cast<uint32_t>(DefinitionType::kProvider), &provider, sizeof provider, text,
             static_cast<uint32_t>(bytes));
}

void tell_missing(bool is_end) {
  static uint64_t told;  // our thread only
  const Missing& missing = g_shared.missing;
  const auto load = [](const std::atomic<uint64_t>& count) {
    return count.load(std::memory_order_relaxed);
  };
  const struct {
    uint64_t count;
    uint32_t per_record;
    const char* what;
    const char* remedy;
  } losses[] = {
      {load(missing.unbuffered), 1, "records dropped for want of a buffer", kMoreBuffers},
      {load(missing.discarded_bytes), kLeastRecordBytes, "bytes of records beyond --cupti-memory",
       kMoreBuffers},
      {load(missing.late_bytes), kLeastRecordBytes,
       "bytes of records that CUPTI handed over when it was given away", kLoneClient},
      {load(missing.dropped), 1, "records dropped by CUPTI", kLessWork},
      {load(missing.without_times), 1, "without times", kLessWork},
      {load(missing.unknown), 1, "of an unknown kind", kOtherCupti},
      {load(missing.damaged), 1, "damaged", kOtherCupti},
  };
  char reason[400] = "work of the device is missing: ";
  char remedy[240] = "";
  uint64_t sum = 0;
  for (const auto& loss : losses) {
    if (loss.count == 0) continue;
    const size_t used = strlen(reason);
    snprintf(reason + used, sizeof reason - used, "%s%" PRIu64 " %s", sum != 0 ? ", " : "",
             loss.count, loss.what);
    const size_t used_remedy = strlen(remedy);
    if (strstr(remedy, loss.remedy) == nullptr)
      snprintf(remedy + used_remedy, sizeof remedy - used_remedy, "%s%s",
               used_remedy != 0 ? "; " : "", loss.remedy);
    sum += (loss.count + loss.per_record - 1) / loss.per_record;
  }
  if (sum == told || (!is_end && sum < 2 * told)) return;
  told = sum;
  tell(Remark::kMissing, ProviderState::kDegraded, reason, remedy);
}

}  // namespace aon::cupti
