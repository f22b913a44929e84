// Preloaded wrappers as a shim writes them, one per mode.
#include <aon/definition.h>
#include <aon/writer.h>
#include <dlfcn.h>

#include "tests/bench/hotpath/target.h"

namespace {

using aon::Site;
using aon::Writer;
using Function = int (*)(HOTPATH_PARAMETERS);

constexpr uint8_t kRole = static_cast<uint8_t>(aon::RegionRole::kPointToPoint);
constexpr uint8_t kParadigm = static_cast<uint8_t>(aon::Paradigm::kMpi);
constexpr uint32_t kSampled = aon::kModeSample + 31;

constexpr Site kRecorded = {1, "hotpath_recorded", kRole, kParadigm, aon::kModeFull};
constexpr Site kCounted = {2, "hotpath_counted", kRole, kParadigm, aon::kModeCount};
constexpr Site kPolled = {3, "hotpath_sampled", kRole, kParadigm, kSampled};
constexpr Site kPaused = {4, "hotpath_paused", kRole, kParadigm, aon::kModeOff};

Function g_forward, g_clock, g_recorded, g_counted, g_sampled, g_paused;

Function next(const char* name) { return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name)); }

[[gnu::constructor]] void find_functions() {
  g_forward = next("hotpath_forward");
  g_clock = next("hotpath_clock");
  g_recorded = next("hotpath_recorded");
  g_counted = next("hotpath_counted");
  g_sampled = next("hotpath_sampled");
  g_paused = next("hotpath_paused");
}

template <const Site& site, Function& real>
[[gnu::always_inline]] inline int record(HOTPATH_PARAMETERS) {
  const uint32_t id = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(communicator));
  const uint64_t bytes = static_cast<uint64_t>(count) * 8;
  const uint64_t peer_tag = aon::pack_pair(peer, tag);
  aon::OpenCall call = aon::begin_call(aon::writer(), site.id, id, peer_tag, bytes);
  const int result = real(HOTPATH_ARGUMENTS);
  finish_message(call, aon::kOutgoing | aon::kNonblocking, id, bytes, peer_tag,
                 reinterpret_cast<uint64_t>(request));
  return result;
}

/// Recorded in full: the wrapper's own parameters, so that it is entered by a jump.
template <const Site& site, Function& real>
[[gnu::noinline]] int record_full(HOTPATH_PARAMETERS) {
  return record<site, real>(HOTPATH_ARGUMENTS);
}

template <const Site& site, Function& real>
[[gnu::noinline]] int record_other(HOTPATH_PARAMETERS, uint32_t plan) {
  Writer* w = aon::writer();
  const uint32_t weight = aon::start_plan(w, site, plan);
  if (weight == aon::kForward) return real(HOTPATH_ARGUMENTS);
  return record<site, real>(HOTPATH_ARGUMENTS);
}

template <const Site& site, Function& real>
[[gnu::always_inline]] inline int wrap(HOTPATH_PARAMETERS) {
  const uint32_t plan = aon::plan_call(site);
  if (plan == 1) return record_full<site, real>(HOTPATH_ARGUMENTS);
  if (plan == aon::kForward) return real(HOTPATH_ARGUMENTS);
  return record_other<site, real>(HOTPATH_ARGUMENTS, plan);
}

}  // namespace

extern "C" {

AON_EXPORT int hotpath_forward(HOTPATH_PARAMETERS) { return g_forward(HOTPATH_ARGUMENTS); }

AON_EXPORT int hotpath_clock(HOTPATH_PARAMETERS) {
  const Writer* w = aon::writer();
  const uint64_t start = aon::ticks(w);
  const int result = g_clock(HOTPATH_ARGUMENTS);
  const uint64_t duration = aon::ticks(w) - start;
  asm volatile("" ::"r"(duration));
  return result;
}

AON_EXPORT int hotpath_recorded(HOTPATH_PARAMETERS) {
  return wrap<kRecorded, g_recorded>(HOTPATH_ARGUMENTS);
}
AON_EXPORT int hotpath_counted(HOTPATH_PARAMETERS) {
  return wrap<kCounted, g_counted>(HOTPATH_ARGUMENTS);
}
AON_EXPORT int hotpath_sampled(HOTPATH_PARAMETERS) {
  return wrap<kPolled, g_sampled>(HOTPATH_ARGUMENTS);
}
AON_EXPORT int hotpath_paused(HOTPATH_PARAMETERS) {
  return wrap<kPaused, g_paused>(HOTPATH_ARGUMENTS);
}

AON_EXPORT void hotpath_event(void** request) {
  Writer* w = aon::writer();
  aon::put_completion(w, aon::ticks(w), aon::kOutgoing, 1, 8, aon::pack_pair(1, 2),
                      reinterpret_cast<uint64_t>(request));
}

}  // extern "C"
