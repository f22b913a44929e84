#include "core/runtime/timer_samples.h"

#include <aon/definition.h>
#include <aon/proc_maps.h>
#include <aon/writer.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <string_view>

#include "core/runtime/process.h"
#include "core/runtime/provider_state.h"

// The loader's; weak, or it would be needed by the name that it has in glibc alone.
// NOLINTNEXTLINE(readability-identifier-naming)
extern "C" [[gnu::weak]] void* __libc_stack_end;

namespace aon::runtime {
namespace {

constexpr const char* kName = "sampling-timer";
constexpr int kSignal = SIGURG;
constexpr uint32_t kMaxRateHz = 10'000;
constexpr uint32_t kPoolShare = 8;  ///< stacks may take so small a part of the ring
constexpr size_t kMapsBytes = 1u << 20;
constexpr uintptr_t kMainStackBytes = 64u << 20;
constexpr uint64_t kNsPerSecond = 1'000'000'000;
constexpr int kFirstRelease[] = {5, 10};

char g_token;  ///< its address tells our timers from others

timespec interval_of(uint32_t rate_hz) {
  const uint64_t ns = rate_hz == 0 ? kNsPerSecond : kNsPerSecond / rate_hz;
  return {static_cast<time_t>(ns / kNsPerSecond), static_cast<long>(ns % kNsPerSecond)};
}

void set_rate(ThreadTimer& timer, uint32_t rate_hz) {
  const itimerspec spec = {interval_of(rate_hz), interval_of(rate_hz)};
  timer.rate_hz = rate_hz;
  timer.is_resting = rate_hz == 0;
  syscall(SYS_timer_settime, timer.id, 0, &spec, nullptr);
}

/// What the agent wants now.
uint32_t wanted_rate(const Process& p) {
  const uint32_t word = p.ring->stack_rate.load(std::memory_order_relaxed);
  return word == 0 || word > p.timer_plan.rate_hz ? p.timer_plan.rate_hz : word - 1;
}

uint64_t raw_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return static_cast<uint64_t>(now.tv_sec) * kNsPerSecond + static_cast<uint64_t>(now.tv_nsec);
}

#if defined(__x86_64__)
constexpr bool kKnowsCpu = true;
void note_stack(const ThreadTimer& timer, const ucontext_t& context) {
  const greg_t* r = context.uc_mcontext.gregs;
  ring::NotedStack stack;
  stack.raw_ns = raw_ns();
  stack.tid = timer.tid;
  stack.frames[0] = static_cast<uint64_t>(r[REG_RIP]);
  stack.frame_count =
      follow_frames(static_cast<uintptr_t>(r[REG_RSP]), static_cast<uintptr_t>(r[REG_RBP]),
                    timer.bounds, stack.frames, 1, ring::kStackFrames);
  put_stack(timer.ring, stack);
}
#else
constexpr bool kKnowsCpu = false;
void note_stack(const ThreadTimer&, const ucontext_t&) {}
#endif

void on_timer(int, siginfo_t* info, void* context) {
  if (info->si_code != SI_TIMER || info->si_value.sival_ptr != &g_token) return;
  const Writer* w = writer();
  if (w->slot == nullptr) return;
  const int saved_errno = errno;
  Process& p = *process();
  ThreadTimer& timer = p.timers[w->slot_index];
  if (timer.is_on) {
    const uint32_t wanted_hz = wanted_rate(p);
    if (wanted_hz != timer.rate_hz) set_rate(timer, wanted_hz);
    if (!timer.is_resting && p.ring->paused.load(std::memory_order_relaxed) == 0)
      note_stack(timer, *static_cast<const ucontext_t*>(context));
  }
  errno = saved_errno;
}

/// Then the agent samples this process without us.
bool may_use_perf() {
  perf_event_attr attr = {};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_CPU_CLOCK;
  attr.exclude_kernel = 1;
  attr.exclude_hv = 1;
  const long fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
  if (fd >= 0) close(static_cast<int>(fd));
  return fd >= 0;
}

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == on_timer;
}

bool has_our_handler() {
  struct sigaction now;
  return sigaction(kSignal, nullptr, &now) == 0 && is_ours(now);
}

/// A fork()ed child inherits our handler without its timers.
bool is_signal_free() {
  struct sigaction now;
  if (sigaction(kSignal, nullptr, &now) != 0) return false;
  return is_ours(now) || ((now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_DFL);
}

TimerState refuse(const char* reason, const char* remedy) {
  tell_state(kName, ProviderState::kOff, reason, remedy);
  return TimerState::kOff;
}

/// Whether this process has timers; decided by its first thread.
TimerState decide(Process& p) {
  const char* text = secure_getenv("AON_SAMPLING_TIMER");
  const unsigned long rate_hz = text != nullptr ? strtoul(text, nullptr, 10) : 0;
  if (rate_hz == 0 || rate_hz > kMaxRateHz || may_use_perf()) return TimerState::kOff;
  utsname system;
  if (!kKnowsCpu) return refuse("stacks are not known on this CPU", "");
  if (!p.has_agent) return refuse("no agent took this process", "");
  if (uname(&system) != 0 || !is_timer_harmless(system.release))
    return refuse("timers of this kernel may interrupt system calls", "Linux 5.10 or later");
  if (!is_signal_free())
    return refuse("the program uses SIGURG itself", "sysctl kernel.perf_event_paranoid=2");
  struct sigaction ours = {};
  ours.sa_sigaction = on_timer;
  ours.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  if (sigaction(kSignal, &ours, nullptr) != 0) return refuse("SIGURG cannot be handled", "");
  p.timer_plan.rate_hz = static_cast<uint32_t>(rate_hz);
  tell_state(kName, ProviderState::kOn, "", "");
  return TimerState::kOn;
}

/// Text of /proc/self/maps without malloc: this may be a handler of the program. Null: none.
char* map_maps() {
  const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return nullptr;
  void* memory =
      mmap(nullptr, kMapsBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED) {
    char* text = static_cast<char*>(memory);
    size_t length = 0;
    ssize_t got = 0;
    while (length + 1 < kMapsBytes &&
           (got = read(fd, text + length, kMapsBytes - 1 - length)) > 0) {
      length += static_cast<size_t>(got);
    }
  }
  close(fd);
  return memory != MAP_FAILED ? static_cast<char*>(memory) : nullptr;
}

uintptr_t top_of_main_stack() {
  return &__libc_stack_end != nullptr ? reinterpret_cast<uintptr_t>(__libc_stack_end) : 0;
}

/// glibc keeps the descriptor of a thread at the end of its stack, also of one that the program
/// gave it.
StackBounds bounds_of_thread(uint32_t tid) {
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  const bool is_main = tid == static_cast<uint32_t>(getpid());
  const auto top = is_main ? top_of_main_stack() : static_cast<uintptr_t>(pthread_self());
  char* maps = map_maps();
  if (maps == nullptr) return {};
  StackBounds bounds = find_stack(maps, here, top);
  munmap(maps, kMapsBytes);
  // It grows later, into room that the kernel keeps free for it: 128 MiB at least.
  if (is_main && bounds.high != 0) bounds.low = bounds.high - kMainStackBytes;
  return bounds;
}

std::atomic<uint64_t>* words_of(Process& p, uint32_t chunk) {
  return reinterpret_cast<std::atomic<uint64_t>*>(chunk_at(p, chunk) + 1);
}

/// The chunks of a slot stay with it, as its thread's records do. False: no room.
bool take_ring(Process& p, Writer* w, ring::StackRing* ring) {
  if (w->slot->stack_chunk[0].load(std::memory_order_relaxed) == kNoChunk) {
    const uint32_t most = p.geometry.chunk_count / kPoolShare;
    std::atomic<uint32_t>& taken_chunks = p.timer_plan.stacked_chunks;
    if (taken_chunks.fetch_add(kStackChunks, std::memory_order_relaxed) + kStackChunks > most)
      return false;
    for (uint32_t i = kStackChunks; i-- > 0;) {
      const uint32_t index = take_chunk(p);
      if (index == kNoChunk) return false;  // those that were taken stay with the slot, unused
      ChunkHeader* chunk = chunk_at(p, index);
      memset(static_cast<void*>(chunk), 0, kChunkBytes);
      chunk->owner.store(stream_owner(static_cast<uint32_t>(w->slot_index), kStackContext),
                         std::memory_order_relaxed);
      chunk->next.store(kNoChunk, std::memory_order_relaxed);
      // The first one last: it makes the ring known.
      w->slot->stack_chunk[i].store(index, std::memory_order_release);  // pairs with ring:stacks
    }
  }
  for (uint32_t i = 0; i < kStackChunks; ++i)
    ring->chunk[i] = words_of(p, w->slot->stack_chunk[i].load(std::memory_order_relaxed));
  return true;
}

/// 0, or what the thread lacks.
const char* start_timer(Process& p, Writer* w) {
  ThreadTimer& timer = p.timers[w->slot_index];
  timer = {};
  if (!has_our_handler()) return "the program has taken SIGURG for itself";
  if (!take_ring(p, w, &timer.ring)) return "no room for their stacks";
  timer.tid = w->slot->tid.load(std::memory_order_relaxed);
  timer.bounds = bounds_of_thread(timer.tid);
  sigevent event = {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = kSignal;
  event.sigev_value.sival_ptr = &g_token;
  event._sigev_un._tid = static_cast<pid_t>(timer.tid);
  if (syscall(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, &event, &timer.id) != 0)
    return "no timer could be made";
  timer.is_on = true;
  set_rate(timer, wanted_rate(p));
  return nullptr;
}

void tell_missing_threads(TimerPlan& plan, const char* reason) {
  if (plan.told_threads.exchange(1, std::memory_order_relaxed) != 0) return;
  char text[200];
  snprintf(text, sizeof text, "some threads are not sampled: %s", reason);
  tell_state(kName, ProviderState::kDegraded, text, "");
}

/// Of threads that came while the first one decided. Told by whichever is later, them or the
/// decision: it sees both.
void tell_late_threads(TimerPlan& plan, uint32_t state) {
  if (state == static_cast<uint32_t>(TimerState::kOn))
    tell_missing_threads(plan, "they began with the first one");
}

}  // namespace

uint32_t follow_frames(uintptr_t stack, uintptr_t frame, const StackBounds& bounds,
                       uint64_t* frames, uint32_t count, uint32_t capacity) {
  constexpr uintptr_t kPairBytes = 2 * sizeof(uint64_t);
  if (stack < bounds.low || stack >= bounds.high) return count;
  uintptr_t least = stack;
  while (count < capacity && frame >= least && frame % sizeof(uint64_t) == 0 &&
         frame < bounds.high && bounds.high - frame >= kPairBytes) {
    const auto* pair = reinterpret_cast<const uint64_t*>(frame);
    if (pair[1] == 0) break;  // the outermost frame
    frames[count++] = pair[1];
    least = frame + kPairBytes;
    frame = static_cast<uintptr_t>(pair[0]);
  }
  return count;
}

StackBounds find_stack(const char* maps, uintptr_t here, uintptr_t top) {
  std::string_view rest = maps;
  for (ProcMapping line; take_mapping(&rest, &line);) {
    if (here < line.start || here >= line.end) continue;
    const bool is_own = here < top && top <= line.end && line.access.starts_with("rw");
    return is_own ? StackBounds{line.start, top} : StackBounds{};
  }
  return {};
}

bool is_timer_harmless(const char* release) {
  char* end = nullptr;
  const long major = strtol(release, &end, 10);
  const long minor = *end == '.' ? strtol(end + 1, nullptr, 10) : 0;
  return major > kFirstRelease[0] || (major == kFirstRelease[0] && minor >= kFirstRelease[1]);
}

void open_timer(Process& p, Writer* w) {
  TimerPlan& plan = p.timer_plan;
  uint32_t state = plan.state.load(std::memory_order_acquire);  // pairs with runtime:timers
  if (state == static_cast<uint32_t>(TimerState::kOff)) return;
  if (state == static_cast<uint32_t>(TimerState::kUnknown) &&
      plan.state.compare_exchange_strong(state, static_cast<uint32_t>(TimerState::kOpening),
                                         std::memory_order_relaxed)) {
    state = static_cast<uint32_t>(decide(p));
    plan.state.store(state, std::memory_order_release);  // pairs with runtime:timers
    // pairs with runtime:timers
    if (plan.late_threads.exchange(0, std::memory_order_acq_rel) != 0)
      tell_late_threads(plan, state);
  } else if (state == static_cast<uint32_t>(TimerState::kOpening)) {
    plan.late_threads.fetch_add(1, std::memory_order_acq_rel);  // pairs with runtime:timers
    // pairs with runtime:timers
    tell_late_threads(plan, plan.state.load(std::memory_order_acquire));
    return;
  }
  if (state != static_cast<uint32_t>(TimerState::kOn)) return;
  const char* missing = start_timer(p, w);
  if (missing != nullptr) tell_missing_threads(plan, missing);
}

void close_timer(Process& p, Writer* w) {
  ThreadTimer& timer = p.timers[w->slot_index];
  if (!timer.is_on) return;
  timer.is_on = false;
  syscall(SYS_timer_delete, timer.id);
}

}  // namespace aon::runtime
