/* What launches cost the host and how long kernels take, by the program's own clock and CUDA's
 * events. Prints lines of a name and a number. Without a GPU it exits with 77.
 *
 *     gpu_launches launch BURSTS         bursts of 500 empty kernels: call_ns of a launch, loop_ns
 *                                        with waiting for the device; medians; kernels
 *     gpu_launches loop WARM_S SECONDS   empty kernels without a pause, counted after WARM_S
 *                                        seconds: loop_ns, kernels; before: warm_loop_ns
 *     gpu_launches graph BURSTS NODES    ten replays each of a graph of empty kernels: call_ns,
 *                                        loop_ns of one; graphs, kernels
 *     gpu_launches events COUNT          so many of two kernels between events: "spin COUNT NS",
 *                                        "spin_longer COUNT NS"; and "hold COUNT" before them, so
 *                                        that no event waits for the host */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/gpu/driver.h"

enum {
  kBurst = 500, /* fewer than the driver queues: a launch never waits for the device */
  kReplays = 10,
  kLoop = 10000, /* launches between two looks at the clock */
  kWarmBursts = 10,
  kMaxBursts = 100000,
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

/* Prints the medians of one call and of one with its part of the waiting. */
static void run_bursts(int bursts, int calls, void (*call)(void)) {
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
  printf("call_ns %.1f\nloop_ns %.1f\n", median(call_ns, bursts), median(loop_ns, bursts));
}

static void run_launches(int bursts) {
  run_bursts(bursts, kBurst, launch_empty);
  printf("kernels %ld\n", (long)(bursts + kWarmBursts) * kBurst);
}

static void run_graphs(int bursts, int nodes) {
  void* captured = NULL;
  check(driver.begin_capture(work_stream, 2), "cuStreamBeginCapture");
  for (int i = 0; i < nodes; ++i) launch_empty();
  check(driver.end_capture(work_stream, &captured), "cuStreamEndCapture");
  check(driver.instantiate(&graph, captured, 0), "cuGraphInstantiateWithFlags");
  run_bursts(bursts, kReplays, launch_graph);
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
  } else if (strcmp(what, "events") == 0) {
    run_between_events("spin", atoi(words[2]), kSpinRounds);
    run_between_events("spin_longer", atoi(words[2]), 3 * kSpinRounds);
    printf("hold %d\n", 2 * kHolds);
  } else {
    fprintf(stderr,
            "gpu_launches: launch BURSTS, loop WARM_S SECONDS, graph BURSTS NODES or "
            "events COUNT\n");
    return 1;
  }
  return 0;
}
