/// What every wrapper begins with: whether this call is recorded, counted, or only forwarded.
///
///     full     recorded
///     counted  a counter, then forwarded; one in N is recorded with its weight N (polling)
///     nested   inside another MPI call (the library calls itself by MPI_ names): only forwarded
///     paused   only forwarded
///
/// Thread: any.   Signal: as MPI.   Cost: one load of the mode and one of the depth.
#pragma once

#include <aon/writer.h>

#include "mpi/library.h"

namespace aon::mpi {

/// Weight of this call: 0 it is only forwarded, else it is recorded and stands for that many calls.
[[gnu::always_inline]] inline uint32_t enter(const Site& site, Writer*& w) {
  w = writer();
  const uint32_t mode = site_mode(w, site);
  if (AON_LIKELY(mode == kModeFull)) {
    if (AON_LIKELY(w->span_depth == 0)) return 1;
    aon_writer_unwind_spans(w, current_frame());
    return w->span_depth == 0 ? 1 : 0;
  }
  if (mode == kModeOff || mode >= kModePaused || w->span_depth != 0) return 0;
  return count_call(w, site, mode);
}

/// What to do with a polling call. `is_seen` false: only forwarded. `weight` 0: counted, and
/// recorded afterwards if it found something.
struct Poll {
  Writer* w;
  bool is_seen;
  uint32_t weight;
};

[[gnu::always_inline]] inline Poll enter_poll(const Site& site) {
  Writer* w = writer();
  const uint32_t mode = site_mode(w, site);
  if (mode == kModeOff || mode >= kModePaused) return {w, false, 0};
  if (AON_UNLIKELY(w->span_depth != 0)) {
    aon_writer_unwind_spans(w, current_frame());
    if (w->span_depth != 0) return {w, false, 0};
  }
  return {w, true, mode == kModeFull ? 1 : count_call(w, site, mode)};
}

[[gnu::always_inline]] inline uint16_t failed(int result) {
  return result == kSuccess ? 0 : static_cast<uint16_t>(kFailed);
}

}  // namespace aon::mpi
