/// What every wrapper begins with: whether this call is recorded, counted, or only forwarded.
///
///     full     recorded                        `record_...`, entered by a jump
///     counted  a counter, then forwarded       a jump; one in N is recorded with its weight N
///     polling  a counter, then looked at       recorded when it found something, and one in N
///     nested   inside another MPI call (mostly the library's own; callbacks.h): only forwarded
///     paused   only forwarded                  a jump
///     unknown  only forwarded: the library is none that we know (library.h)
///
/// Thread: any.   Signal: as MPI.   Cost: one load of the mode, and one of the depth.
#pragma once

#include <aon/writer.h>

#include "mpi/library.h"

namespace aon::mpi {

/// Whether this call is recorded as it is, which most are that are no polls: asked first, and apart
/// from plan_call(), whose other answers take registers that this one would save.
[[gnu::always_inline]] inline bool is_in_full(const Site& site) {
  const Writer* w = writer();
  return AON_LIKELY(w->modes != nullptr) &&
         w->modes[site.id].load(std::memory_order_relaxed) == kModeFull;
}

/// Weight of this call: 0 it is only forwarded, else it is recorded and stands for that many calls.
/// For wrappers that do more than forward in every mode.
[[gnu::always_inline]] inline uint32_t enter(const Site& site, Writer*& w) {
  w = writer();
  if (AON_UNLIKELY(!library_is_known())) return kForward;
  const uint32_t weight = start_plan(w, site, plan_call(site));
  return weight != kForward && is_inside_call(w) ? kForward : weight;
}

/// True inside a call of the same function that came in another language: it is followed there.
/// After enter().
inline bool is_repeated(const Writer* w, const Site& site) {
  const uint32_t depth = w->span_depth & kSpanDepthMask;
  if (w->slot == nullptr || depth == 0 || depth > kOpenSpans) return false;
  return w->slot->open[depth - 1].region == site.id;
}
/// The same of a creation on a communicator: a callback of MPI_Comm_dup may copy another one.
inline bool is_repeated(const Writer* w, const Site& site, uint32_t communicator) {
  if (!is_repeated(w, site)) return false;
  return w->slot->open[(w->span_depth & kSpanDepthMask) - 1].communicator == communicator;
}

[[gnu::always_inline]] inline uint16_t failed(int result) {
  return result == kSuccess ? 0 : static_cast<uint16_t>(kFailed);
}

/// Where a call that looks for something answers: needed only after the real call. It lies on the
/// stack until then, for a register would be saved and restored by the calls that find nothing.
template <class T>
class Late {
 public:
  [[gnu::always_inline]] explicit Late(T value) : value_(value) { asm volatile("" : "+m"(value_)); }
  [[gnu::always_inline]] T get() {
    asm volatile("" : "+m"(value_));
    return value_;
  }

 private:
  T value_;
};

/// The record of a call that was not timed, if it found something: `flags` of the call, `then`
/// writes what, as of when. Returns `result`. Apart, so that the calls that find nothing do not pay
/// for its frame.
template <class IsFound, class Flags, class Then>
[[gnu::noinline]] int record_found(const Site& site, int result, const IsFound& is_found,
                                   const Flags& flags, const Then& then) {
  Writer* w = writer();
  if (result == kSuccess && !is_found()) return result;
  if (w->slot == nullptr) return result;  // the call ended in a fork()ed child
  OpenCall call = begin_call(w, site.id);
  then(w, call.start_ticks);
  finish_span(call, flags());
  return result;
}

}  // namespace aon::mpi
