// What a program may do with annotations, one case per run: `cases CASE`. Knows nothing of AON but
// aon/annotate.h.
#include <aon/annotate.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
  kCalls = 100,
  kLongName = 1 << 20,
  kBurst = 500,
  kBreathNs = 300000,
  kFlood = 12500,
  kBeside = 1000,
  kBesideMost = 60000
};

static aon_region_t g_in_handler;

static void balanced(void) {
  const aon_region_t inner = aon_region("inner");
  const aon_counter_t residual = aon_counter("residual", "K");
  for (int step = 0; step < 3; ++step) {
    aon_step_begin(step);
    AON_REGION_BEGIN("outer");
    aon_region_begin(inner);
    aon_counter_set(residual, 0.5 * step);
    aon_region_end(inner);
    AON_REGION_END("outer");
    aon_step_end();
  }
  aon_mark_name("plain");
  aon_mark_integer(aon_region("whole"), -5);
  aon_mark_real(aon_region("real"), 0.25);
}

static void unbalanced(void) {
  aon_region_begin_name("a");
  aon_region_end_name("never begun");
  aon_region_begin_name("b");
  aon_region_begin_name("c");
  aon_region_end_name("a");
  aon_region_begin_name("left open");
}

static void in_handler(int signal) {
  (void)signal;
  aon_region_begin(g_in_handler);
  aon_region_end(g_in_handler);
}

static void from_handler(void) {
  g_in_handler = aon_region("handler");
  signal(SIGUSR1, in_handler);
  for (int i = 0; i < kCalls; ++i) {
    AON_REGION_BEGIN("main");
    raise(SIGUSR1);
    AON_REGION_END("main");
  }
}

static volatile sig_atomic_t g_handled;

enum { kTimerCalls = 800 };

/// Every tenth of a millisecond, wherever the program is: inside of a record, too. Each of the
/// first comes with a name that nobody has used before.
static void in_timer(int signal) {
  (void)signal;
  char name[32];
  snprintf(name, sizeof name, "timer %d", (int)(g_handled % 500));
  const aon_region_t region = aon_region(name);
  aon_region_begin(region);
  aon_region_end(region);
  ++g_handled;
}

static void from_timer(void) {
  const struct itimerval often = {{0, 100}, {0, 100}};
  const struct itimerval never = {{0, 0}, {0, 0}};
  signal(SIGALRM, in_timer);
  setitimer(ITIMER_REAL, &often, NULL);
  int count = 0;
  for (; g_handled < kTimerCalls; ++count) {
    AON_REGION_BEGIN("main");
    AON_REGION_END("main");
    for (volatile int i = 0; i < 500; ++i) {
    }
    // Breathes now and then: what fills the memory before the agent gets a core would be lost.
    struct timespec left = {0, kBreathNs};
    while (count % kBurst == 0 && nanosleep(&left, &left) != 0) {
    }
  }
  setitimer(ITIMER_REAL, &never, NULL);
  printf("handled %d of %d\n", (int)g_handled, count);
}

static void after_fork(void) {
  const aon_region_t shared = aon_region("shared");
  aon_region_begin(shared);
  aon_region_end(shared);
  const pid_t pid = fork();
  for (int i = 0; i < 2; ++i) {
    aon_region_begin(shared);
    AON_REGION_BEGIN("own");
    AON_REGION_END("own");
    aon_region_end(shared);
  }
  if (pid != 0) waitpid(pid, NULL, 0);
}

static void open_over_fork(void) {
  const aon_region_t open = aon_region("open");
  aon_region_begin(open);
  const pid_t pid = fork();
  aon_region_end(open);
  if (pid == 0) _exit(0);
  waitpid(pid, NULL, 0);
}

static void long_name(void) {
  char* name = malloc(kLongName + 1);
  memset(name, 'x', kLongName);
  name[kLongName] = '\0';
  aon_region_begin_name(name);
  aon_region_end_name(name);
  for (int i = 0; i + 1 < kLongName; i += 2) memcpy(name + i, "\xc3\xa9", 2);
  aon_region_begin_name(name);
  aon_region_end_name(name);
  aon_counter_set(aon_counter(name, name), 1.0);
  free(name);
}

/// At a pace that an agent on a busy machine can keep up with.
static void many_names(void) {
  char name[32];
  for (int i = 0; i < 10000; ++i) {
    if (i % 100 == 0) usleep(2000);
    snprintf(name, sizeof name, "name %d", i);
    aon_region_begin_name(name);
    aon_region_end_name(name);
  }
}

static void* same_names(void* number) {
  for (int i = 0; i < kCalls; ++i) {
    char name[32];
    snprintf(name, sizeof name, "name %d", i % 10);
    aon_region_begin_name(name);
    AON_REGION_BEGIN("thread");
    AON_REGION_END("thread");
    aon_region_end_name(name);
  }
  return number;
}

static void threads(void) {
  pthread_t other;
  aon_mark_name("attached");  // or the other thread's first events meet the attaching
  pthread_create(&other, NULL, same_names, NULL);
  same_names(NULL);
  pthread_join(other, NULL);
}

/// As MPI_Pcontrol does it.
static void pause_recording(bool is_paused) {
  void (*set_paused)(bool) = NULL;
  *(void**)&set_paused = dlsym(RTLD_DEFAULT, "aon_set_paused");
  if (set_paused != NULL) set_paused(is_paused);
}

static void paused(void) {
  aon_region_begin_name("before");
  aon_region_begin_name("over the pause");
  pause_recording(true);
  aon_region_begin_name("skipped");
  aon_region_end_name("skipped");
  aon_mark_name("skipped");
  aon_region_end_name("over the pause");
  aon_region_begin_name("begun in the pause");
  pause_recording(false);
  aon_region_begin_name("inside");
  aon_region_end_name("inside");
  aon_region_end_name("begun in the pause");
  aon_region_end_name("before");
}

/// Bursts of more than a small ring holds, and a while after each in which it is drained. Some
/// begin a record or more farther, so that the holes begin at each of a step's four records.
static void flood(void) {
  const struct timespec breath = {0, 150000000};
  AON_REGION_BEGIN("main");
  for (int burst = 0; burst < 8; ++burst) {
    for (int i = 0; i < burst % 4; ++i) aon_mark_name("farther");
    for (int step = 0; step < kFlood; ++step) {
      aon_step_begin(burst * kFlood + step);
      AON_REGION_BEGIN("inner");
      AON_REGION_END("inner");
      aon_step_end();
    }
    nanosleep(&breath, NULL);
  }
  AON_REGION_BEGIN("behind");
  AON_REGION_END("behind");
  AON_REGION_END("main");
}

/// A mark a millisecond, until this program and another one have made a thousand beside each other:
/// each tells by a file, whose names are in MINE and OTHER.
static void beside(void) {
  const struct timespec pace = {0, 1000000};
  const char* mine = getenv("MINE");
  const char* other = getenv("OTHER");
  int count = 0;
  while (count < kBesideMost && (count < kBeside || access(other, F_OK) != 0)) {
    aon_mark_name("beside");
    if (++count == kBeside) close(creat(mine, 0600));
    nanosleep(&pace, NULL);
  }
  printf("%d marks\n", count);
}

static void names_only(void) {
  aon_counter("counter", "");
  aon_region("region");
}

static void odd(void) {
  aon_region_begin(NULL);
  aon_region_end(NULL);
  aon_region_begin_name(NULL);
  aon_mark(NULL);
  aon_counter_set(NULL, 1.0);
  aon_counter_set(aon_counter("x", NULL), 1.0);
  aon_region_begin_name("");
  aon_region_end_name("");
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
  } kCases[] = {
      {"balanced", balanced}, {"unbalanced", unbalanced}, {"handler", from_handler},
      {"timer", from_timer},  {"fork", after_fork},       {"open_over_fork", open_over_fork},
      {"long", long_name},    {"many", many_names},       {"threads", threads},
      {"paused", paused},     {"names", names_only},      {"odd", odd},
      {"flood", flood},       {"beside", beside}};
  for (size_t i = 0; argc > 1 && i < sizeof kCases / sizeof kCases[0]; ++i) {
    if (strcmp(argv[1], kCases[i].name) != 0) continue;
    kCases[i].run();
    printf("aon is %s\n", aon_is_present() ? "there" : "not there");
    return 0;
  }
  return 2;
}
