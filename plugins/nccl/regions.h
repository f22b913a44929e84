/// The host's calls as regions of the calling thread: kBegin and kEnd, for regions of other tools
/// (NCCL's own NVTX ranges) lie between. Each thread remembers what it has open, so that a stop
/// that comes twice ends nothing, and one that never comes ends with the next call.
/// Thread: the caller's.   Signal: no.   Cost: 2 to 3 ns and a clock read.
#pragma once

#include <aon/annotation.h>

#include "nccl/state.h"

namespace aon::nccl {

inline ThreadState& state_of(const Writer* w) {
  ThreadState& thread = g_state->threads[w->slot_index];
  const uint32_t tid = w->slot->tid.load(std::memory_order_relaxed);
  if (AON_UNLIKELY(thread.tid != tid)) thread = {tid, nullptr, nullptr, nullptr};
  return thread;
}

inline void put_begin(Writer* w, const Annotation* region, uint64_t now) {
  put_region(w, RecordKind::kBegin, now, region);
}
inline void put_end(Writer* w, const Annotation* region, uint64_t now) {
  if (AON_UNLIKELY(w->tracked_regions != 0) && !aon_annotation_ends(w)) return;
  put_region(w, RecordKind::kEnd, now, region);
}

/// Ends the region of a call on this thread, if there is one.
inline void end_call(Writer* w, uint64_t now) {
  if (w->slot == nullptr) return;
  ThreadState& thread = state_of(w);
  if (thread.call == nullptr) return;
  put_end(w, thread.call, now);
  thread.call = nullptr;
}

/// The same where it is this call's: its operation is over, for its communicator has gone.
inline void end_call_of(const void* handle, Writer* w) {
  if (state_of(w).handle == handle) end_call(w, ticks(w));
}

inline void begin_call_region(Writer* w, const Annotation* region, const void* handle,
                              uint64_t now) {
  end_call(w, now);  // one whose stop never came
  w = annotation_writer(region, RecordKind::kBegin);
  if (w != nullptr) put_begin(w, region, now);
  w = writer();  // a begin that a pause skipped has an end too
  if (w->slot == nullptr) return;
  ThreadState& thread = state_of(w);
  thread.call = region;
  thread.handle = handle;
}

inline void begin_group_end(void* group) {
  Writer* w = attached_writer();
  if (w == nullptr) return;
  const uint64_t now = ticks(w);
  ThreadState& thread = state_of(w);
  if (thread.group != nullptr) put_end(w, group_region(), now);
  thread.group = group;
  w = annotation_writer(group_region(), RecordKind::kBegin);
  if (w != nullptr) put_begin(w, group_region(), now);
}

inline void finish_group(const void* group) {
  Writer* w = writer();
  if (w->slot == nullptr) return;
  ThreadState& thread = state_of(w);
  if (thread.group != group) return;
  thread.group = nullptr;
  put_end(w, group_region(), ticks(w));
}

}  // namespace aon::nccl
