/* What launches cost the host and how long kernels take, by the program's own clock and CUDA's
 * events. Prints lines of a name and a number. Without a GPU it exits with 77.
 *
 *     gpu_launches launch BURSTS         bursts of 500 empty kernels: call_ns of a launch, loop_ns
 *                                        with waiting for the device; medians; kernels
 *     gpu_launches loop WARM_S SECONDS   empty kernels without a pause, counted after WARM_S
 *                                        seconds: loop_ns, kernels; before: warm_loop_ns
 *     gpu_launches graph BURSTS NODES    ten replays each of a graph of empty kernels: call_ns,
 *                                        loop_ns of one; graphs, kernels
 *     gpu_launches anew SECONDS [pause]  graphs of ten kernels are made; each and the first one
 *                                        are launched, and 2000 empty kernels; graphs, kernels.
 *                                        `pause`: CUPTI is given away in between; paused, resumed
 *     gpu_launches ends COUNT            so many captures that another stream ends before, in vain,
 *                                        so many that break, and a burst of kernels: wrong_end and
 *                                        broken_end, the results; kernels
 *     gpu_launches subscribe BURSTS      call_ns, graph_call_ns (of 100 kernels); the same behind
 *                                        cuptiSubscribe() alone: subscribed_call_ns, ...
 *     gpu_launches events COUNT          so many of two kernels between events: "spin COUNT NS",
 *                                        "spin_longer COUNT NS"; and "hold COUNT" before them, so
 *                                        that no event waits for the host */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/gpu/driver.h"

enum {
  kSkipped = 77,
  kBurst = 500, /* fewer than the driver queues: a launch never waits for the device */
  kReplays = 10,
  kLoop = 10000, /* launches between two looks at the clock */
  kWarmBursts = 10,
  kMaxBursts = 100000,
  kNodes = 100,
  kAnewNodes = 10,
  kAnewKernels = 2000,
  kAnewRestUs = 50000,
  kHolds = 20,
  kSpinBlocks = 64,
  kSpinThreads = 128,
  kSpinRounds = 200000, /* some ms: events are exact to microseconds */
};

static double call_ns[kMaxBursts];
static double loop_ns[kMaxBursts];
static void* empty;
static void* graph;

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static int compare(const void* a, const void* b) {
  const double difference = *(const double*)a - *(const double*)b;
  return (difference > 0) - (difference < 0);
}

static double median(double* values, int count) {
  qsort(values, (size_t)count, sizeof values[0], compare);
  return values[count / 2];
}

static void launch_empty(void) { launch(empty, 1, 1, 0, 0); }
static void launch_graph(void) { check(driver.launch_graph(graph, work_stream), "cuGraphLaunch"); }

/* Prints the medians of one call and of one with its part of the waiting; `what` is before both. */
static void run_bursts(const char* what, int bursts, int calls, void (*call)(void)) {
  if (bursts < 1) bursts = 1;
  if (bursts > kMaxBursts) bursts = kMaxBursts;
  for (int b = -kWarmBursts; b < bursts; ++b) {
    const double start_ns = now_ns();
    for (int i = 0; i < calls; ++i) call();
    const double called_ns = now_ns();
    wait_for_device();
    if (b < 0) continue;
    call_ns[b] = (called_ns - start_ns) / calls;
    loop_ns[b] = (now_ns() - start_ns) / calls;
  }
  printf("%scall_ns %.1f\n", what, median(call_ns, bursts));
  printf("%sloop_ns %.1f\n", what, median(loop_ns, bursts));
}

static void run_launches(int bursts) {
  run_bursts("", bursts, kBurst, launch_empty);
  printf("kernels %ld\n", (long)(bursts + kWarmBursts) * kBurst);
}

/* In PyTorch's mode, GLOBAL, and for `rest_us` at least: calls of other threads may break it. */
static void make_graph(int nodes, unsigned rest_us) {
  void* captured = NULL;
  check(driver.begin_capture(work_stream, 0), "cuStreamBeginCapture");
  for (int i = 0; i < nodes; ++i) launch_empty();
  usleep(rest_us);
  check(driver.end_capture(work_stream, &captured), "cuStreamEndCapture");
  check(driver.instantiate(&graph, captured, 0), "cuGraphInstantiateWithFlags");
}

static void run_graphs(int bursts, int nodes) {
  make_graph(nodes, 0);
  run_bursts("", bursts, kReplays, launch_graph);
  const long graphs = (long)(bursts + kWarmBursts) * kReplays;
  printf("graphs %ld\nkernels %ld\n", graphs, graphs * nodes);
}

/* Launches for so many seconds; returns ns per launch, the waiting at the end included. */
static double run_loop(double seconds, long* kernels) {
  const double start_ns = now_ns();
  long launched = 0;
  do {
    for (int i = 0; i < kLoop; ++i) launch_empty();
    launched += kLoop;
  } while (now_ns() < start_ns + 1e9 * seconds);
  wait_for_device();
  *kernels += launched;
  return (now_ns() - start_ns) / (double)launched;
}

static void run_loops(double warm_seconds, double seconds) {
  long kernels = 0;
  printf("warm_loop_ns %.1f\n", run_loop(warm_seconds, &kernels));
  printf("loop_ns %.1f\n", run_loop(seconds, &kernels));
  printf("kernels %ld\n", kernels);
}

static void ignore(void* user, int domain, unsigned id, const void* data) {
  (void)user, (void)domain, (void)id, (void)data;
}

static void subscribe(void) {
  void* library = dlopen("libcupti.so.13", RTLD_NOW);
  if (library == NULL) library = dlopen("libcupti.so.12", RTLD_NOW);
  int (*function)(void**, void (*)(void*, int, unsigned, const void*), void*) = NULL;
  void* found = library != NULL ? dlsym(library, "cuptiSubscribe") : NULL;
  if (found == NULL) {
    printf("no libcupti.so.13 or .12\n");
    exit(kSkipped);
  }
  memcpy(&function, &found, sizeof function);
  void* subscriber = NULL;
  check(function(&subscriber, ignore, NULL), "cuptiSubscribe");
}

static void run_subscribed(int bursts) {
  make_graph(kNodes, 0);
  run_bursts("", bursts, kBurst, launch_empty);
  run_bursts("graph_", bursts, kReplays, launch_graph);
  subscribe();
  run_bursts("subscribed_", bursts, kBurst, launch_empty);
  run_bursts("subscribed_graph_", bursts, kReplays, launch_graph);
}

/* Calls a function of AON's library, if it is there. */
static int tell_cupti(const char* name) {
  void* library = dlopen("libaon-cupti.so", RTLD_LAZY | RTLD_NOLOAD);
  int (*function)(void) = NULL;
  void* found = library != NULL ? dlsym(library, name) : NULL;
  memcpy(&function, &found, sizeof function);
  return function != NULL ? function() : -1;
}

/* Returns how many graphs it has launched. */
static long launch_anew(double seconds, void* first, long* kernels) {
  const double end_ns = now_ns() + 1e9 * seconds;
  long graphs = 0;
  while (now_ns() < end_ns) {
    make_graph(kAnewNodes, kAnewRestUs);
    void* const both[] = {first, graph};
    for (int i = 0; i < 2; ++i) check(driver.launch_graph(both[i], work_stream), "cuGraphLaunch");
    for (int i = 0; i < kAnewKernels; ++i) launch_empty();
    wait_for_device();
    graphs += 2;
    *kernels += kAnewKernels;
  }
  return graphs;
}

static void run_anew(double seconds, int pauses) {
  long kernels = 0;
  make_graph(kAnewNodes, kAnewRestUs);
  void* const first = graph;
  long graphs = launch_anew(seconds, first, &kernels);
  if (pauses) {
    printf("paused %d\n", tell_cupti("aon_gpu_pause"));
    make_graph(kAnewNodes, kAnewRestUs);
    check(driver.launch_graph(graph, work_stream), "cuGraphLaunch");
    wait_for_device();
    printf("resumed %d\n", tell_cupti("aon_gpu_resume"));
    check(driver.launch_graph(graph, work_stream), "cuGraphLaunch");
    graphs += 1 + launch_anew(seconds, first, &kernels);
  }
  printf("graphs %ld\nkernels %ld\n", graphs, kernels);
}

/* In mode THREAD_LOCAL, which no other thread breaks. */
static void run_ends(int count) {
  void* other_stream = NULL;
  void* captured = NULL;
  int wrong_end = 0;
  int broken_end = 0;
  check(driver.create_stream(&other_stream, 1), "cuStreamCreate");
  for (int i = 0; i < count; ++i) {
    check(driver.begin_capture(work_stream, 1), "cuStreamBeginCapture");
    wrong_end = driver.end_capture(other_stream, &captured);
    launch_empty();
    check(driver.end_capture(work_stream, &captured), "cuStreamEndCapture");
    check(driver.begin_capture(work_stream, 1), "cuStreamBeginCapture");
    launch_empty();
    if (driver.wait_for_context() == 0) check(-1, "cuCtxSynchronize, which breaks captures,");
    broken_end = driver.end_capture(work_stream, &captured);
  }
  for (int i = 0; i < kBurst; ++i) launch_empty();
  wait_for_device();
  printf("wrong_end %d\nbroken_end %d\nkernels %d\n", wrong_end, broken_end, kBurst);
}

static void run_between_events(const char* name, int count, uint64_t rounds) {
  enum { kMost = 10000 };
  static void* events[2][kMost];
  void* kernel = find_kernel(kSpin, name);
  void* hold = find_kernel(kSpin, "hold");
  const uint64_t out = allocate(4);
  double sum_ms = 0;
  if (count > kMost) count = kMost;
  for (int i = 0; i < count; ++i) {
    for (int side = 0; side < 2; ++side) {
      check(driver.create_event(&events[side][i], 0), "cuEventCreate");
    }
  }
  for (int i = 0; i < kHolds; ++i) launch(hold, kSpinBlocks, kSpinThreads, out, rounds);
  for (int i = 0; i < count; ++i) {
    check(driver.record_event(events[0][i], work_stream), "cuEventRecord");
    launch(kernel, kSpinBlocks, kSpinThreads, out, rounds);
    check(driver.record_event(events[1][i], work_stream), "cuEventRecord");
  }
  wait_for_device();
  for (int i = 0; i < count; ++i) {
    float ms = 0;
    check(driver.elapsed_ms(&ms, events[0][i], events[1][i]), "cuEventElapsedTime");
    sum_ms += ms;
  }
  printf("%s %d %.0f\n", name, count, 1e6 * sum_ms);
}

int main(int count, char** words) {
  const char* what = count > 2 ? words[1] : "";
  open_driver();
  empty = find_kernel(kSpin, "nothing");
  if (strcmp(what, "launch") == 0) {
    run_launches(atoi(words[2]));
  } else if (strcmp(what, "loop") == 0 && count > 3) {
    run_loops(atof(words[2]), atof(words[3]));
  } else if (strcmp(what, "graph") == 0 && count > 3) {
    run_graphs(atoi(words[2]), atoi(words[3]));
  } else if (strcmp(what, "anew") == 0) {
    run_anew(atof(words[2]), count > 3);
  } else if (strcmp(what, "ends") == 0) {
    run_ends(atoi(words[2]));
  } else if (strcmp(what, "subscribe") == 0) {
    run_subscribed(atoi(words[2]));
  } else if (strcmp(what, "events") == 0) {
    run_between_events("spin", atoi(words[2]), kSpinRounds);
    run_between_events("spin_longer", atoi(words[2]), 3 * kSpinRounds);
    printf("hold %d\n", 2 * kHolds);
  } else {
    fprintf(stderr,
            "gpu_launches: launch BURSTS, loop WARM_S SECONDS, graph BURSTS NODES, "
            "anew SECONDS [pause], ends COUNT, subscribe BURSTS or events COUNT\n");
    return 1;
  }
  return 0;
}
