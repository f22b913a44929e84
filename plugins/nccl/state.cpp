#include "nccl/state.h"

#include <aon/definition.h>
#include <aon/nccl.h>
#include <aon/process_mutex.h>
#include <aon/writer.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "nccl/chain.h"
#include "nccl/gpu_clock.h"
#include "nccl/operations.h"
#include "nccl/remarks.h"

namespace aon::nccl {

State* g_state;

namespace {

constexpr uint32_t kFirstSlots = 64;

constinit ProcessMutex g_mutex;
bool g_gave_up AON_GUARDED_BY(g_mutex);  ///< nothing is recorded in this process

/// The one thread of a child of fork().
void begin_child() AON_NO_THREAD_SAFETY_ANALYSIS {
  g_mutex.begin_child();
  g_gave_up = false;
}
[[gnu::constructor]] void watch_forks() { pthread_atfork(nullptr, nullptr, begin_child); }

uint64_t mix(uint64_t value) {
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
  value = (value ^ value >> 27) * 0x94d049bb133111ebu;
  return value ^ value >> 31;
}

}  // namespace

void* map_wiped(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  if (madvise(memory, bytes, MADV_WIPEONFORK) == 0) return memory;
  munmap(memory, bytes);
  return nullptr;
}

uint32_t make_tag(uint64_t now_ns) {
  const uint64_t seed = mix(now_ns ^ static_cast<uint64_t>(getpid()) << 40);
  const uint32_t tag = static_cast<uint32_t>(seed & 0xffff);
  return tag != 0 ? tag : 1;
}

namespace {

/// The state of this process, made when it is not there.
State* begin_state(const Writer* w) AON_REQUIRES(g_mutex) {
  if (g_state == nullptr) {
    auto* made = static_cast<State*>(map_wiped(sizeof(State)));
    if (made == nullptr) return nullptr;
    __atomic_store_n(&g_state, made, __ATOMIC_RELEASE);  // pairs with nccl:state
  }
  State& state = *g_state;
  if (state.process.load(std::memory_order_relaxed) != 0) return &state;
  read_pair(w, &state.base_ticks, &state.base_raw_ns);
  define_regions();
  state.pid = getpid();
  state.process.store(make_tag(state.base_raw_ns),
                      std::memory_order_release);  // pairs with nccl:state
  return &state;
}

uint64_t shared_bytes() {
  struct statvfs status;
  if (statvfs("/dev/shm", &status) != 0) return 0;
  return static_cast<uint64_t>(status.f_blocks) * status.f_frsize;
}

/// Whether /dev/shm has room now for what NCCL puts there at the first operation with channels:
/// some 40 MB a rank and communicator. Without it NCCL before 2.31 does not survive (PR #2326), and
/// a program may have filled it since its start (data loaders of PyTorch).
bool has_room_for_channels(const State& state) {
  const int saved_errno = errno;
  struct statvfs status;
  const bool is_known = statvfs("/dev/shm", &status) == 0;
  errno = saved_errno;
  if (!is_known) return false;
  const uint64_t free_bytes = static_cast<uint64_t>(status.f_bavail) * status.f_frsize;
  return free_bytes >= state.live_count.load(std::memory_order_relaxed) * kMinSharedBytes;
}

/// The GPU's times need the rate of the clock, which takes a moment to see.
void wait_for_rate(const State& state) {
  while (raw_ns() - state.base_raw_ns < kLeastRateNs) {
    const timespec moment = {0, kLeastRateNs / 2};
    nanosleep(&moment, nullptr);
  }
}

/// A place that no communicator has, or null.
Communicator* free_place(State& state) {
  const uint32_t count = state.place_count.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < count; ++i) {
    Communicator& place = state.communicators[i];
    if (place.generation.load(std::memory_order_relaxed) % 2 == 0) return &place;
  }
  if (count == kMaxCommunicators) return nullptr;
  Communicator& place = state.communicators[count];
  place.operations = static_cast<Operation*>(map_wiped(kMaxOperations * sizeof(Operation)));
  if (place.operations == nullptr) return nullptr;
  state.place_count.store(count + 1, std::memory_order_relaxed);
  return &place;
}

/// How often this process had a communicator of this id and rank: all ranks count alike.
uint32_t count_generation(State& state, uint64_t id, int32_t rank) {
  for (uint32_t i = 0; i < state.seen_count; ++i) {
    State::Seen& seen = state.seen[i];
    if (seen.id == id && seen.rank == rank) return ++seen.count;
  }
  if (state.seen_count < kMaxSeen) state.seen[state.seen_count++] = {id, rank, 0};
  return 0;
}

uint64_t identity_of(State& state, const CommunicatorFacts& facts) {
  if (facts.id != 0) {
    return mix(mix(facts.id) + count_generation(state, facts.id, facts.rank));
  }
  // Nobody can say whose it is: it stays alone.
  return mix(mix(state.base_raw_ns) ^
             (uint64_t{static_cast<uint32_t>(getpid())} << 32 | state.communicator_count));
}

/// The device of the calling thread, as the driver says where the process has loaded it: NCCL makes
/// it current before init. Ordinal + 1; 0 unknown.
uint8_t current_device() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return 0;
  using GetDevice = int (*)(int*);
  const auto get = reinterpret_cast<GetDevice>(dlsym(driver, "cuCtxGetDevice"));
  int device = -1;
  const bool is_known = get != nullptr && get(&device) == 0 && device >= 0 && device < UINT8_MAX;
  dlclose(driver);
  return is_known ? static_cast<uint8_t>(device + 1) : 0;
}

/// Each communicator is a timeline of its own.
void define_stream(const Communicator& communicator, const char* name) {
  const DeviceStreamDefinition stream = {communicator.id, kNoDevice, 0, 0};
  char text[272];
  const int bytes = snprintf(text, sizeof text, "NCCL %.255s", name);
  aon_define(static_cast<uint32_t>(DefinitionType::kDeviceStream), &stream, sizeof stream, text,
             static_cast<uint32_t>(bytes) + 1);
}

void define_communicator(State& state, const Communicator& communicator,
                         const CommunicatorFacts& facts) {
  CommunicatorDefinition definition = {};
  definition.identity = identity_of(state, facts);
  definition.id = communicator.id;
  definition.parent_id = UINT32_MAX;  // none
  definition.size = communicator.rank_count;
  definition.rank = static_cast<uint32_t>(communicator.rank);
  definition.kind = CommunicatorKind::kNccl;
  definition.reserved[kNcclDevice] = current_device();
  memcpy(&definition.reserved[kNcclNodes], &facts.node_count, sizeof facts.node_count);
  char id[24] = "";
  if (facts.id != 0) snprintf(id, sizeof id, "0x%llx", static_cast<unsigned long long>(facts.id));
  char name[256 + sizeof id];
  if (facts.name != nullptr && *facts.name != '\0') {
    snprintf(name, 256, "%s", facts.name);
  } else if (facts.id != 0) {  // as NCCL's own log has it
    snprintf(name, sizeof name, "commId %s", id);
  } else {
    name[0] = '\0';
  }
  const size_t name_bytes = strlen(name) + 1;
  memcpy(name + name_bytes, id, strlen(id) + 1);
  aon_define(static_cast<uint32_t>(DefinitionType::kCommunicator), &definition, sizeof definition,
             name, static_cast<uint32_t>(name_bytes + strlen(id) + 1));
  define_stream(communicator, name);
}

/// Counts of transfers by peer; the communicator does without when there is no memory.
/// The place's last ones serve again where they suffice. Smaller ones stay, for a callback may be
/// using them still: all together they are less than the largest.
void map_counts(Communicator& communicator) {
  constexpr size_t kBytes = sizeof(std::atomic<uint64_t>);
  const uint32_t wanted = communicator.rank_count;
  if (wanted <= communicator.peer_capacity) {
    for (uint32_t i = 0; i < wanted; ++i) {
      communicator.sends[i].store(0, std::memory_order_relaxed);
      communicator.receives[i].store(0, std::memory_order_relaxed);
    }
    return;
  }
  uint32_t capacity = 512;
  while (capacity < wanted && capacity < (1u << 30)) capacity *= 2;
  void* counts = capacity < wanted ? nullptr : map_wiped(size_t{2} * capacity * kBytes);
  communicator.sends = static_cast<std::atomic<uint64_t>*>(counts);
  communicator.receives = counts == nullptr ? nullptr : communicator.sends + capacity;
  communicator.peer_capacity = counts == nullptr ? 0 : capacity;
}

void fill(State& state, Communicator& communicator, const CommunicatorFacts& facts,
          bool waits_for_gpu) {
  communicator.id = kFirstNcclCommunicator + state.communicator_count++;
  communicator.rank_count = facts.rank_count;
  communicator.rank = facts.rank;
  communicator.version = facts.version;
  communicator.waits_for_gpu = waits_for_gpu;
  communicator.call_count.store(0, std::memory_order_relaxed);
  communicator.done_count.store(0, std::memory_order_relaxed);
  communicator.tells_channels.store(false, std::memory_order_relaxed);
  communicator.slot_count.store(kFirstSlots, std::memory_order_relaxed);
  communicator.next_slot.store(0, std::memory_order_relaxed);
  for (auto* word : {&communicator.words.function, &communicator.words.type,
                     &communicator.words.algorithm, &communicator.words.protocol}) {
    word->store(0, std::memory_order_relaxed);
  }
  communicator.gpu = {};
  communicator.gpu_order = {};
  communicator.overwritten = {};
  communicator.launch_ticks.store(0, std::memory_order_relaxed);
  for (auto& count : communicator.copied) count.store(0, std::memory_order_relaxed);
  map_counts(communicator);
}

constexpr Site site_called(uint32_t id, const char* name, uint32_t mode) {
  return {id, name, static_cast<uint8_t>(RegionRole::kFunction),
          static_cast<uint8_t>(Paradigm::kNccl), mode};
}

/// Regions of the records that come with level gpu and above, of which the first is also the site
/// of the level.
void define_proxy_sites(State& state) {
  if (state.has_proxy_sites.exchange(true, std::memory_order_relaxed)) return;
  const uint32_t mode = nccl_mode_of(state.limits.launch, state.limits.keeps_channels());
  for (const Site& one : {site_called(state.limits.site(), "NCCL proxy", mode),
                          site_called(kNcclProxySite, "NCCL proxy", kModeFull),
                          site_called(kNcclStepSite, "NCCL proxy steps", kModeFull)}) {
    aon_site_first_call(&one);  // the first one of a site counts
  }
}

/// The same where the agent has written the level's word already, as if it were defined.
void define_proxy_sites_late(State& state) {
  if (state.has_proxy_sites.load(std::memory_order_relaxed)) return;
  const RegionDefinition region = {kNcclProxySite, RegionRole::kFunction, Paradigm::kNccl, 0};
  constexpr char kName[] = "NCCL proxy";
  aon_define(static_cast<uint32_t>(DefinitionType::kRegion), &region, sizeof region, kName,
             sizeof kName);
  define_proxy_sites(state);
}

/// Makes the level a matter of the agent's, at the process's first communicator.
void begin_level(State& state, Level level, int version) {
  if (state.level.load(std::memory_order_relaxed) == Level::kOff) {
    state.version = version;
    state.limits = limits_of(level, version, shared_bytes());
    if (level >= Level::kGpu) define_proxy_sites(state);
    state.level.store(level, std::memory_order_relaxed);
  }
  // At each, for there may have been no room. The agent looks for it.
  const Site limits = site_called(kNcclLimitsSite, "NCCL level", state.limits.word());
  aon_site_first_call(&limits);
}

/// What the ledger is told of the level and of the communicator.
void tell_level(const LevelChoice& choice, const CommunicatorFacts& facts) {
  const bool is_off = choice.level == Level::kOff;
  remark(Topic::kLevel, is_off ? ProviderState::kOff : ProviderState::kDegraded, choice.reason,
         choice.remedy);
  if (is_off || facts.rank_count != 0) return;
  remark(Topic::kMembers, ProviderState::kDegraded,
         "this NCCL does not say who is in a communicator: no bus bandwidth, ranks are not joined",
         "NCCL 2.27 or later");
}

/// What is not recorded.
void tell_losses(const State& state) {
  const auto count = [](const std::atomic<uint64_t>& counter) {
    return static_cast<unsigned long long>(counter.load(std::memory_order_relaxed));
  };
  Clauses reason;
  Clauses remedy;
  if (count(state.unplaced) != 0 || state.refused != 0) {
    reason.add(
        "%llu operations are not recorded: their communicators are not known here (%llu were "
        "refused: no memory, or more than %u at a time)",
        count(state.unplaced), static_cast<unsigned long long>(state.refused), kMaxCommunicators);
    if (state.refused != 0) remedy.add("destroy communicators that are not used any more");
  }
  if (count(state.crowded_out) != 0) {
    reason.add("%llu operations may have two rows: more than %u of a communicator were in flight",
               count(state.crowded_out), kMaxOperations);
  }
  if (count(state.proxies_left_out) != 0) {
    reason.add("%llu pieces of the proxies' work are not recorded: more than %u at a time",
               count(state.proxies_left_out), kMaxProxies);
    remedy.add("AON_NCCL_LEVEL=gpu");
  }
  if (count(state.overwritten) != 0) {
    reason.add(
        "%llu operations have no times on the GPU: NCCL had overwritten them before its proxy "
        "thread read them",
        count(state.overwritten));
    remedy.add("a core for that thread");
  }
  if (count(state.refused_unsummed) != 0) {
    reason.add(
        "%llu operations whose records found no room in the ring are in no sum either: more than "
        "%u of communicator, function and size",
        count(state.refused_unsummed), kMaxRefusedSums);
    remedy.add("a larger --memory");
  }
  if (count(state.foreign) != 0) {
    reason.add(
        "%llu pieces of the proxies' work are not recorded: they were done for other processes "
        "(PXN)",
        count(state.foreign));
  }
  if (const uint64_t ends = lost_pair_ends(); ends != 0) {
    reason.add("AON_NCCL_CHAIN: %llu ends of events were told to nobody: %u others had begun since",
               static_cast<unsigned long long>(ends), static_cast<unsigned>(kPairs));
  }
  if (!reason.is_empty())
    remark(Topic::kLosses, ProviderState::kDegraded, reason.text(), remedy.text());
}

/// The thread's writer; another thread may just be attaching the process, which takes 20 ms at
/// most. Null: nothing is recorded.
const Writer* wait_for_writer() AON_REQUIRES(g_mutex) {
  const Writer* w = attached_writer();
  for (int attempt = 0; w == nullptr && attempt < 50 && !g_gave_up; ++attempt) {
    const timespec moment = {0, 1'000'000};
    nanosleep(&moment, nullptr);
    w = attached_writer();
  }
  g_gave_up = w == nullptr;
  return w;
}

void* add(const CommunicatorFacts& facts, int* mask) AON_REQUIRES(g_mutex) {
  const Writer* w = wait_for_writer();
  if (w == nullptr) return nullptr;
  State* state = begin_state(w);
  if (state == nullptr) {
    remark(Topic::kMemory, ProviderState::kOff, "no memory for the tables of communicators", "");
    return nullptr;
  }
  const LevelChoice choice = choose_level(getenv(kLevelVariable), facts.version, shared_bytes());
  if (choice.level == Level::kOff) {
    tell_level(choice, facts);
    return nullptr;
  }
  if (choice.level >= Level::kGpu) wait_for_rate(*state);
  Communicator* communicator = free_place(*state);
  if (communicator == nullptr) {
    ++state->refused;
    tell_losses(*state);
    return nullptr;
  }
  begin_level(*state, choice.level, facts.version);
  fill(*state, *communicator, facts, state->limits.highest >= Level::kGpu);
  tell_level(choice, facts);
  define_communicator(*state, *communicator, facts);
  const uint32_t generation = communicator->generation.load(std::memory_order_relaxed) + 1;
  communicator->generation.store(generation,
                                 std::memory_order_release);  // pairs with nccl:communicator
  state->live_count.fetch_add(1, std::memory_order_relaxed);
  communicator->mask.store(mask, std::memory_order_release);  // pairs with nccl:mask
  // It is one of all communicators, in which others have bits, too.
  const bool is_first = facts.version == state->version;  // see switch_level()
  const int events = is_first ? own_mask() : mask_of(choice.level, facts.version);
  __atomic_fetch_or(mask, events, __ATOMIC_RELAXED);
  const uint32_t place = static_cast<uint32_t>(communicator - state->communicators);
  return Handle{state->process.load(std::memory_order_relaxed),
                Role::kCommunicator,
                place,
                0,
                0,
                generation & kGenerationMask}
      .pointer();
}

/// Changes NCCL's mask from what one level asks for to what another one does. Where a program has
/// several NCCLs, those of another version than the first one keep what they have: they may not
/// survive what that one does.
void switch_level(State& state, Level level) {
  Level old = state.level.load(std::memory_order_relaxed);
  if (!state.level.compare_exchange_strong(old, level, std::memory_order_relaxed)) return;
  const int kept = heeded_chained_mask();
  const int was = mask_of(old, state.version);
  const int is = mask_of(level, state.version);
  const int* last = nullptr;
  for (uint32_t i = 0; i < state.place_count.load(std::memory_order_relaxed); ++i) {
    const Communicator& one = state.communicators[i];
    int* mask = one.mask.load(std::memory_order_acquire);  // pairs with nccl:mask
    if (mask == nullptr || mask == last || one.version != state.version) continue;
    last = mask;
    // Bits that somebody else has set or cleared meanwhile stay as they are.
    __atomic_fetch_and(mask, ~(was & ~is & ~kept), __ATOMIC_RELAXED);
    __atomic_fetch_or(mask, (is & ~was) | heeded_chained_mask(), __ATOMIC_RELAXED);
  }
}

}  // namespace

void begin_uncounted(State& state) {
  const bool is_known = state.has_uncounted.exchange(true, std::memory_order_relaxed);
  if (is_known || state.limits.keeps_channels()) return;
  const Site site = site_called(kNcclUncountedSite, "NCCL uncounted", kModeFull);
  aon_site_first_call(&site);
}

void heed_mode(State& state, uint32_t mode) {
  NcclLimits limits = state.limits;
  if (state.has_uncounted.load(std::memory_order_relaxed))
    limits = limits.counts_differ(state.level.load(std::memory_order_relaxed));
  const Level level = level_of_mode(mode, limits);
  if (level >= Level::kGpu && state.level.load(std::memory_order_relaxed) < Level::kGpu) {
    if (raw_ns() - state.base_raw_ns < kLeastRateNs) return;  // the next group heeds it
    if (!has_room_for_channels(state)) {
      state.heeded_mode.store(mode, std::memory_order_relaxed);  // until another one is asked for
      remark(Topic::kRoom, ProviderState::kDegraded,
             "/dev/shm is so full that NCCL would not survive level gpu: it stays at level api",
             "a larger /dev/shm, or the level at the launch (--nccl-level)");
      return;
    }
    define_proxy_sites_late(state);
    remark(Topic::kRoom, ProviderState::kOn, "", "");
  }
  state.heeded_mode.store(mode, std::memory_order_relaxed);
  if (level != state.level.load(std::memory_order_relaxed)) switch_level(state, level);
  // Another thread has heeded another word meanwhile: the next group looks again.
  if (level != state.level.load(std::memory_order_relaxed))
    state.heeded_mode.store(kModeOff, std::memory_order_relaxed);
}

int own_mask() {
  const State* state = g_state;
  if (state == nullptr) return 0;
  return mask_of(state->level.load(std::memory_order_relaxed), state->version);
}

void* add_communicator(const CommunicatorFacts& facts, int* mask) {
  g_mutex.lock();
  void* handle = add(facts, mask);
  g_mutex.unlock();
  return handle;
}

void remove_communicator(void* context) {
  g_mutex.lock();
  Communicator* communicator = communicator_of(context);
  if (communicator != nullptr) {
    // seq_cst: before it looks for what is in flight, as open_operation() looks after its claim
    communicator->generation.fetch_add(1, std::memory_order_seq_cst);
    communicator->mask.store(nullptr, std::memory_order_relaxed);  // its NCCL may be closed
    g_state->live_count.fetch_sub(1, std::memory_order_relaxed);
    commit_all(static_cast<uint32_t>(communicator - g_state->communicators));
    tell_refused(*g_state, communicator->id);
    const IdDefinition gone = {communicator->id};
    aon_define(static_cast<uint32_t>(DefinitionType::kCommunicatorFree), &gone, sizeof gone,
               nullptr, 0);
    tell_losses(*g_state);
  }
  g_mutex.unlock();
}

/// NCCL calls finalize only where the program destroys its communicators.
[[gnu::destructor]] static void finish_at_exit() {
  State* state = g_state;
  if (state == nullptr || state->process.load(std::memory_order_relaxed) == 0) return;
  for (uint32_t i = 0; i < state->place_count.load(std::memory_order_relaxed); ++i) commit_all(i);
  tell_refused(*state, 0);
  tell_losses(*state);
}

}  // namespace aon::nccl
