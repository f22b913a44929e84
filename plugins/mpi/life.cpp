// The wrappers that functions.table leaves to us: start, end, abort, pause.
#include <aon/standing.h>
#include <stdarg.h>
#include <string.h>

#include <initializer_list>

#include "mpi/call.h"
#include "mpi/files.h"
#include "mpi/fortran.h"
#include "mpi/requests.h"
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
  aon_take_back_stderr();
  if (!aon_attach_begin(&site)) return initialize_unattached(site, real);
  Writer* w;
  const uint32_t weight = enter(site, w);
  if (weight == 0) {
    const int result = real();
    if (result == kSuccess) mpi_is_initialized();
    return result;
  }
  OpenCall call = begin_call(w, site.id);
  const int result = real();
  finish_span(call, failed(result));
  if (result == kSuccess) mpi_is_initialized();
  return result;
}

template <class Call>
int finalize(Call real) {
  const Site& site = kSiteFinalize;
  Writer* w;
  const uint32_t weight = enter(site, w);
  mpi_is_usable();
  OpenCall call;
  if (weight != 0) call = begin_call(w, site.id);
  mpi_is_ending();
  const int result = real();
  if (weight != 0) finish_span(call, failed(result));
  if (result == kSuccess) {
    mpi_is_finalized();
    aon_lend_stderr();
  }
  return result;
}

template <class Call>
int begin_session(Handles session, Call real) {
  aon_take_back_stderr();
  aon_attach_begin(&kSiteSession_init);
  Writer* w;
  OpenCall call;
  const uint32_t weight = enter(kSiteSession_init, w);
  if (weight != 0) call = begin_call(w, kSiteSession_init.id);
  const int result = real();
  if (weight != 0) finish_span(call, failed(result));
  if (result == kSuccess) mpi_session_has_begun(load_handle(session));
  return result;
}

template <class Call>
int end_session(Handles session, Call real) {
  Writer* w;
  OpenCall call;
  const uint32_t weight = enter(kSiteSession_finalize, w);
  if (weight != 0) call = begin_call(w, kSiteSession_finalize.id);
  const bool is_last = !session.is_null() && mpi_session_is_ending(load_handle(session));
  const int result = real();
  if (weight != 0) finish_span(call, failed(result));
  if (result == kSuccess && is_last) {
    mpi_is_finalized();
    aon_lend_stderr();
  }
  return result;
}

/// Does not return: its open-span slot is what the trace has of it.
template <class Call>
int abort_job(Call real) {
  Writer* w;
  if (enter(kSiteAbort, w) == 0) return real();
  OpenCall call = begin_call(w, kSiteAbort.id);
  const int result = real();
  finish_span(call, failed(result));
  return result;
}

/// The call of MPI_Pcontrol that is over, with its level as a value.
void finish_control(const OpenCall& call, int level, int result) {
  finish_call<0>(call, RecordKind::kSpan, failed(result), static_cast<uint32_t>(ValueType::kSigned),
                 static_cast<uint64_t>(int64_t{level}), nullptr);
}

/// Requests are followed where the recording is not.
void set_paused(bool is_paused) {
  if (is_paused) pause_requests(true, has_live_splits());
  aon_set_paused(is_paused);
  if (!is_paused) pause_requests(false, false);
}

/// Level 0 pauses the recording, 1 and above resume it. Both calls are recorded themselves.
template <class Call>
int control(int level, Call real) {
  Writer* w;
  if (level >= 1) set_paused(false);
  const uint32_t weight = enter(kSitePcontrol, w);
  OpenCall call;
  if (weight != 0) call = begin_call(w, kSitePcontrol.id);
  const int result = real();
  if (weight != 0) finish_control(call, level, result);
  if (level == 0) set_paused(true);
  return result;
}

/// A call from Fortran, whose last word is ierror: `then` gets the real one.
template <class Then>
int from_fortran(const Site& site, Family family, std::initializer_list<Word> words, Then then) {
  void* function = real_fortran(family, site.id);
  const uint32_t count = static_cast<uint32_t>(words.size());
  int own_error = kSuccess;
  Word own_words[4] = {};
  memcpy(own_words, words.begin(), count * sizeof(Word));
  Word& error = own_words[count - 1];
  if (error == nullptr) error = &own_error;
  const auto real = [&] {
    call_words(function, own_words, count);
    return integer_at(error);
  };
  return is_recorded(family) ? then(real) : real();
}

int fortran_init(Family family, Word error) {
  return from_fortran(kSiteInit, family, {error},
                      [](auto real) { return initialize(kSiteInit, real); });
}
int fortran_init_thread(Family family, Word required, Word provided, Word error) {
  return from_fortran(kSiteInit_thread, family, {required, provided, error},
                      [](auto real) { return initialize(kSiteInit_thread, real); });
}
int fortran_finalize(Family family, Word error) {
  return from_fortran(kSiteFinalize, family, {error}, [](auto real) { return finalize(real); });
}
int fortran_abort(Family family, Word comm, Word code, Word error) {
  return from_fortran(kSiteAbort, family, {comm, code, error},
                      [](auto real) { return abort_job(real); });
}
int fortran_session_init(Family family, Word info, Word handler, Word session, Word error) {
  const Handles begun(session, session_from_fortran);
  return from_fortran(kSiteSession_init, family, {info, handler, session, error},
                      [=](auto real) { return begin_session(begun, real); });
}
int fortran_session_finalize(Family family, Word session, Word error) {
  const Handles ending(session, session_from_fortran);
  return from_fortran(kSiteSession_finalize, family, {session, error},
                      [=](auto real) { return end_session(ending, real); });
}
int fortran_pcontrol(Family family, Word level) {
  void* function = real_fortran(family, kSitePcontrol.id);
  const auto real = [&] {
    call_words(function, &level, 1);
    return kSuccess;
  };
  return is_recorded(family) ? control(integer_at(level), real) : real();
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
  return finalize([=] { return real(); });
}

/// The process attaches here, as in MPI_Init.
AON_EXPORT int MPI_Session_init(Handle info, Handle errhandler, void* session) {
  const auto real = real_of<int(Handle, Handle, void*)>(kSiteSession_init);
  return begin_session(session, [=] { return real(info, errhandler, session); });
}

AON_EXPORT int MPI_Session_finalize(void* session) {
  const auto real = real_of<int(void*)>(kSiteSession_finalize);
  return end_session(session, [=] { return real(session); });
}

AON_EXPORT int MPI_Abort(Handle comm, int errorcode) {
  const auto real = real_of<int(Handle, int)>(kSiteAbort);
  return abort_job([=] { return real(comm, errorcode); });
}

/// Further arguments are for other tools, who know by the level whether there are any: words go on
/// as they came. As many as x86-64 passes in registers, so that nothing is read that was not given.
AON_EXPORT int MPI_Pcontrol(const int level, ...) {
  const auto real = real_of<int(int, ...)>(kSitePcontrol);
  va_list more;
  va_start(more, level);
  void* words[5];
  for (void*& word : words) word = va_arg(more, void*);
  va_end(more);
  return control(level,
                 [&] { return real(level, words[0], words[1], words[2], words[3], words[4]); });
}

#define AON_LIFE_IN_FORTRAN(family, init, init_thread, finalize, abort, pcontrol, begin, end) \
  AON_EXPORT int init(Word error) { return fortran_init(family, error); }                     \
  AON_EXPORT int init_thread(Word required, Word provided, Word error) {                      \
    return fortran_init_thread(family, required, provided, error);                            \
  }                                                                                           \
  AON_EXPORT int finalize(Word error) { return fortran_finalize(family, error); }             \
  AON_EXPORT int abort(Word comm, Word code, Word error) {                                    \
    return fortran_abort(family, comm, code, error);                                          \
  }                                                                                           \
  AON_EXPORT int pcontrol(Word level) { return fortran_pcontrol(family, level); }             \
  AON_EXPORT int begin(Word info, Word handler, Word session, Word error) {                   \
    return fortran_session_init(family, info, handler, session, error);                       \
  }                                                                                           \
  AON_EXPORT int end(Word session, Word error) {                                              \
    return fortran_session_finalize(family, session, error);                                  \
  }

AON_LIFE_IN_FORTRAN(Family::kPlain, mpi_init_, mpi_init_thread_, mpi_finalize_, mpi_abort_,
                    mpi_pcontrol_, mpi_session_init_, mpi_session_finalize_)
AON_LIFE_IN_FORTRAN(Family::kF08, mpi_init_f08_, mpi_init_thread_f08_, mpi_finalize_f08_,
                    mpi_abort_f08_, mpi_pcontrol_f08_, mpi_session_init_f08_,
                    mpi_session_finalize_f08_)

}  // extern "C"

AON_FORTRAN_SPELLINGS(mpi_init_, mpi_init__, mpi_init, MPI_INIT);
AON_FORTRAN_SPELLINGS(mpi_init_thread_, mpi_init_thread__, mpi_init_thread, MPI_INIT_THREAD);
AON_FORTRAN_SPELLINGS(mpi_finalize_, mpi_finalize__, mpi_finalize, MPI_FINALIZE);
AON_FORTRAN_SPELLINGS(mpi_abort_, mpi_abort__, mpi_abort, MPI_ABORT);
AON_FORTRAN_SPELLINGS(mpi_session_init_, mpi_session_init__, mpi_session_init, MPI_SESSION_INIT);
AON_FORTRAN_SPELLINGS(mpi_session_finalize_, mpi_session_finalize__, mpi_session_finalize,
                      MPI_SESSION_FINALIZE);
AON_FORTRAN_SPELLINGS(mpi_pcontrol_, mpi_pcontrol__, mpi_pcontrol, MPI_PCONTROL);

}  // namespace aon::mpi
