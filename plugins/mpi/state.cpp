#include "mpi/state.h"

#include <aon/definition.h>
#include <aon/writer.h>
#include <pthread.h>

#include <atomic>

#include "mpi/communicators.h"
#include "mpi/datatypes.h"
#include "mpi/fortran.h"
#include "mpi/library.h"
#include "mpi/lock.h"

namespace aon::mpi {
namespace {

enum class Life : uint32_t { kUnknown = 0, kReady = 1, kOver = 2 };
constexpr int kThreadMultiple = 3;  ///< position of MPI_THREAD_MULTIPLE among the levels

std::atomic<Life> g_life{Life::kUnknown};
pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
IdentityDefinition g_identity;  // guarded by g_mutex, constant when ready

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

/// The library is not one of ours: calls are recorded as spans only.
void tell_unknown_library() {
  static const char kText[] =
      "mpi\0the MPI library in use is not known: no peers, bytes and communicators\0"
      "use Open MPI 4 or 5";
  define_provider(ProviderState::kDegraded, kText, sizeof kText);
}

/// Asks MPI who we are. The mutex is held.
void become_ready() {
  int rank = 0;
  int process_count = 0;
  int thread_level = 0;
  if (queries.query_thread != nullptr) queries.query_thread(&thread_level);
  if (queries.comm_rank(abi.comm_world, &rank) != kSuccess) return;
  if (queries.comm_size(abi.comm_world, &process_count) != kSuccess) return;
  threads_are_concurrent = thread_level >= kThreadMultiple;
  g_identity = IdentityDefinition{rank, static_cast<uint32_t>(process_count), 0,
                                  static_cast<uint32_t>(thread_level)};
  define_identity(false);
  static const char kText[] = "mpi\0\0";
  define_provider(ProviderState::kOn, kText, sizeof kText);
  learn_datatypes();
  learn_fortran();
  define_world(static_cast<uint32_t>(rank), static_cast<uint32_t>(process_count));
  g_life.store(Life::kReady, std::memory_order_release);  // pairs with mpi:life
}

bool mpi_says_it_runs() {
  int is_initialized = 0;
  int is_finalized = 0;
  if (queries.initialized == nullptr || queries.finalized == nullptr) return false;
  queries.initialized(&is_initialized);
  queries.finalized(&is_finalized);
  return is_initialized != 0 && is_finalized == 0;
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
  if (!library_is_known()) {
    tell_unknown_library();
  } else {
    mpi_is_usable();
  }
}

void mpi_is_ending() noexcept {
  g_life.store(Life::kOver, std::memory_order_release);  // pairs with mpi:life
}

void mpi_is_finalized() noexcept {
  if (g_identity.world_size != 0) define_identity(true);
}

}  // namespace aon::mpi
