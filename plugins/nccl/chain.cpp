#include "nccl/chain.h"

#include <aon/definition.h>
#include <aon/writer.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <atomic>

#include "nccl/operations.h"

namespace aon::nccl {
namespace {

constexpr uint64_t kPairs = uint64_t{1} << 18;
constexpr uint64_t kChainedRole = uint64_t{7} << 45;  ///< no Role has it
constexpr uint64_t kNumberMask = (uint64_t{1} << 45) - 1;
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

// Written before the first event, then constant.
std::atomic<const ChainedPlugin*> g_plugin;
pthread_mutex_t g_load_mutex = PTHREAD_MUTEX_INITIALIZER;
bool g_was_tried;  ///< guarded by g_load_mutex
Pair* g_pairs;
std::atomic<uint64_t> g_next;
void* g_contexts[kMaxCommunicators];
bool g_is_told[kMaxCommunicators];
int g_their_mask;  ///< theirs writes it whenever it likes
std::atomic<int> g_heeded_mask;
std::atomic<int*> g_mask;  ///< NCCL's

void tell(const char* reason, const char* remedy) {
  char text[512];
  const int bytes = snprintf(text, sizeof text, "nccl%c%.300s%c%.150s", '\0', reason, '\0', remedy);
  ProviderDefinition provider = {};
  provider.state = ProviderState::kDegraded;
  aon_define(static_cast<uint32_t>(DefinitionType::kProvider), &provider, sizeof provider, text,
             static_cast<uint32_t>(bytes) + 1);
}

void* open_library(const char* name) {
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr || strchr(name, '/') != nullptr) return library;
  char path[512];
  snprintf(path, sizeof path, "libnccl-profiler-%.400s.so", name);
  return dlopen(path, RTLD_NOW | RTLD_LOCAL);
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
  void* memory = mmap(nullptr, kPairs * sizeof(Pair), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  g_pairs = static_cast<Pair*>(memory);
  return found;
}

/// Bits of handles of this process.
uint64_t process_bits() {
  const State* state = g_state;
  const uint64_t process = state == nullptr ? 0 : state->process.load(std::memory_order_relaxed);
  return process << 48;
}

void* keep(const BothHandles& both) {
  if (both.ours == nullptr && both.theirs == nullptr) return nullptr;
  const uint64_t number = g_next.fetch_add(1, std::memory_order_relaxed) & kNumberMask;
  Pair& pair = g_pairs[number % kPairs];
  pair.number.store(0, std::memory_order_relaxed);
  pair.ours.store(both.ours, std::memory_order_release);      // pairs with nccl:pair
  pair.theirs.store(both.theirs, std::memory_order_release);  // pairs with nccl:pair
  pair.number.store(number + 1, std::memory_order_release);   // pairs with nccl:pair
  return reinterpret_cast<void*>(process_bits() | kChainedRole | number);
}

/// Both null: of another process, none of ours, or too old.
BothHandles find(const void* handle) {
  const uint64_t bits = reinterpret_cast<uint64_t>(handle);
  if (process_bits() == 0 || (bits & ~kNumberMask) != (process_bits() | kChainedRole)) return {};
  const uint64_t number = bits & kNumberMask;
  const Pair& pair = g_pairs[number % kPairs];
  if (pair.number.load(std::memory_order_acquire) != number + 1) return {};  // pairs with nccl:pair
  BothHandles both;
  both.ours = pair.ours.load(std::memory_order_acquire);      // pairs with nccl:pair
  both.theirs = pair.theirs.load(std::memory_order_acquire);  // pairs with nccl:pair
  if (pair.number.load(std::memory_order_relaxed) != number + 1) return {};
  return both;
}

/// -1: no communicator of ours.
int place_of(const void* context) {
  const Communicator* communicator = communicator_of(context);
  return communicator == nullptr ? -1 : static_cast<int>(communicator - g_state->communicators);
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
  pthread_mutex_lock(&g_load_mutex);  // of several that come first, all wait for the plugin
  if (!g_was_tried && name != nullptr && name[0] != '\0') {
    g_was_tried = true;
    g_plugin.store(load(name, version), std::memory_order_release);  // pairs with nccl:chain
  }
  pthread_mutex_unlock(&g_load_mutex);
  return g_plugin.load(std::memory_order_relaxed);
}

int* chained_mask() { return &g_their_mask; }

int heeded_chained_mask() { return g_heeded_mask.load(std::memory_order_relaxed); }

void heed_chained_mask(int* mask) {
  g_mask.store(mask, std::memory_order_relaxed);
  heed_mask();
}

void set_chained(const void* context, void* their_context, bool is_told) {
  const int place = place_of(context);
  if (place < 0) return;
  g_contexts[place] = their_context;
  g_is_told[place] = is_told;
}

void* take_chained(const void* context) {
  const int place = place_of(context);
  if (place < 0) return nullptr;
  void* theirs = g_contexts[place];
  g_contexts[place] = nullptr;
  g_is_told[place] = false;
  return theirs;
}

bool is_told(uint64_t type, uint64_t mask) {
  constexpr uint64_t kProxyStepUp = kProxyStep | kNetPlugin;
  constexpr uint64_t kProxyUp = kProxyOp | kProxyStepUp;
  constexpr uint64_t kChildren = kProxyUp | kKernelChannel;
  switch (type) {
    case kGroupApi:
      return (mask & ~uint64_t{kProxyCtrl}) != 0;
    case kCollApi:
      return (mask & (kCollApi | kColl | kChildren)) != 0;
    case kP2pApi:
      return (mask & (kP2pApi | kP2p | kChildren)) != 0;
    case kGroup:
      return (mask & (kGroup | kColl | kP2p | kChildren)) != 0;
    case kColl:
      return (mask & (kColl | kChildren)) != 0;
    case kP2p:
      return (mask & (kP2p | kChildren)) != 0;
    case kProxyOp:
      return (mask & kProxyUp) != 0;
    case kProxyStep:
      return (mask & kProxyStepUp) != 0;
    default:
      return (mask & type) != 0;
  }
}

void* start_both(int version, void* context, const Descriptor* descriptor, uint64_t type) {
  alignas(8) char copy[kMaxDescriptorBytes];
  memcpy(copy, descriptor, kDescriptorBytes[version]);
  auto* own = reinterpret_cast<Descriptor*>(copy);
  const BothHandles parent = find(descriptor->parent);
  BothHandles started;
  own->parent = parent.ours;
  started.ours = start_event(version, context, own, type);
  const int place = place_of(context);
  const auto their_mask = static_cast<uint64_t>(__atomic_load_n(&g_their_mask, __ATOMIC_RELAXED));
  if (place >= 0 && g_is_told[place] && is_told(type, their_mask)) {
    own->parent = parent.theirs;
    if (version >= 5 && (type == kColl || type == kP2p)) {
      char* at = copy + (type == kColl ? kCollGroup : kP2pGroup);
      void* group;
      memcpy(&group, at, sizeof group);
      group = find(group).theirs;
      memcpy(at, &group, sizeof group);
    }
    const ChainedPlugin& plugin = *g_plugin.load(std::memory_order_relaxed);
    plugin.start(g_contexts[place], &started.theirs, copy);
    heed_mask();
  }
  return keep(started);
}

void stop_both(void* handle) {
  const BothHandles both = find(handle);
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
