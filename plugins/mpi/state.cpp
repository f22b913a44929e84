#include "mpi/state.h"

#include <aon/crash.h>
#include <aon/definition.h>
#include <aon/writer.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <atomic>

#include "mpi/communicators.h"
#include "mpi/completion.h"
#include "mpi/datatypes.h"
#include "mpi/fortran.h"
#include "mpi/groups.h"
#include "mpi/library.h"
#include "mpi/lock.h"
#include "mpi/requests.h"

namespace aon::mpi {
namespace {

enum class Life : uint32_t { kUnknown = 0, kReady = 1, kOver = 2 };
constexpr int kThreadMultiple = kThreadLevels - 1;

std::atomic<Life> g_life{Life::kUnknown};
pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
IdentityDefinition g_identity;  // guarded by g_mutex, constant when ready
constexpr int kMaxSessions = 16;
Handle g_sessions[kMaxSessions];  // guarded by g_mutex: the live ones; the world is the first one's
int g_session_count;              // guarded by g_mutex
bool g_session_made_us_ready;     // guarded by g_mutex; false: MPI_Init did

void define_identity(bool is_complete) {
  IdentityDefinition identity = g_identity;
  identity.complete = is_complete ? 1 : 0;
  aon_define(static_cast<uint32_t>(DefinitionType::kIdentity), &identity, sizeof identity, nullptr,
             0);
}

void define_provider(ProviderState provider_state, const char* text, uint32_t text_bytes) {
  ProviderDefinition provider = {};
  provider.state = provider_state;
  aon_define(static_cast<uint32_t>(DefinitionType::kProvider), &provider, sizeof provider, text,
             text_bytes);
}

/// The library is not one of ours: calls are only forwarded.
void tell_unknown_library() {
  const char* soname = library_soname();
  const bool is_standard = strncmp(soname, "libmpi_abi.so", 13) == 0;
  char text[320];
  // Three strings: name, reason, remedy.
  const int size =
      snprintf(text, sizeof text, "mpi%cthe MPI library in use, %.96s, %s%c%s", '\0',
               soname[0] != '\0' ? soname : "of no name",
               is_standard ? "does not have version 1 of MPI's ABI: its calls are not recorded"
                           : "is not known: its calls are not recorded",
               '\0',
               "use Open MPI 2 to 5 (tested: 4), MPICH 3.1 or later (tested: 4), or one of "
               "its ABI");
  define_provider(ProviderState::kOff, text, static_cast<uint32_t>(size) + 1);
}

/// Its calls are recorded; what is to be said of it all the same.
void tell_known_library() {
  static const char kText[] = "mpi\0\0";
  const char* caveat = library_backend()->caveat;
  if (caveat == nullptr) {
    define_provider(ProviderState::kOn, kText, sizeof kText);
    return;
  }
  const char* remedy = caveat + strlen(caveat) + 1;
  char text[512];
  const int size = snprintf(text, sizeof text, "mpi%c%s%c%s", '\0', caveat, '\0', remedy);
  const int most = static_cast<int>(sizeof text) - 1;
  define_provider(ProviderState::kDegraded, text,
                  static_cast<uint32_t>(size < most ? size : most) + 1);
}

void tell_unfollowed(uint64_t count) {
  char text[256];
  // Three strings: name, reason, remedy.
  const int size =
      snprintf(text, sizeof text,
               "mpi%c%s%llu requests are not followed: %llu were live at once; their "
               "completions are missing%ccomplete or free requests earlier",
               '\0', count == 1 ? "at least " : "", static_cast<unsigned long long>(count),
               static_cast<unsigned long long>(kMaxLiveRequests), '\0');
  define_provider(ProviderState::kDegraded, text, static_cast<uint32_t>(size) + 1);
}

/// Says who we are, once. The mutex is held.
void become(int rank, int process_count, int level) {
  const bool is_first = g_identity.world_size == 0;
  g_identity = IdentityDefinition{rank, static_cast<uint32_t>(process_count), 0,
                                  static_cast<uint32_t>(level)};
  define_identity(false);
  if (is_first) {
    static const char kNoFortran[] =
        "mpi\0the library is made for a Fortran INTEGER of more than 4 bytes: calls from Fortran "
        "are "
        "not recorded\0use the library for 4 bytes";
    learn_datatypes();
    if (learn_fortran()) {
      tell_known_library();
    } else {
      define_provider(ProviderState::kDegraded, kNoFortran, sizeof kNoFortran);
    }
    define_world(static_cast<uint32_t>(rank), static_cast<uint32_t>(process_count));
  }
  g_life.store(Life::kReady, std::memory_order_release);  // pairs with mpi:life
}

/// Asks MPI who we are. The mutex is held.
void become_ready() {
  int rank = 0;
  int process_count = 0;
  int thread_support = abi.thread_levels[0];
  if (queries.query_thread != nullptr) queries.query_thread(&thread_support);
  if (queries.comm_rank(abi.comm_world, &rank) != kSuccess) return;
  if (queries.comm_size(abi.comm_world, &process_count) != kSuccess) return;
  const int level = thread_level(thread_support);
  threads_are_concurrent = level == kThreadMultiple;
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

/// Asks a session who we are. Each session has a thread level of its own, so threads may be
/// concurrent whatever this one says. The mutex is held.
void become_ready_by(Handle session) {
  int rank = 0;
  int process_count = 0;
  if (!use_session_world(session, &rank, &process_count)) {
    static const char kText[] =
        "mpi\0the library does not name the processes of a session: no peers, bytes and "
        "communicators\0call MPI_Init";
    define_provider(ProviderState::kDegraded, kText, sizeof kText);
    return;
  }
  threads_are_concurrent = true;
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

/// Takes `session` off the list. True: it was the first. The mutex is held.
bool forget_session(Handle session) {
  int at = 0;
  while (at < g_session_count && g_sessions[at] != session) ++at;
  if (at == g_session_count) return false;
  for (int i = at + 1; i < g_session_count; ++i) g_sessions[i - 1] = g_sessions[i];
  --g_session_count;
  return at == 0;
}

bool look_again() {
  if (!library_is_known() || !mpi_says_it_runs()) return false;
  pthread_mutex_lock(&g_mutex);
  if (g_life.load(std::memory_order_relaxed) == Life::kUnknown) become_ready();
  const bool is_ready = g_life.load(std::memory_order_relaxed) == Life::kReady;
  pthread_mutex_unlock(&g_mutex);
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
    learn_exchange_status();
  }
}

void mpi_is_ending() noexcept {
  g_life.store(Life::kOver, std::memory_order_release);  // pairs with mpi:life
}

void requests_overflow() noexcept { tell_unfollowed(1); }

void mpi_is_finalized() noexcept {
  if (const uint64_t count = unfollowed_requests(); count != 0) tell_unfollowed(count);
  if (g_identity.world_size != 0) define_identity(true);
}

void mpi_session_has_begun(Handle session) noexcept {
  aon_follow_crashes();
  if (!library_is_known()) {
    tell_unknown_library();
    return;
  }
  mpi_is_usable();
  pthread_mutex_lock(&g_mutex);
  if (g_session_count < kMaxSessions) g_sessions[g_session_count++] = session;
  if (g_life.load(std::memory_order_relaxed) == Life::kUnknown) become_ready_by(session);
  pthread_mutex_unlock(&g_mutex);
}

bool mpi_session_is_ending(Handle session) noexcept {
  bool is_end = false;
  pthread_mutex_lock(&g_mutex);
  if (forget_session(session) && g_session_made_us_ready) {
    int rank = 0;
    int process_count = 0;
    leave_session_world();
    is_end = g_session_count == 0 || !use_session_world(g_sessions[0], &rank, &process_count);
    is_end = is_end && !mpi_says_it_runs();
    if (is_end) g_life.store(Life::kUnknown, std::memory_order_release);  // pairs with mpi:life
  }
  pthread_mutex_unlock(&g_mutex);
  return is_end;
}

}  // namespace aon::mpi
