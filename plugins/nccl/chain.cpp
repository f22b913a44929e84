#include "nccl/chain.h"

#include <aon/definition.h>
#include <aon/process_mutex.h>
#include <aon/writer.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>
#include <optional>
#include <utility>

#include "nccl/gpu_clock.h"
#include "nccl/operations.h"
#include "nccl/remarks.h"

namespace aon::nccl {
namespace {

constexpr uint64_t kChainedRole = uint64_t{7} << 45;  ///< no Role has it
constexpr uint64_t kContext = uint64_t{1} << 44;      ///< or else it is a handle
constexpr uint64_t kNumberMask = (uint64_t{1} << 44) - 1;
constexpr uint32_t kCallShift = 42;  ///< in an event's number, above its count: kCall... of ours
constexpr uint64_t kCountMask = (uint64_t{1} << kCallShift) - 1;
constexpr uint32_t kGenerationShift = 16;  ///< in a context's number, above its place
constexpr size_t kMaxDescriptorBytes = 136;
constexpr size_t kDescriptorBytes[8] = {0, 120, 128, 120, 104, 112, 112, 136};
constexpr size_t kCollGroup = 104;  ///< offsets of parentGroup, from version 5 on
constexpr size_t kP2pGroup = 64;

/// Both handles of an event. `number` is one more than the event's, 0 while it changes.
struct Pair {
  std::atomic<uint64_t> number;
  std::atomic<void*> ours;
  std::atomic<void*> theirs;
};
struct BothHandles {
  void* ours = nullptr;
  void* theirs = nullptr;
};

/// Of a communicator. What its number publishes is constant while NCCL has it; a callback may read
/// it while its communicator goes (ncclCommAbort) and another one's comes to its place.
struct Contexts {
  std::atomic<uint64_t> number;  ///< one more than the context's; 0: nobody's
  std::atomic<void*> ours;       ///< null: declined
  std::atomic<void*> theirs;
  std::atomic<bool> is_told;  ///< theirs
};
struct BothContexts {
  void* ours;
  void* theirs;
  bool is_told;
};

constinit ProcessMutex g_mutex;

/// Empty in a child of fork(), to which nothing of its parent's is its own.
struct Tables {
  std::atomic<uint32_t> process;  ///< tag; 0: no init yet
  std::atomic<uint64_t> next_pair;
  std::atomic<uint64_t> too_old;  ///< ends of events whose pair was another's by then
  uint64_t context_count AON_GUARDED_BY(g_mutex);  ///< so far
  uint32_t place_count AON_GUARDED_BY(g_mutex);    ///< of `contexts`
  Contexts contexts[kMaxContexts];
  Pair pairs[kPairs];
};

// Written before the first event, then constant.
std::atomic<const ChainedPlugin*> g_plugin;
Tables* g_tables;
bool g_was_tried AON_GUARDED_BY(g_mutex);
int g_version AON_GUARDED_BY(g_mutex);  ///< of the interface, that it was loaded for
int g_their_mask;                       ///< theirs writes it whenever it likes
std::atomic<int> g_heeded_mask;
std::atomic<int*> g_mask;  ///< NCCL's

[[gnu::constructor]] void watch_forks() {
  pthread_atfork(nullptr, nullptr, [] { g_mutex.begin_child(); });
}

void tell(const char* reason, const char* remedy) {
  remark(Topic::kChain, ProviderState::kDegraded, reason, remedy);
}

void* open_library(const char* name) {
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr || strchr(name, '/') != nullptr) return library;
  char path[512];
  snprintf(path, sizeof path, "libnccl-profiler-%.400s.so", name);
  return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/// Ours under the name of theirs would call itself for ever.
bool is_ours(const void* table) {
  Dl_info theirs = {};
  Dl_info ours = {};
  return dladdr(table, &theirs) != 0 && dladdr(&g_plugin, &ours) != 0 &&
         theirs.dli_fbase == ours.dli_fbase;
}

bool is_whole(const ChainedPlugin& plugin) {
  return plugin.init != nullptr && plugin.start != nullptr && plugin.stop != nullptr &&
         plugin.state != nullptr && plugin.finalize != nullptr;
}

/// Why it cannot be called; null: it can.
const char* fault_of(const ChainedPlugin& plugin) {
  if (is_ours(&plugin)) return "is AON's own";
  return is_whole(plugin) ? nullptr : "lacks functions";
}

const ChainedPlugin* load(const char* name, int version) {
  char text[400];
  void* library = open_library(name);
  if (library == nullptr) {
    const char* error = dlerror();
    snprintf(text, sizeof text, "AON_NCCL_CHAIN: %.350s", error != nullptr ? error : name);
    tell(text, "the path of a profiler plugin for NCCL");
    return nullptr;
  }
  char symbol[32];
  snprintf(symbol, sizeof symbol, "ncclProfiler_v%d", version);
  const auto* found = static_cast<const ChainedPlugin*>(dlsym(library, symbol));
  if (found == nullptr) {
    snprintf(text, sizeof text, "AON_NCCL_CHAIN: %.300s has no %s, which this NCCL uses", name,
             symbol);
    tell(text, "a version of that plugin for this NCCL");
    return nullptr;
  }
  if (const char* fault = fault_of(*found)) {
    snprintf(text, sizeof text, "AON_NCCL_CHAIN: %.300s %s", name, fault);
    tell(text, "the path of another profiler plugin");
    return nullptr;
  }
  g_tables = static_cast<Tables*>(map_wiped(sizeof(Tables)));
  if (g_tables == nullptr) tell("AON_NCCL_CHAIN: no memory for the tables of handles", "");
  return g_tables == nullptr ? nullptr : found;
}

/// Bits of handles and contexts of this process; 0: it has none.
uint64_t process_bits() {
  const uint64_t process = g_tables->process.load(std::memory_order_relaxed);
  return process == 0 ? 0 : process << 48 | kChainedRole;
}

void* keep(const BothHandles& both) {
  if (both.ours == nullptr && both.theirs == nullptr) return nullptr;
  const Handle ours = Handle::of(both.ours);
  const uint64_t call = ours.role == Role::kApi ? ours.channel : 0;
  const uint64_t count = g_tables->next_pair.fetch_add(1, std::memory_order_relaxed);
  const uint64_t number = call << kCallShift | (count & kCountMask);
  Pair& pair = g_tables->pairs[number % kPairs];
  pair.number.store(0, std::memory_order_relaxed);
  pair.ours.store(both.ours, std::memory_order_release);      // pairs with nccl:pair
  pair.theirs.store(both.theirs, std::memory_order_release);  // pairs with nccl:pair
  pair.number.store(number + 1, std::memory_order_release);   // pairs with nccl:pair
  return reinterpret_cast<void*>(process_bits() | number);
}

bool is_event(const void* handle) {
  const uint64_t bits = reinterpret_cast<uint64_t>(handle);
  return process_bits() != 0 && (bits & ~kNumberMask) == process_bits();
}

/// Both null: of another process, none of ours, or too old.
BothHandles find(const void* handle) {
  if (!is_event(handle)) return {};
  const uint64_t number = reinterpret_cast<uint64_t>(handle) & kNumberMask;
  const Pair& pair = g_tables->pairs[number % kPairs];
  if (pair.number.load(std::memory_order_acquire) != number + 1) return {};  // pairs with nccl:pair
  BothHandles both;
  both.ours = pair.ours.load(std::memory_order_acquire);      // pairs with nccl:pair
  both.theirs = pair.theirs.load(std::memory_order_acquire);  // pairs with nccl:pair
  if (pair.number.load(std::memory_order_relaxed) != number + 1) return {};
  return both;
}

/// As find(); a call that is too old, for a graph has captured it, is at least known as such.
BothHandles find_parent(const void* handle) {
  const BothHandles both = find(handle);
  const auto call = static_cast<uint32_t>(reinterpret_cast<uint64_t>(handle) >> kCallShift & 3);
  if (both.ours != nullptr || both.theirs != nullptr || !is_event(handle) || call == 0 ||
      g_state == nullptr)
    return both;
  const Handle nowhere{g_state->process.load(std::memory_order_relaxed),
                       Role::kApi,
                       kMaxCommunicators - 1,
                       kMaxOperations - 1,
                       call,
                       0};
  return {nowhere.pointer(), nullptr};
}

bool is_of_process(const void* context) {
  const uint64_t bits = reinterpret_cast<uint64_t>(context);
  return (bits & ~kNumberMask) == (process_bits() | kContext);
}

/// None: of another process, none of ours, or finalized.
std::optional<BothContexts> contexts_of(const void* context) {
  if (process_bits() == 0 || !is_of_process(context)) return std::nullopt;
  const uint64_t number = reinterpret_cast<uint64_t>(context) & kNumberMask;
  const Contexts& found = g_tables->contexts[number % kMaxContexts];
  if (found.number.load(std::memory_order_acquire) != number + 1)  // pairs with nccl:contexts
    return std::nullopt;
  const BothContexts both = {
      found.ours.load(std::memory_order_acquire),      // pairs with nccl:contexts
      found.theirs.load(std::memory_order_acquire),    // pairs with nccl:contexts
      found.is_told.load(std::memory_order_acquire)};  // pairs with nccl:contexts
  if (found.number.load(std::memory_order_relaxed) != number + 1) return std::nullopt;
  return both;
}

/// A place that no communicator has, or null.
Contexts* free_contexts() AON_REQUIRES(g_mutex) {
  for (uint32_t i = 0; i < g_tables->place_count; ++i) {
    Contexts& place = g_tables->contexts[i];
    if (place.number.load(std::memory_order_acquire) == 0)
      return &place;  // pairs with nccl:contexts
  }
  if (g_tables->place_count == kMaxContexts) return nullptr;
  return &g_tables->contexts[g_tables->place_count++];
}

/// Work of a proxy for another process: its contexts and parents are pointers there.
bool is_foreign(const void* context, uint64_t type) {
  const bool is_proxys = (type & (kProxyOp | kProxyStep | kNetPlugin)) != 0;
  return is_proxys && context != nullptr && process_bits() != 0 && !is_of_process(context);
}

/// Bits that ours asks for, too, stay in NCCL's mask; so do those of nobody here.
void heed_mask() {
  const int wanted = __atomic_load_n(&g_their_mask, __ATOMIC_RELAXED);
  int heeded = g_heeded_mask.load(std::memory_order_relaxed);
  int* mask = g_mask.load(std::memory_order_relaxed);
  if (AON_LIKELY(wanted == heeded) || mask == nullptr) return;
  if (!g_heeded_mask.compare_exchange_strong(heeded, wanted, std::memory_order_relaxed)) return;
  const int gone = heeded & ~wanted & ~own_mask();
  __atomic_fetch_and(mask, ~gone, __ATOMIC_RELAXED);
  __atomic_fetch_or(mask, wanted | (gone & own_mask()), __ATOMIC_RELAXED);  // the level has risen
}

}  // namespace

bool has_chain() {
  return g_plugin.load(std::memory_order_acquire) != nullptr;  // pairs with nccl:chain
}

const ChainedPlugin* chained_plugin(int version) {
  const char* name = getenv(kChainVariable);
  g_mutex.lock();  // of several that come first, all wait for the plugin
  // Later it would find contexts that are not pairs.
  if (!std::exchange(g_was_tried, true) && name != nullptr && name[0] != '\0') {
    g_plugin.store(load(name, version), std::memory_order_release);  // pairs with nccl:chain
    g_version = version;
  }
  const ChainedPlugin* plugin = g_plugin.load(std::memory_order_relaxed);
  if (plugin != nullptr && g_tables->process.load(std::memory_order_relaxed) == 0)
    g_tables->process.store(make_tag(raw_ns()), std::memory_order_relaxed);
  const bool is_of_another = plugin != nullptr && g_version != version;
  g_mutex.unlock();
  if (!is_of_another) return plugin;
  tell("AON_NCCL_CHAIN: it is not told of another NCCL in the program, which is of another version",
       "one NCCL in a program");
  return nullptr;
}

void tell_failed_chain(int code) {
  char text[64];
  snprintf(text, sizeof text, "AON_NCCL_CHAIN: its init failed (%d)", code);
  tell(text, "");
}

int* chained_mask() { return &g_their_mask; }

int heeded_chained_mask() { return g_heeded_mask.load(std::memory_order_relaxed); }

uint64_t lost_pair_ends() {
  return g_tables == nullptr ? 0 : g_tables->too_old.load(std::memory_order_relaxed);
}

void heed_chained_mask(int* mask) {
  g_mask.store(mask, std::memory_order_relaxed);
  heed_mask();
  __atomic_fetch_or(mask, heeded_chained_mask(), __ATOMIC_RELAXED);  // it may be another library's
}

void* keep_contexts(void* ours, void* theirs, bool is_told) {
  if (ours == nullptr && !is_told) return nullptr;
  g_mutex.lock();
  Contexts* kept = free_contexts();
  uint64_t number = 0;
  if (kept != nullptr) {
    const auto place = static_cast<uint64_t>(kept - g_tables->contexts);
    number = (g_tables->context_count++ << kGenerationShift | place) & kNumberMask;
    kept->ours.store(ours, std::memory_order_release);          // pairs with nccl:contexts
    kept->theirs.store(theirs, std::memory_order_release);      // pairs with nccl:contexts
    kept->is_told.store(is_told, std::memory_order_release);    // pairs with nccl:contexts
    kept->number.store(number + 1, std::memory_order_release);  // pairs with nccl:contexts
  }
  g_mutex.unlock();
  if (kept != nullptr) return reinterpret_cast<void*>(process_bits() | kContext | number);
  tell("AON_NCCL_CHAIN: communicators beyond 65536 at a time are told nobody",
       "destroy communicators that are not used any more");
  remove_communicator(ours);
  if (is_told && theirs != nullptr) g_plugin.load(std::memory_order_relaxed)->finalize(theirs);
  return nullptr;
}

void finalize_both(void* context) {
  const std::optional<BothContexts> found = contexts_of(context);
  if (!found) return;
  const uint64_t number = reinterpret_cast<uint64_t>(context) & kNumberMask;
  g_tables->contexts[number % kMaxContexts].number.store(
      0, std::memory_order_release);  // pairs with nccl:contexts
  remove_communicator(found->ours);
  if (found->is_told && found->theirs != nullptr)
    g_plugin.load(std::memory_order_relaxed)->finalize(found->theirs);
}

void* start_both(int version, void* context, const Descriptor* descriptor, uint64_t type) {
  alignas(8) char copy[kMaxDescriptorBytes];
  memcpy(copy, descriptor, kDescriptorBytes[version]);
  auto* own = reinterpret_cast<Descriptor*>(copy);
  const BothHandles parent = find_parent(descriptor->parent);
  BothHandles started;
  own->parent = parent.ours;
  const std::optional<BothContexts> contexts = contexts_of(context);
  started.ours = start_event(version, contexts ? contexts->ours : context, own, type);
  heed_mask();
  const bool is_theirs = contexts ? contexts->is_told : is_foreign(context, type);
  const auto mask = static_cast<uint64_t>(heeded_chained_mask());
  if (is_theirs && is_told(type, mask & events_of(version))) {
    own->parent = parent.theirs;
    if (version >= 5 && (type == kColl || type == kP2p)) {
      char* at = copy + (type == kColl ? kCollGroup : kP2pGroup);
      void* group;
      memcpy(&group, at, sizeof group);
      group = find(group).theirs;
      memcpy(at, &group, sizeof group);
    }
    const ChainedPlugin& plugin = *g_plugin.load(std::memory_order_relaxed);
    plugin.start(contexts ? contexts->theirs : nullptr, &started.theirs, copy);
    heed_mask();
  }
  return keep(started);
}

void stop_both(void* handle) {
  const BothHandles both = find(handle);
  if (both.ours == nullptr && both.theirs == nullptr && is_event(handle))
    g_tables->too_old.fetch_add(1, std::memory_order_relaxed);
  if (both.ours != nullptr) stop_event(both.ours);
  if (both.theirs != nullptr) g_plugin.load(std::memory_order_relaxed)->stop(both.theirs);
}

void record_state_both(void* handle, int state, void* arguments) {
  const BothHandles both = find(handle);
  if (both.ours != nullptr)
    record_state(both.ours, state, static_cast<const StateArguments*>(arguments));
  if (both.theirs != nullptr)
    g_plugin.load(std::memory_order_relaxed)->state(both.theirs, state, arguments);
}

}  // namespace aon::nccl
