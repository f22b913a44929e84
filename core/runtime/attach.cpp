// First event of a process: finds the agent or opens a file of its own, and publishes the ring.
#include <aon/pause.h>
#include <aon/writer.h>
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/kcmp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "core/agent/protocol.h"
#include "core/base/disable.h"
#include "core/runtime/process.h"
#include "core/runtime/provider_state.h"
#include "core/runtime/rank.h"

// aon/old_libc.h
#pragma weak gnu_get_libc_version
#pragma weak pthread_getcpuclockid

namespace aon::runtime {
namespace {

constexpr int kFirstWaitMs = agent::kAttachTimeoutMs / 2;  ///< in aon_attach_begin()

/// Outlives forks: the mapping is inherited, its content is wiped.
std::atomic<Process*> g_process{nullptr};

/// Mode words of a process that records nothing.
struct OffModes {
  uint32_t word[kMaxSites];
  constexpr OffModes() : word{} {
    for (uint32_t& mode : word) mode = kModeOff;
  }
};
constexpr OffModes kOffModes;

/// The writer that all threads of such a process share where it has no Process::off_writer. Nobody
/// writes through it: its slot is null.
Writer g_off_writer;

/// Not in a child of fork(): it looks for itself, at its first event.
bool is_off(const Writer* w) {
  return w->modes == reinterpret_cast<const std::atomic<uint32_t>*>(kOffModes.word);
}

/// Before the first event of a thread: all zero.
Writer g_unattached_writer;

/// The same after events of the thread were refused: their regions have ends.
Writer g_refused_writer;

/// The last process with events whose memory this was, or was copied from.
std::atomic<uint32_t> g_last_owner{0};

/// Of a process that cannot have a Process, once.
void count_without_process() {
  static std::atomic<uint32_t> counted{0};
  static char path[PATH_MAX];
  const auto own = static_cast<uint32_t>(getpid());
  if (counted.exchange(own, std::memory_order_relaxed) != own) count_unrecorded(path);
}

/// Null where memory is too little, or cannot be wiped (before Linux 4.14), and in programs of
/// another C library than glibc: nobody has tried what holds there.
Process* allocate_process() {
  if (gnu_get_libc_version == nullptr) {
    count_without_process();
    return nullptr;
  }
  void* memory = mmap(nullptr, sizeof(Process), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    count_without_process();
    return nullptr;
  }
  auto* fresh = static_cast<Process*>(memory);
  Process* expected = nullptr;
  if (madvise(memory, sizeof(Process), MADV_WIPEONFORK) != 0) {
    count_without_process();
  } else if (g_process.compare_exchange_strong(
                 expected, fresh, std::memory_order_acq_rel)) {  // pairs with runtime:process
    return fresh;
  }
  munmap(memory, sizeof(Process));
  return expected;
}

/// Field 22 of /proc/self/stat: start of the process in clock ticks since boot.
uint64_t read_start_time() {
  char text[1024] = {};
  const int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const ssize_t bytes = read(fd, text, sizeof text - 1);
  close(fd);
  if (bytes <= 0) return 0;
  const char* at = strrchr(text, ')');  // the name before it may hold anything
  for (int field = 2; at != nullptr && field < 22; ++field) at = strchr(at + 1, ' ');
  return at != nullptr ? strtoull(at + 1, nullptr, 10) : 0;
}

/// How long the first event may wait for the agent.
int attach_timeout_ms() {
  const char* text = secure_getenv("AON_ATTACH_MS");
  const long value = text != nullptr ? strtol(text, nullptr, 10) : 0;
  return value > 0 && value <= agent::kMaxAttachTimeoutMs ? static_cast<int>(value)
                                                          : agent::kAttachTimeoutMs;
}

bool open_ring(Process& p) {
  if (is_disabled_by(secure_getenv("AON_DISABLE"))) return false;
  if (p.is_left_alone) return false;
  if (!prepare_thread_exit()) {
    count_unrecorded(p.path);
    return false;
  }
  const char* socket_path = secure_getenv("AON_SOCKET");
  // What was asked at the start of something slow has had its time; the rest is for the answer.
  const int spent_ms = p.asked_socket != 0 ? kFirstWaitMs : 0;
  const int timeout_ms = std::max(attach_timeout_ms() - spent_ms, 1);
  if (socket_path != nullptr && open_agent_ring(p, socket_path, timeout_ms, nullptr)) return true;
  if (p.is_left_alone) return false;
  if (open_fallback_ring(p)) return true;
  count_unrecorded(p.path);
  return false;
}

/// Writer 0 writes the definitions of the process.
void prepare_definition_writer(Process& p) {
  Writer& w = p.writers[kDefinitionSlot];
  w.modes = p.modes;
  w.slot = &p.slots[kDefinitionSlot];
  w.clock_is_tsc = p.ring->clock_is_tsc;
  w.slot->state.store(static_cast<uint32_t>(SlotState::kActive),
                      std::memory_order_release);  // pairs with ring:slot
}

/// The first half: kNone when the agent has not answered yet, or there is none.
AttachState begin_to_attach(Process& p, const Site& call) {
  const char* socket_path = secure_getenv("AON_SOCKET");
  const bool is_disabled = is_disabled_by(secure_getenv("AON_DISABLE"));
  if (is_disabled || socket_path == nullptr) return AttachState::kNone;
  if (!prepare_thread_exit()) return AttachState::kNone;
  if (!open_agent_ring(p, socket_path, kFirstWaitMs, &call)) return AttachState::kNone;
  prepare_definition_writer(p);
  return AttachState::kReady;
}

AttachState attach_process(Process& p) {
  if (!open_ring(p)) return AttachState::kOff;
  prepare_definition_writer(p);
  return AttachState::kReady;
}

uint32_t thread_id() { return static_cast<uint32_t>(syscall(SYS_gettid)); }

/// Whether the caller may be a process in its parent's memory, where nobody has told whose it is.
/// Such a child stands on the parent's thread: the C library knows that one's number, of which the
/// thread's clock is made (clock_getres(2)). So it does in a raw clone() without CLONE_VM. Where it
/// has no threads, that thread is all of the parent.
bool may_be_guest() {
  const uint32_t own = thread_id();
  if (pthread_getcpuclockid == nullptr)
    return syscall(SYS_kcmp, own, getppid(), KCMP_VM, 0, 0) == 0;
  clockid_t clock;
  if (pthread_getcpuclockid(pthread_self(), &clock) != 0) return false;
  const auto host = static_cast<uint32_t>(~(clock >> 3));
  if (host == own) return false;
  const auto parent = static_cast<uint32_t>(getppid());  // 0: of another namespace
  // The parent's memory has an owner; this one has not.
  if (parent != 0 && parent == g_last_owner.load(std::memory_order_relaxed)) return false;
  const long order = syscall(SYS_kcmp, own, host, KCMP_VM, 0, 0);
  return order == 0 || (order < 0 && (errno != ESRCH || parent == 0));  // we may not ask
}

/// Whether the caller is a process in its parent's memory (vfork(), CLONE_VM). The owner of the
/// memory is known from its first event on; in a copy of the memory that is wiped.
bool is_guest(Process& p) {
  const auto own = static_cast<uint32_t>(getpid());
  const uint32_t owner = p.owner.load(std::memory_order_relaxed);
  if (owner != 0) return owner != own;
  if (may_be_guest()) return true;
  p.owner.store(own, std::memory_order_relaxed);
  g_last_owner.store(own, std::memory_order_relaxed);
  return false;
}

/// Counts the first guest as a process that is not recorded: its parent may never attach.
void note_guest(Process& p) {
  if (p.has_guests.exchange(1, std::memory_order_relaxed) == 0) count_unrecorded(p.guest_path);
}

/// Once per process: such a loss is no matter of memory.
void tell_of_guests(Process& p) {
  if (p.has_guests.load(std::memory_order_relaxed) == 0) return;
  if (p.guests_told.exchange(1, std::memory_order_relaxed) != 0) return;
  tell_degraded(
      "children\0children in their parent's memory (vfork, CLONE_VM) made events where the "
      "parent's thread had made none: they are lost\0fork() in their stead");
}

/// The state after this thread tried `attach` on the process; kBusy when another one is at it.
template <class Attach>
AttachState try_attach_process(Process& p, Attach attach) {
  uint32_t state = p.state.load(std::memory_order_acquire);  // pairs with runtime:state
  if (state == static_cast<uint32_t>(AttachState::kNone) &&
      p.state.compare_exchange_strong(state, static_cast<uint32_t>(AttachState::kBusy),
                                      std::memory_order_acquire)) {  // pairs with runtime:state
    p.attaching_thread.store(thread_id(), std::memory_order_relaxed);
    state = static_cast<uint32_t>(attach(p));
    p.attaching_thread.store(0, std::memory_order_relaxed);
    p.state.store(state, std::memory_order_release);  // pairs with runtime:state
    syscall(SYS_futex, &p.state, FUTEX_WAKE_PRIVATE, INT_MAX);
  }
  return static_cast<AttachState>(state);
}

/// Another thread attaches, and has a ring or a file in the time that attaching may take, and some
/// more: this one's first event waits for that, at most twice as long. False: in vain, or it is
/// this thread that attaches.
bool await_attach(Process& p) {
  if (p.attaching_thread.load(std::memory_order_relaxed) == thread_id()) return false;
  if (p.attach_is_slow.load(std::memory_order_relaxed) != 0) return false;
  timespec end;
  clock_gettime(CLOCK_MONOTONIC, &end);
  const int timeout_ms = 2 * attach_timeout_ms();
  end.tv_sec += timeout_ms / 1000;
  end.tv_nsec += timeout_ms % 1000 * 1'000'000L;
  if (end.tv_nsec >= 1'000'000'000L) {
    end.tv_nsec -= 1'000'000'000L;
    ++end.tv_sec;
  }
  constexpr auto kBusy = static_cast<uint32_t>(AttachState::kBusy);
  while (p.state.load(std::memory_order_acquire) == kBusy) {  // pairs with runtime:state
    const long woken = syscall(SYS_futex, &p.state, FUTEX_WAIT_BITSET_PRIVATE, kBusy, &end, nullptr,
                               FUTEX_BITSET_MATCH_ANY);
    if (woken == 0 || errno == EAGAIN || errno == EINTR) continue;
    p.attach_is_slow.store(1, std::memory_order_relaxed);
    return false;
  }
  return true;
}

/// Whoever sees both the count and the ring carries it over; exchange makes that one thread.
void count_early_refused(Process& p) {
  // pairs with runtime:early
  const uint64_t early = p.early_refused.exchange(0, std::memory_order_acq_rel);
  if (early == 0) return;
  p.ring->refused_no_slot.fetch_add(early, std::memory_order_relaxed);
  tell_of_guests(p);
}

/// The writer of a thread of which no event was refused yet, in this process: in a fork()ed child
/// it may be the parent's, wiped.
bool is_fresh(const Process& p, const Writer* w) {
  return w == &g_unattached_writer || w == &p.off_writer ||
         (w >= p.writers && w < p.writers + kMaxThreadSlots);
}

/// Counts an event that nobody records, now or at the attach.
void refuse_event(Process& p) {
  if (is_fresh(p, aon_thread_writer)) aon_thread_writer = &g_refused_writer;
  p.has_refused.store(1, std::memory_order_relaxed);
  // Either the exchange of the attaching thread comes later and sees this event, or this one
  // reads what it wrote, and so sees its state.
  p.early_refused.fetch_add(1, std::memory_order_acq_rel);  // pairs with runtime:early
  if (p.state.load(std::memory_order_acquire) ==            // pairs with runtime:state
      static_cast<uint32_t>(AttachState::kReady)) {
    count_early_refused(p);
  }
}

void turn_off(Process* p) {
  Writer* w = p != nullptr ? &p->off_writer : &g_off_writer;
  w->modes = reinterpret_cast<const std::atomic<uint32_t>*>(kOffModes.word);
  aon_thread_writer = w;
}

}  // namespace

void refuse_end() {
  Process* p = process();
  const Writer* w = aon_thread_writer;
  if (p == nullptr || is_off(w) || is_fresh(*p, w)) return;
  // A child that was fork()ed inherits what its thread was refused before.
  if (p->has_refused.load(std::memory_order_relaxed) != 0) refuse_event(*p);
}

Process* process() {
  return g_process.load(std::memory_order_acquire);  // pairs with runtime:process
}

void use_ring(Process& p, void* mapping, const RingGeometry& geometry) {
  char* base = static_cast<char*>(mapping);
  // A core file would hold all of it, and dumping it give memory to what was never written.
  madvise(mapping, geometry.total_bytes, MADV_DONTDUMP);
  p.ring = reinterpret_cast<RingHeader*>(base);
  p.geometry = geometry;
  p.modes = reinterpret_cast<std::atomic<uint32_t>*>(base + geometry.modes_offset);
  p.slots = reinterpret_cast<ThreadSlot*>(base + geometry.slots_offset);
  p.free_map = reinterpret_cast<std::atomic<uint64_t>*>(base + geometry.free_map_offset);
  p.chunks = base + geometry.chunks_offset;
}

ProcessIdentity process_identity() {
  ProcessIdentity identity = {};
  const RankInfo info =
      rank_from_environment([](const char* name) -> const char* { return secure_getenv(name); });
  identity.pid = getpid();
  identity.rank = info.rank;
  identity.world_size = info.world_size;
  identity.start_time_ticks = read_start_time();
  if (readlink("/proc/self/exe", identity.program, sizeof identity.program - 1) < 0) {
    identity.program[0] = '\0';
  }
  return identity;
}

}  // namespace aon::runtime

// Inside the namespace, or the declarations' visibility is lost.
namespace aon {
extern "C" {

__thread Writer* aon_thread_writer = &runtime::g_unattached_writer;

Writer* aon_attach() noexcept {
  using namespace runtime;
  if (aon_thread_writer->slot != nullptr) return aon_thread_writer;
  if (is_off(aon_thread_writer) || refuse_without_slot()) return nullptr;
  const int saved_errno = errno;
  SignalBlock block;
  Process* p = process();
  if (p == nullptr) p = allocate_process();
  Writer* w = nullptr;
  AttachState state = p != nullptr ? AttachState::kBusy : AttachState::kOff;
  if (p != nullptr && is_guest(*p)) {
    note_guest(*p);
  } else if (p != nullptr) {
    do {
      state = try_attach_process(*p, attach_process);
    } while (state == AttachState::kBusy && await_attach(*p));
  }
  if (state == AttachState::kReady) {
    w = attach_thread(*p);
    count_early_refused(*p);
  } else if (state == AttachState::kOff) {
    turn_off(p);
  } else {
    refuse_event(*p);
  }
  errno = saved_errno;
  return w;
}

bool aon_attach_begin(const Site* call) noexcept {
  using namespace runtime;
  const int saved_errno = errno;
  SignalBlock block;
  Process* p = process();
  if (p == nullptr) p = allocate_process();
  const bool is_ready =
      p != nullptr && !is_guest(*p) && try_attach_process(*p, [call](Process& self) {
                                         return begin_to_attach(self, *call);
                                       }) == AttachState::kReady;
  errno = saved_errno;
  return is_ready;
}

void aon_set_paused(bool paused) noexcept {
  using namespace runtime;
  Writer* w = attached_writer();
  if (w == nullptr) return;
  Process& p = *process();
  p.pause_lock.lock();
  const uint32_t before = p.ring->paused.exchange(paused ? 1 : 0, std::memory_order_relaxed);
  const bool is_new = (before != 0) != paused;  // programs say it at each step
  if (is_new) p.pauses.note(ticks(w));
  for (uint32_t site = 0; is_new && site < kMaxSites; ++site) {
    if (paused) {
      p.modes[site].fetch_or(kModePaused, std::memory_order_relaxed);
    } else {
      p.modes[site].fetch_and(~kModePaused, std::memory_order_relaxed);
    }
  }
  p.pause_lock.unlock();
}

bool aon_was_paused(uint64_t ticks) noexcept {
  const runtime::Process* p = runtime::process();
  return p != nullptr && p->pauses.was_paused(ticks);
}

}  // extern "C"
}  // namespace aon
