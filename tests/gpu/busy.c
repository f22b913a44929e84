/* Has the first GPU do one thing after the other, for so many seconds each, and prints the time (ns
 * since 1970) at which each phase begins and the last one ends, then what was done:
 *
 *     gpu_busy idle:3 busy:4 idle:3  ->  "idle NS", "busy NS", "idle NS", "end NS",
 *                                        "launched KERNELS", "copied TIMES", "bytes OF_THEM"
 *
 * busy: fp32 arithmetic. copy: from device memory to device memory. transfer: from the host's.
 * matrix: tensor pipes, from Ampere on. Before all "capability 90". Without a GPU it exits with
 * 77. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/gpu/driver.h"

enum { kBlocks = 2048, kThreads = 256, kRounds = 20000 /* some ms */, kAtOnce = 4 };
static const size_t kCopyBytes = (size_t)512 << 20; /* more than any cache holds */
static const size_t kTransferBytes = (size_t)128 << 20;

static unsigned long long launched, copied, bytes;
static void* kernel;
static uint64_t from, to;
static void* host;

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void say(const char* phase) {
  printf("%s %llu\n", phase, (unsigned long long)now_ns());
  fflush(stdout);
}

static void rest(double seconds) {
  const struct timespec pause = {(time_t)seconds,
                                 (long)((seconds - (double)(time_t)seconds) * 1e9)};
  nanosleep(&pause, NULL);
}

static void prepare_nothing(void) {}
static void prepare_busy(void) {
  kernel = find_kernel(kSpin, "spin");
  to = allocate(4);
}
static void prepare_matrix(void) {
  kernel = find_kernel(kMatrix, "matrix");
  to = allocate(4);
}
static void prepare_copy(void) {
  from = allocate(kCopyBytes);
  to = allocate(kCopyBytes);
}
static void prepare_transfer(void) {
  check(driver.allocate_on_host(&host, kTransferBytes, 0), "cuMemHostAlloc");
  to = allocate(kTransferBytes);
}

static void compute(void) {
  launch(kernel, kBlocks, kThreads, to, kRounds);
  ++launched;
}
static void copy(void) {
  check(driver.copy_on_device(to, from, kCopyBytes, work_stream), "cuMemcpyDtoDAsync");
  ++copied;
  bytes += kCopyBytes;
}
static void transfer(void) {
  check(driver.copy_to_device(to, host, kTransferBytes, work_stream), "cuMemcpyHtoDAsync");
  ++copied;
  bytes += kTransferBytes;
}

static const struct {
  const char* name;
  void (*prepare)(void);
  void (*enqueue)(void);
} kPhases[] = {
    {"idle", prepare_nothing, NULL},     {"busy", prepare_busy, compute},
    {"copy", prepare_copy, copy},        {"transfer", prepare_transfer, transfer},
    {"matrix", prepare_matrix, compute},
};
enum { kPhaseCount = sizeof kPhases / sizeof kPhases[0] };

static void work(double seconds, void (*enqueue)(void)) {
  const uint64_t end_ns = now_ns() + (uint64_t)(seconds * 1e9);
  while (now_ns() < end_ns) {
    for (int i = 0; i < kAtOnce; ++i) enqueue();
    wait_for_device();
  }
}

static void run(const char* word) {
  const char* colon = strchr(word, ':');
  const size_t length = colon != NULL ? (size_t)(colon - word) : 0;
  for (int i = 0; i < kPhaseCount; ++i) {
    if (strlen(kPhases[i].name) != length || strncmp(kPhases[i].name, word, length) != 0) continue;
    const double seconds = atof(colon + 1);
    kPhases[i].prepare();
    say(kPhases[i].name);
    if (kPhases[i].enqueue == NULL) {
      rest(seconds);
    } else {
      work(seconds, kPhases[i].enqueue);
    }
    return;
  }
  fprintf(stderr, "gpu_busy: no such phase: %s\n", word);
  exit(1);
}

int main(int count, char** words) {
  open_driver();
  printf("capability %d\n", compute_capability());
  for (int i = 1; i < count; ++i) run(words[i]);
  say("end");
  printf("launched %llu\ncopied %llu\nbytes %llu\n", launched, copied, bytes);
  return 0;
}
