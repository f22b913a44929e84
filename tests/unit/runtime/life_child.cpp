// What a program can do to the runtime, one case per run: `life_child CASE [ARGUMENT]`. It prints
// `emitted N` before it ends, its own count of events that it made (refused ones included).
#include <aon/annotation.h>
#include <aon/writer.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/runtime/life_child.h"
#include "tests/unit/runtime/numbered.h"

namespace life {

std::atomic<uint64_t> g_emitted{0};
thread_local uint32_t t_thread = 0;
thread_local uint64_t t_number = 0;

bool event() {
  g_emitted.fetch_add(1, std::memory_order_relaxed);
  aon::Writer* w = aon::attached_writer();
  const uint64_t number = t_number++;
  return w != nullptr && aon::test::put_numbered(w, t_thread, number);
}

}  // namespace life

namespace {

using aon::Writer;
using namespace life;

bool g_tells = true;  ///< false in cases that do not count their own events

void tell() {
  if (!g_tells) return;
  char line[64];
  const int length = snprintf(line, sizeof line, "emitted %llu\n",
                              static_cast<unsigned long long>(g_emitted.load()));
  if (write(STDOUT_FILENO, line, static_cast<size_t>(length)) != length) _exit(120);
}

[[gnu::constructor(101)]] void early() {
  if (getenv("LIFE_EARLY") != nullptr) event();
}

struct Late {
  ~Late() {
    if (getenv("LIFE_LATE") == nullptr) return;
    event();
    tell();
  }
} g_late;

void run_exec(const char* self) {
  event();
  tell();
  execl(self, self, "exit", nullptr);
}

volatile uint64_t g_handler_runs = 0;

/// Numbers of the handler's events are those of thread 3, so that each sequence stays its own.
void on_alarm(int) {
  static uint64_t number = 0;
  g_handler_runs = g_handler_runs + 1;
  g_emitted.fetch_add(1, std::memory_order_relaxed);
  Writer* w = aon::attached_writer();
  if (w != nullptr) aon::test::put_numbered(w, 3, number);
  ++number;
}

void start_alarms(void (*handler)(int), int flags) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaction(SIGALRM, &action, nullptr);
  const itimerval timer = {{0, 50}, {0, 50}};
  setitimer(ITIMER_REAL, &timer, nullptr);
}

void stop_alarms() {
  const itimerval timer = {};
  setitimer(ITIMER_REAL, &timer, nullptr);
}

void run_signals(int flags) {
  event();
  start_alarms(on_alarm, flags);
  const uint64_t end = static_cast<uint64_t>(time(nullptr)) + 2;
  // An alarm cuts a pause short: bounded, so that the ring holds all.
  for (int part = 0; part < 25000 && static_cast<uint64_t>(time(nullptr)) < end; ++part) {
    for (int i = 0; i < 50; ++i) event();
    usleep(100);
  }
  stop_alarms();
  printf("handler %llu\n", static_cast<unsigned long long>(g_handler_runs));
}

sigjmp_buf g_jump;
volatile uint64_t g_jump_count = 0;

void on_alarm_jump(int) {
  g_jump_count = g_jump_count + 1;
  siglongjmp(g_jump, 1);
}

/// An event that the handler leaves may be recorded or not; it is counted as emitted only when
/// put_numbered returned. Its number is used once.
void run_jumps(int flags) {
  g_tells = false;
  event();
  static volatile uint64_t number = 1;
  static volatile uint64_t returned = 0;
  static volatile uint64_t refused = 0;
  // The first alarm may come at once: it needs a place to jump to.
  if (sigsetjmp(g_jump, 1) == 0) start_alarms(on_alarm_jump, SA_NODEFER | flags);
  while (g_jump_count < 5000) {
    const uint64_t mine = number;
    number = mine + 1;
    if (!aon::test::put_numbered(aon::writer(), 0, mine)) refused = refused + 1;
    returned = returned + 1;
    if (mine % 64 == 0) usleep(20);
  }
  stop_alarms();
  printf("jumps %llu started %llu returned %llu refused %llu depth %u\n",
         static_cast<unsigned long long>(g_jump_count), static_cast<unsigned long long>(number),
         static_cast<unsigned long long>(returned), static_cast<unsigned long long>(refused),
         aon::writer()->depth);
}

/// On a busy machine alarms come faster than a handler jumps, and each has a frame of up to 11 KiB.
void use_signal_stack() {
  constexpr size_t kBytes = 4 << 20;
  stack_t stack = {};
  stack.ss_sp = malloc(kBytes);
  stack.ss_size = kBytes;
  sigaltstack(&stack, nullptr);
}

pthread_key_t g_late_key;

void late_event(void*) { event(); }

/// Destructors of other keys run in any order with ours.
void run_thread_key() {
  pthread_key_create(&g_late_key, late_event);
  std::thread([] {
    t_thread = 1;
    pthread_setspecific(g_late_key, reinterpret_cast<void*>(1));
    event();
  }).join();
}

void run_live_threads(uint32_t count) {
  std::atomic<uint32_t> ready{0};
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      t_thread = i;
      event();
      ready.fetch_add(1);
      while (ready.load() < count) usleep(1000);
      for (int n = 0; n < 999; ++n) event();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void run_sequential_threads(uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    std::thread([i] {
      t_thread = i;
      for (int n = 0; n < 10; ++n) event();
    }).join();
  }
}

/// A thread that ends inside a call.
void run_exit_in_call() {
  g_tells = false;
  std::thread([] {
    Writer* w = aon::attached_writer();
    aon::begin_call(w, 77, 1, 2, 3);
    pthread_exit(nullptr);
  }).join();
}

constexpr aon::Site kSite = {5, "test_site", 0, 0, aon::kModeFull};
constexpr aon::Site kPolled = {6, "test_poll", 0, 0, aon::kModeSample + 9};

void call(const aon::Site& site) {
  const uint32_t plan = aon::plan_call(site);
  if (plan == aon::kForward) return;
  Writer* w = aon::writer();
  const uint32_t weight = aon::start_plan(w, site, plan);
  if (weight == aon::kForward) return;
  const aon::OpenCall open = aon::begin_call(w, site.id);
  finish_span(open, 0, weight);
}

void run_sites() {
  g_tells = false;
  for (int i = 0; i < 100; ++i) call(kSite);
  for (int i = 0; i < 1000; ++i) call(kPolled);
  aon::aon_set_paused(true);
  for (int i = 0; i < 100; ++i) call(kSite);
  for (int i = 0; i < 1000; ++i) call(kPolled);
  aon::aon_set_paused(false);
  call(kSite);
  printf("regions %u %u %u\n", aon::aon_intern_region("one", 0, 0),
         aon::aon_intern_region("two", 0, 0), aon::aon_intern_region("one", 0, 0));
  const std::string long_name(5000, 'x');
  aon::aon_define(7, "1234", 4, long_name.c_str(), static_cast<uint32_t>(long_name.size() + 1));
}

/// A call that encloses `inner`. Each has its own frame, as wrappers have.
template <class Inner>
[[gnu::noinline]] void enclosing(uint32_t region, Inner inner) {
  const aon::OpenCall open = aon::begin_call(aon::attached_writer(), region, 4, 5, 6);
  inner();
  finish_span(open);
}

/// One of more arguments than registers take, as MPI_Sendrecv is: they lie above its frame.
template <class Inner>
[[gnu::noipa]] void enclosing_with_many(uint32_t region, Inner inner, long, long, long, long, long,
                                        long, long, long, long, long, long) {
  enclosing(region, inner);
}

/// Nested open calls, then a death inside.
void run_killed_in_call() {
  enclosing(70, [] {});
  enclosing(71, [] {
    enclosing(72, [] {});
    enclosing(73, [] { kill(getpid(), SIGKILL); });
  });
}

/// Nothing tells the compiler that it does not return, or it would leave out the frames of calls.
void (*volatile g_leave)() = [] { siglongjmp(g_jump, 1); };
void jump() { g_leave(); }

/// Calls that are left by longjmp do not stay open.
void run_jump_out_of_call() {
  if (sigsetjmp(g_jump, 0) == 0) {
    enclosing(70, [] { enclosing(71, [] { jump(); }); });
  }
  enclosing(72, [] {});
  enclosing(73, [] { kill(getpid(), SIGKILL); });
}

/// An event is left by longjmp out of its middle; a call from the same frame finds that.
[[gnu::noipa]] void leave_event() {
  Writer* w = aon::attached_writer();
  aon::emit(w, 1, true, aon::ticks(w), [](char*) { jump(); });
}
[[gnu::noipa]] void run_jump_out_of_event() {
  g_tells = false;
  if (sigsetjmp(g_jump, 0) == 0) leave_event();
  enclosing(72, [] {});
  printf("depth %u\n", aon::writer()->depth);
}

/// The agent hears of a slow call before it answers; this one ends when the program is killed.
void run_slow_call(bool returns) {
  static constexpr aon::Site kSlow = {74, "slow_call", 0, 0, aon::kModeFull};
  printf("attached %d\n", aon::aon_attach_begin(&kSlow) ? 1 : 0);
  fflush(stdout);
  if (!returns) pause();
  event();
}

/// A call is left by longjmp, and the next one from that frame has more arguments.
void run_jump_out_before_more_arguments() {
  if (sigsetjmp(g_jump, 0) == 0) enclosing(70, [] { jump(); });
  enclosing_with_many(
      72, [] {}, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
  enclosing(73, [] { kill(getpid(), SIGKILL); });
}

/// Calls from deeper in the stack than the one that was left, over memory that nobody writes to.
[[gnu::noipa]] void deeper() {
  volatile char unused[4096];
  unused[0] = 0;
  enclosing(72, [] {});
  enclosing(73, [] { kill(getpid(), SIGKILL); });
}

/// The function that makes a call has it left by longjmp, and goes on with others.
[[gnu::noipa]] void run_jump_out_of_own_call() {
  if (sigsetjmp(g_jump, 0) == 0) enclosing(70, [] { jump(); });
  deeper();
}

/// A call while one on another stack goes on, which lies below: as user-level threads make them.
void run_call_from_a_higher_stack() {
  static ucontext_t lower;
  static ucontext_t own;
  static char stack[1 << 16];
  getcontext(&lower);
  lower.uc_stack.ss_sp = stack;
  lower.uc_stack.ss_size = sizeof stack;
  makecontext(
      &lower, [] { enclosing(70, [] { swapcontext(&lower, &own); }); }, 0);
  swapcontext(&own, &lower);
  enclosing(72, [] {});
  enclosing(73, [] { kill(getpid(), SIGKILL); });
}

/// More than the ring holds, then, when there is room again, one more.
void run_overflow() {
  for (int i = 0; i < 4000; ++i) event();
  puts("full");
  fflush(stdout);
  char line[8];
  if (fgets(line, sizeof line, stdin) == nullptr) _exit(121);
  for (int i = 0; i < 10; ++i) event();
}

/// The same with regions, of which one ends in the full ring and two begin, one of them to its end.
void run_overflow_with_regions() {
  const aon::Annotation* region =
      aon::aon_find_annotation("region", 6, aon::RegionRole::kUser, aon::Paradigm::kUser);
  for (int i = 0; i < 2; ++i) aon::begin_region(region);
  for (int i = 0; i < 4000; ++i) event();
  aon::end_region(region);
  for (int i = 0; i < 2; ++i) aon::begin_region(region);
  aon::end_region(region);
  puts("full");
  fflush(stdout);
  char line[8];
  if (fgets(line, sizeof line, stdin) == nullptr) _exit(121);
  event();
}

void define_numbered(uint32_t number) {
  const std::string name(500, 'n');
  printf("define %d\n", aon::aon_define(7, &number, sizeof number, name.c_str(),
                                        static_cast<uint32_t>(name.size() + 1)));
}

/// Definitions in a full pool; once told so, one more.
void run_definitions() {
  for (int i = 0; i < 4000; ++i) event();
  for (uint32_t i = 0; i < 100; ++i) define_numbered(i);
  puts("full");
  fflush(stdout);
  char line[8];
  if (fgets(line, sizeof line, stdin) == nullptr) _exit(121);
  if (line[0] == 'm') define_numbered(100);
}

const std::map<std::string, void (*)()> kCases = {
    {"definitions", run_definitions},
    {"exit", [] { event(); }},
    {"quiet", [] {}},
    {"fork", run_fork},
    {"clone", run_clone},
    {"vfork", run_vfork},
    {"first_in_vfork", run_first_in_vfork},
    {"first_in_shared_memory", [] { run_first_in_shared_memory(0); }},
    {"first_in_pid_namespace", [] { run_first_in_shared_memory(CLONE_NEWPID); }},
    {"first_of_a_thread_in_vfork", run_first_of_a_thread_in_vfork},
    {"first_in_clone", run_first_in_clone},
    {"clone_without_kcmp", run_clone_without_kcmp},
    {"first_in_clone_without_kcmp", run_first_in_clone_without_kcmp},
    {"fork_in_regions", run_fork_in_regions},
    {"fork_in_pause", run_fork_in_pause},
    {"fork_without_ring", run_fork_without_ring},
    {"generations", run_generations},
    {"signals", [] { run_signals(SA_RESTART); }},
    {"signals_on_stack",
     [] {
       use_signal_stack();
       run_signals(SA_RESTART | SA_ONSTACK);
     }},
    {"jumps", [] { run_jumps(0); }},
    {"jumps_on_stack",
     [] {
       use_signal_stack();
       run_jumps(SA_ONSTACK);
     }},
    {"thread_key", run_thread_key},
    {"pthread_exit",
     [] {
       std::thread([] {
         event();
         pthread_exit(nullptr);
       }).join();
       event();
     }},
    {"live_threads", [] { run_live_threads(256); }},
    {"first_events_at_once", [] { run_live_threads(32); }},
    {"regions_that_meet_the_attach", run_regions_that_meet_the_attach},
    {"regions_without_a_slot", run_regions_without_a_slot},
    {"threads_that_begin_with_the_first", run_threads_that_begin_with_the_first},
    {"annotated_lock", run_annotated_lock},
    {"pauses_at_once", run_pauses_at_once},
    {"beyond_a_chunk", run_beyond_a_chunk},
    {"cancelled_thread", run_cancelled_thread},
    {"without_keys", run_without_keys},
    {"with_1000_descriptors", [] { run_with_descriptors(1000, 1000); }},
    {"with_high_descriptors_taken", [] { run_with_descriptors(1100, 1000); }},
    {"with_one_descriptor", [] { run_without_descriptors(1); }},
    {"with_the_agents_descriptor_taken", run_with_the_agents_descriptor_taken},
    {"without_descriptors", [] { run_without_descriptors(0); }},
    {"without_memory", run_without_memory},
    {"old_kernel", run_on_an_old_kernel},
    {"umask", [] { run_with_umask([] { event(); }); }},
    {"umask_without_keys", [] { run_with_umask(run_without_keys); }},
    {"trapped_calls", run_with_trapped_calls},
    {"small_signal_stack", run_on_a_small_signal_stack},
    {"too_many_threads", [] { run_live_threads(40); }},
    {"sequential_threads", [] { run_sequential_threads(20000); }},
    {"exit_in_call", run_exit_in_call},
    {"sites", run_sites},
    {"killed_in_call", run_killed_in_call},
    {"slow_call", [] { run_slow_call(true); }},
    {"slow_call_for_ever", [] { run_slow_call(false); }},
    {"jump_out_of_event", run_jump_out_of_event},
    {"jump_out_of_call", run_jump_out_of_call},
    {"jump_out_before_more_arguments", run_jump_out_before_more_arguments},
    {"jump_out_of_own_call", run_jump_out_of_own_call},
    {"call_from_a_higher_stack", run_call_from_a_higher_stack},
    {"overflow", run_overflow},
    {"overflow_with_regions", run_overflow_with_regions},
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::string name = argv[1];
  if (name == "exec") run_exec(argv[0]);
  const bool dies = name == "_exit" || name == "abort" || name == "segv";
  if (dies) {
    event();
    tell();
  }
  if (name == "_exit") _exit(3);
  if (name == "abort") abort();
  if (name == "segv") raise(SIGSEGV);
  const auto found = kCases.find(name);
  if (found == kCases.end()) return 2;
  found->second();
  fflush(stdout);
  tell();
  return 0;
}
