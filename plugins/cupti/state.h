/// What the callbacks of CUPTI and our thread share, and what the ledger is told.
/// Thread: any; fields are atomic or constant after the start.
#pragma once

#include <aon/definition.h>

#include <atomic>

#include "cupti/pool.h"
#include "cupti/quirks.h"
#include "cupti/releases.h"
#include "cupti/remarks.h"

namespace aon::cupti {

/// Work that is in no record, and why.
struct Missing {
  std::atomic<uint64_t> refused;          ///< buffers that were not there
  std::atomic<uint64_t> unbuffered;       ///< dropped by CUPTI, which got no buffer
  std::atomic<uint64_t> dropped;          ///< by CUPTI, which got all that it asked for
  std::atomic<uint64_t> without_times;    ///< the device lost them
  std::atomic<uint64_t> discarded_bytes;  ///< of records in the buffer to throw away
  std::atomic<uint64_t> late_bytes;       ///< of records that came when CUPTI was not ours any more
  std::atomic<uint64_t> unknown;          ///< stretches of a buffer that are no record we know
  std::atomic<uint64_t> damaged;          ///< records, or all behind one in a buffer
  std::atomic<uint64_t> nameless;         ///< kernels: not missing, but which is not told
};

struct Shared {
  BufferPool pool;
  Quirks quirks;
  int pid;
  bool are_graphs_confused;  ///< correlation ids of graphs are others' now: written in cuInit, then
                             ///< by our thread
  Missing missing;
  std::atomic<bool> is_dead;              ///< CUPTI reported a fatal error, or refuses to flush
  std::atomic<bool> has_requested;        ///< a buffer was asked for: flushing is allowed
  std::atomic<uint64_t> last_request_ns;  ///< for a buffer, by a thread of the program
  std::atomic<bool> has_skipped_flush;    ///< one that somebody needed
  std::atomic<bool> wants_flush;          ///< a buffer was refused: those of others hold little
  Releases releases;
  std::atomic<int> worker_thread;  ///< of CUPTI, that hands buffers over; 0: not yet
  std::atomic<int> drain_thread;   ///< ours
  std::atomic<bool> is_flushing;   ///< one thread at a time: versions are known to crash in it
  /// Ticks: records of what was over before are read. Of our thread, for the one that exits.
  std::atomic<uint64_t> complete_ticks;
  /// What is not recorded now, null: nothing, and since when that was not told, which is written
  /// before. Of our thread, for the one that exits.
  std::atomic<const char*> open_gap;
  std::atomic<uint64_t> open_gap_ticks;
  std::atomic<uint64_t> exit_ticks;  ///< when the program called exit(); 0: not yet
  std::atomic<uint64_t> exit_ns;     ///< the same time, written before
  std::atomic<uint32_t> wake;        ///< futex: changes when there is something to do
};

extern Shared g_shared;
/// One process's; all zero before the start.
inline Shared& shared() { return g_shared; }

/// True in the process that started the recording, not in its fork()ed children.
bool is_our_process();

/// Flushes by `flush_all`: our thread, or one of the program's that ends a context. Waits for the
/// other, 0.1 s at most, or not at all; false: it has done without. No lock is held, for CUPTI has
/// its own. `code`: what CUPTI answered.
bool flush_alone(int32_t (*flush_all)(uint32_t flag), uint32_t flag, bool may_wait = true,
                 int32_t* code = nullptr);

/// Wakes our thread.   Thread: any.   Cost: one syscall.
void wake_drain();

/// Waits until wake_drain() was called since `seen` was read, at most `timeout_ms`.
void wait_for_wake(uint32_t seen, uint32_t timeout_ms);

// What CUPTI calls.
void request_buffer(uint8_t** buffer, size_t* bytes, size_t* max_records);
void complete_buffer(void* context, uint32_t stream, uint8_t* buffer, size_t bytes,
                     size_t valid_bytes);
void request_buffer_v2(uint8_t** buffer, size_t* bytes, size_t* max_records, void* info);
void complete_buffer_v2(uint8_t* buffer, size_t bytes, size_t valid_bytes, void* info);
void on_callback(void* user, int32_t domain, uint32_t id, const void* data);

/// Makes a remark (Remarks::set) and writes all of them into the ledger.
/// Thread: any; locks.   Cost: a definition.
void tell(Remark remark, ProviderState state, const char* reason, const char* remedy);

/// Tells what is missing when it has doubled since the last time, or at the end.
void tell_missing(bool is_end);

}  // namespace aon::cupti
