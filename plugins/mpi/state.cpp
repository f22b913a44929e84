#include "mpi/state.h"

#include <aon/crash.h>
#include <aon/definition.h>
#include <aon/process_mutex.h>
#include <aon/writer.h>
#include <string.h>

#include <atomic>

#include "mpi/communicators.h"
#include "mpi/completion.h"
#include "mpi/datatypes.h"
#include "mpi/fortran.h"
#include "mpi/groups.h"
#include "mpi/library.h"
#include "mpi/lock.h"
#include "mpi/memory.h"
#include "mpi/provider.h"
#include "mpi/requests.h"

namespace aon::mpi {
namespace {

enum class Life : uint32_t { kUnknown = 0, kReady = 1, kOver = 2 };
constexpr int kThreadMultiple = kThreadLevels - 1;

std::atomic<Life> g_life{Life::kUnknown};
constinit ProcessMutex g_mutex;
IdentityDefinition g_identity;               // guarded by g_mutex, constant when ready
Handle* g_sessions AON_GUARDED_BY(g_mutex);  // the live ones; the world is the first one's
uint32_t g_session_count AON_GUARDED_BY(g_mutex);
uint32_t g_unlisted_count AON_GUARDED_BY(g_mutex);     // live ones beside those
bool g_session_made_us_ready AON_GUARDED_BY(g_mutex);  // false: MPI_Init did

void define_identity(bool is_complete) {
  IdentityDefinition identity = g_identity;
  identity.complete = is_complete ? 1 : 0;
  aon_define(static_cast<uint32_t>(DefinitionType::kIdentity), &identity, sizeof identity, nullptr,
             0);
}

/// Whether a wrapper of ours was there when MPI began.
bool has_seen_beginning() {
  for (const uint32_t site : {kSiteInit.id, kSiteInit_thread.id, kSiteSession_init.id}) {
    const bool is_seen = known_function(site) != nullptr ||
                         known_fortran(Family::kPlain, site) != nullptr ||
                         known_fortran(Family::kF08, site) != nullptr;
    if (is_seen) return true;
  }
  return false;
}

/// Says who we are, once.
void become(int rank, int process_count, int level) AON_REQUIRES(g_mutex) {
  const bool is_first = g_identity.world_size == 0;
  g_identity = IdentityDefinition{rank, static_cast<uint32_t>(process_count), 0,
                                  static_cast<uint32_t>(level)};
  define_identity(false);
  if (is_first) {
    learn_datatypes();
    provider_notes.has_no_fortran = !learn_fortran();
    provider_notes.is_begun_past_us = !has_seen_beginning();
    provider_notes.front_count = functions_in_front(&provider_notes.front_name);
    tell_provider(false);
    define_world(static_cast<uint32_t>(rank), static_cast<uint32_t>(process_count));
  }
  g_life.store(Life::kReady, std::memory_order_release);  // pairs with mpi:life
}

/// Asks MPI who we are.
void become_ready() AON_REQUIRES(g_mutex) {
  int rank = 0;
  int process_count = 0;
  int thread_support = abi.thread_levels[0];
  if (queries.query_thread != nullptr) queries.query_thread(&thread_support);
  if (queries.comm_rank(abi.comm_world, &rank) != kSuccess) return;
  if (queries.comm_size(abi.comm_world, &process_count) != kSuccess) return;
  const int level = thread_level(thread_support);
  if (level == kThreadMultiple) reckon_with_threads();
  become(rank, process_count, level);
}

/// What a session says of threads: 0 to 3; 0 where it says nothing.
int thread_level_of(Handle session) {
  static constexpr const char* kLevels[] = {"MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED",
                                            "MPI_THREAD_SERIALIZED", "MPI_THREAD_MULTIPLE"};
  uint64_t info = 0;
  char value[64] = "";
  int size = sizeof value;
  int is_there = 0;
  if (queries.session_get_info == nullptr || queries.info_get_string == nullptr ||
      queries.info_free == nullptr || queries.session_get_info(session, &info) != kSuccess) {
    return 0;
  }
  queries.info_get_string(load_handle(&info), "thread_level", &size, value, &is_there);
  queries.info_free(&info);
  for (int level = 0; level <= kThreadMultiple; ++level) {
    if (is_there != 0 && strcmp(value, kLevels[level]) == 0) return level;
  }
  return 0;
}

/// Asks a session who we are.
void become_ready_by(Handle session) AON_REQUIRES(g_mutex) {
  int rank = 0;
  int process_count = 0;
  if (!change_session_world(session, &rank, &process_count)) {
    provider_notes.has_unnamed_world = true;
    tell_provider(false);
    return;
  }
  g_session_made_us_ready = true;
  become(rank, process_count, thread_level_of(session));
}

bool mpi_says_it_runs() {
  int is_initialized = 0;
  int is_finalized = 0;
  if (queries.initialized == nullptr || queries.finalized == nullptr) return false;
  queries.initialized(&is_initialized);
  queries.finalized(&is_finalized);
  return is_initialized != 0 && is_finalized == 0;
}

/// Puts `session` on the list.
void remember_session(Handle session) AON_REQUIRES(g_mutex) {
  if (g_sessions == nullptr) {
    g_sessions = static_cast<Handle*>(map_bytes(kMaxSessions * sizeof(Handle)));
  }
  if (g_sessions != nullptr && g_session_count < kMaxSessions) {
    g_sessions[g_session_count++] = session;
    return;
  }
  ++g_unlisted_count;
  if (provider_notes.sessions_count++ == 0) tell_provider(false);
}

/// Takes `session` off the list. True: it was the first.
bool forget_session(Handle session) AON_REQUIRES(g_mutex) {
  uint32_t at = 0;
  while (at < g_session_count && g_sessions[at] != session) ++at;
  if (at == g_session_count) {
    if (g_unlisted_count != 0) --g_unlisted_count;
    return false;
  }
  g_sessions[at] = g_sessions[--g_session_count];
  return at == 0;
}

/// The world is that of the first session that lives. False: there is none.
bool world_of_first_session() AON_REQUIRES(g_mutex) {
  int rank = 0;
  int process_count = 0;
  const Handle first = g_session_count != 0 ? g_sessions[0] : 0;
  return change_session_world(first, &rank, &process_count);
}

bool look_again() {
  if (!library_is_known() || !mpi_says_it_runs()) return false;
  g_mutex.lock();
  if (g_life.load(std::memory_order_relaxed) == Life::kUnknown) become_ready();
  const bool is_ready = g_life.load(std::memory_order_relaxed) == Life::kReady;
  g_mutex.unlock();
  return is_ready;
}

}  // namespace

bool mpi_is_usable() noexcept {
  const Life life = g_life.load(std::memory_order_acquire);  // pairs with mpi:life
  if (life == Life::kReady) return true;
  return life == Life::kUnknown && look_again();
}

void mpi_is_initialized() noexcept {
  aon_follow_crashes();
  if (!library_is_known()) {
    tell_unknown_library();
  } else if (mpi_is_usable()) {
    learn_exchange_status(abi.comm_self);
    learn_shared_requests(abi.comm_self);
  }
}

void mpi_is_ending() noexcept {
  g_mutex.lock();
  g_session_made_us_ready = world_of_first_session();
  if (!g_session_made_us_ready) {
    g_life.store(Life::kOver, std::memory_order_release);  // pairs with mpi:life
  }
  g_mutex.unlock();
}

void requests_overflow() noexcept { tell_provider(false); }
void communicator_is_ambiguous() noexcept { tell_provider(false); }

void mpi_is_finalized() noexcept {
  if (!library_is_known()) return;
  if (g_life.load(std::memory_order_relaxed) == Life::kReady) return;  // sessions go on
  tell_provider(true);
  if (g_identity.world_size != 0) define_identity(true);
}

void mpi_session_has_begun(Handle session) noexcept {
  aon_follow_crashes();
  if (!library_is_known()) {
    tell_unknown_library();
    return;
  }
  mpi_is_usable();
  g_mutex.lock();
  remember_session(session);
  reckon_with_threads();  // each has a thread level of its own, MPI_Init as well
  if (g_life.load(std::memory_order_relaxed) != Life::kReady) become_ready_by(session);
  g_mutex.unlock();
}

bool mpi_session_is_ending(Handle session) noexcept {
  bool is_end = false;
  g_mutex.lock();
  const bool was_first = forget_session(session);
  if (g_session_made_us_ready) {
    if (was_first && !world_of_first_session() && !mpi_says_it_runs()) {
      g_life.store(Life::kUnknown, std::memory_order_release);  // pairs with mpi:life
    }
    is_end = g_session_count + g_unlisted_count == 0 && !mpi_says_it_runs();
  }
  g_mutex.unlock();
  return is_end;
}

}  // namespace aon::mpi
