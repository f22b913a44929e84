// The wrappers that functions.table leaves to us: start, end, abort, pause.
#include <stdarg.h>

#include "mpi/call.h"
#include "mpi/state.h"

namespace aon::mpi {
namespace {

template <class Function>
Function* real_of(const Site& site) {
  return reinterpret_cast<Function*>(real_function(site.id));
}

/// Now, in both clocks a process may have: which one it is, the agent says.
struct Instant {
  uint64_t tsc = 0;
  uint64_t raw_ns = 0;
};

Instant read_instant() {
  Writer clock{};
  Instant now;
  now.raw_ns = ticks(&clock);
  clock.clock_is_tsc = 1;
  now.tsc = ticks(&clock);
  return now;
}

/// An MPI_Init during which the agent answered: recorded when it is over.
template <class Call>
int initialize_unattached(const Site& site, Call real) {
  const Instant start = read_instant();
  const int result = real();
  Writer* w;
  if (enter(site, w) != 0) {
    OpenCall call = begin_call(w, site.id);
    call.start_ticks = w->clock_is_tsc != 0 ? start.tsc : start.raw_ns;
    finish_span(call, failed(result));
  }
  if (result == kSuccess) mpi_is_initialized();
  return result;
}

/// Around a real MPI_Init. The process attaches here, before MPI starts its clocks and threads. An
/// agent that is still starting gets the time of MPI_Init to answer.
template <class Call>
int initialize(const Site& site, Call real) {
  if (!aon_attach_begin()) return initialize_unattached(site, real);
  Writer* w;
  const uint32_t weight = enter(site, w);
  if (weight == 0) {
    const int result = real();
    if (result == kSuccess) mpi_is_initialized();
    return result;
  }
  const OpenCall call = begin_call(w, site.id);
  const int result = real();
  finish_span(call, failed(result));
  if (result == kSuccess) mpi_is_initialized();
  return result;
}

}  // namespace

extern "C" {

AON_EXPORT int MPI_Init(int* argc, char*** argv) {
  const auto real = real_of<int(int*, char***)>(kSiteInit);
  return initialize(kSiteInit, [=] { return real(argc, argv); });
}

AON_EXPORT int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const auto real = real_of<int(int*, char***, int, int*)>(kSiteInit_thread);
  return initialize(kSiteInit_thread, [=] { return real(argc, argv, required, provided); });
}

AON_EXPORT int MPI_Finalize(void) {
  const auto real = real_of<int()>(kSiteFinalize);
  Writer* w;
  const uint32_t weight = enter(kSiteFinalize, w);
  mpi_is_usable();
  OpenCall call;
  if (weight != 0) call = begin_call(w, kSiteFinalize.id);
  mpi_is_ending();
  const int result = real();
  if (weight != 0) finish_span(call, failed(result));
  if (result == kSuccess) mpi_is_finalized();
  return result;
}

/// The process attaches here, as in MPI_Init.
AON_EXPORT int MPI_Session_init(Handle info, Handle errhandler, void* session) {
  const auto real = real_of<int(Handle, Handle, void*)>(kSiteSession_init);
  aon_attach_begin();
  Writer* w;
  OpenCall call;
  const uint32_t weight = enter(kSiteSession_init, w);
  if (weight != 0) call = begin_call(w, kSiteSession_init.id);
  const int result = real(info, errhandler, session);
  if (weight != 0) finish_span(call, failed(result));
  if (result == kSuccess) mpi_session_has_begun(load_handle(session));
  return result;
}

AON_EXPORT int MPI_Session_finalize(void* session) {
  const auto real = real_of<int(void*)>(kSiteSession_finalize);
  Writer* w;
  OpenCall call;
  const uint32_t weight = enter(kSiteSession_finalize, w);
  if (weight != 0) call = begin_call(w, kSiteSession_finalize.id);
  const bool is_last = session != nullptr && mpi_session_is_ending(load_handle(session));
  const int result = real(session);
  if (weight != 0) finish_span(call, failed(result));
  if (result == kSuccess && is_last) mpi_is_finalized();
  return result;
}

/// Does not return: its open-span slot is what the trace has of it.
AON_EXPORT int MPI_Abort(Handle comm, int errorcode) {
  const auto real = real_of<int(Handle, int)>(kSiteAbort);
  Writer* w;
  if (enter(kSiteAbort, w) == 0) return real(comm, errorcode);
  const OpenCall call = begin_call(w, kSiteAbort.id);
  const int result = real(comm, errorcode);
  finish_span(call, failed(result));
  return result;
}

/// Level 0 pauses the recording, 1 and above resume it. Further arguments are for other tools; no
/// library looks at them.
AON_EXPORT int MPI_Pcontrol(const int level, ...) {
  const auto real = real_of<int(int, ...)>(kSitePcontrol);
  Writer* w;
  const uint32_t weight = enter(kSitePcontrol, w);
  if (level >= 1) aon_set_paused(false);
  OpenCall call;
  if (weight != 0) call = begin_call(w, kSitePcontrol.id);
  const int result = real(level);
  if (weight != 0) finish_span(call, failed(result));
  if (level == 0) aon_set_paused(true);
  return result;
}

}  // extern "C"
}  // namespace aon::mpi
