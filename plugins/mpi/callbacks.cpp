#include "mpi/callbacks.h"

#include <string.h>

#include <atomic>

#include "mpi/call.h"
#include "mpi/files.h"
#include "mpi/fortran.h"
#include "mpi/library.h"
#include "mpi/loaded.h"
#include "mpi/provider.h"

namespace aon::mpi {
namespace {

std::atomic<uint64_t> g_count{0};
std::atomic<const void*> g_forwarders[kFunctionCount];  // callers in Fortran's libraries, the last

/// Whether `caller` lies where one of Fortran's functions of this name is, which may call C's, or
/// here: our Fortran wrappers call from a common place.
bool is_of_fortran(const Site& site, const void* caller) {
  std::atomic<const void*>& known = g_forwarders[site.id];
  if (known.load(std::memory_order_relaxed) == caller) return true;
  bool is_forwarder = are_of_one_file(caller, &g_count);
  for (const auto& functions_of_family : fortran_functions) {
    const void* function = functions_of_family[site.id].load(std::memory_order_relaxed);
    is_forwarder |= function != nullptr && are_of_one_file(caller, function);
  }
  if (is_forwarder) known.store(caller, std::memory_order_relaxed);
  return is_forwarder;
}

/// Whether the call around this one is on a file, or nobody knows which it is.
bool may_be_on_file(const Writer* w) {
  const uint32_t depth = w->span_depth & kSpanDepthMask;
  if (w->slot == nullptr || depth == 0 || depth > kOpenSpans) return true;
  const uint32_t region = w->slot->open[depth - 1].region;
  return region >= kFunctionCount || strncmp(kFunctionNames[region], "MPI_File_", 9) == 0;
}

/// Whether `caller` may be ROMIO. Open MPI 4 has it in a file of its own, which calls no callbacks.
bool may_be_romio(const void* caller) {
  static std::atomic<const void*> known{nullptr};
  if (known.load(std::memory_order_relaxed) == caller) return true;
  constexpr char kRomio[] = "mca_io_romio";
  const char* path = file_of(caller).path;
  const char* slash = strrchr(path, '/');
  if (strncmp(slash != nullptr ? slash + 1 : path, kRomio, sizeof kRomio - 1) == 0) {
    known.store(caller, std::memory_order_relaxed);
    return true;
  }
  return has_live_file_collectives() &&
         are_of_one_file(caller, reinterpret_cast<const void*>(queries.comm_rank));
}

}  // namespace

void note_inside(const Writer* w, const Site& site, const void* caller) noexcept {
  if ((is_repeated(w, site) && is_of_fortran(site, caller)) || may_be_on_file(w)) return;
  if (may_be_romio(caller)) return;
  if (g_count.fetch_add(1, std::memory_order_relaxed) == 0) tell_provider(false);
}

uint64_t unrecorded_calls() noexcept { return g_count.load(std::memory_order_relaxed); }

}  // namespace aon::mpi
