#include "mpi/callbacks.h"

#include <string.h>

#include <atomic>

#include "mpi/call.h"
#include "mpi/library.h"
#include "mpi/provider.h"

namespace aon::mpi {
namespace {

std::atomic<uint64_t> g_count{0};

/// Whether the call around this one is on a file, or nobody knows which it is.
bool may_be_on_file(const Writer* w) {
  const uint32_t depth = w->span_depth & kSpanDepthMask;
  if (w->slot == nullptr || depth == 0 || depth > kOpenSpans) return true;
  const uint32_t region = w->slot->open[depth - 1].region;
  return region >= kFunctionCount || strncmp(kFunctionNames[region], "MPI_File_", 9) == 0;
}

}  // namespace

void note_inside(const Writer* w, const Site& site, const void* caller) noexcept {
  if ((is_repeated(w, site) && is_of_fortran(caller)) || may_be_on_file(w)) return;
  if (g_count.fetch_add(1, std::memory_order_relaxed) == 0) tell_provider(false);
}

uint64_t unrecorded_calls() noexcept { return g_count.load(std::memory_order_relaxed); }

}  // namespace aon::mpi
