// A program that uses a GPU as MPI programs do: every rank launches kernels into its streams,
// copies and sets memory, and counts what it did. Prints one line: kernels copies bytes sets
// graphs.
//
//   gpu_program [kernels per stream [streams [threads]]]
//
// GPU_PROGRAM_SECONDS=N: a kernel each millisecond for so long before all others; with
// GPU_PROGRAM_BUSY=1 ten, and computing in between.
// GPU_PROGRAM_FORK=1: a child comes and goes in between. GPU_PROGRAM_PAUSE=N: CUPTI is given away
// for N more kernels, by aon/gpu.h, with GPU_PROGRAM_DLSYM=1 by the names of libaon-cupti.so;
// GPU_PROGRAM_PAUSE_MS=N: and N ms. GPU_PROGRAM_PCONTROL=N: N more under
// MPI_Pcontrol(0). GPU_PROGRAM_WAITS=1: each thread waits for the device.
// GPU_PROGRAM_GRAPHS=1: a graph is made before all, each tenth of a second of GPU_PROGRAM_SECONDS
// and in the pause, and the first and the last are launched.
// GPU_PROGRAM_NAMES=N: N kernels of a name each before all. GPU_PROGRAM_REST=1: prints what our
// thread does in two seconds.
// GPU_PROGRAM_DURATION_US=N: what a kernel takes; 10. GPU_PROGRAM_STEPS=N: N annotated steps before
// all. GPU_PROGRAM_BENCH=N: only measures launches, N rounds of 10000. GPU_PROGRAM_END=SIGNAL: gets
// it before the end; 0: ends by _exit. GPU_PROGRAM_RESET=1: the device is reset behind the kernels.
// GPU_PROGRAM_GRAPHLESS=1: no graph is launched at the end. GPU_PROGRAM_CAPTURES=N: N kernels are
// captured before all, one each, and their graphs thrown away; with GPU_PROGRAM_BROKEN=1 each
// breaks. GPU_PROGRAM_WRONG_ENDS=1: captures of a stream that has none are ended, in vain, in each
// of them and behind the kernels of each stream. GPU_PROGRAM_LEFT_OPEN=1: the first thread captures
// a kernel before all, and ends that in the pause, if there is one.
// GPU_PROGRAM_RELEASES=N: its context is retained and released N times in a second, as UCX does for
// each transfer, and then once more: that is its end.
// GPU_PROGRAM_IDS=N: N rounds of work with external correlation ids before all, and prints how many
// calls got which: "id KIND ID calls N".
#include <aon/annotate.h>
#include <aon/gpu.h>
#include <dirent.h>
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// NOLINTBEGIN(readability-identifier-naming): NVIDIA's names
int cuInit(unsigned flags);
int cuLaunchKernel(const char* name, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                   unsigned by, unsigned bz, unsigned shared_bytes, void* stream, void** p,
                   void** e);
int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void* stream);
int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, void* stream);
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void* stream);
int cuStreamBeginCapture_v2(void* stream, int mode);
int cuStreamEndCapture(void* stream, void** graph);
int cuGraphInstantiateWithFlags(void** ready, void* graph, unsigned long long flags);
int cuGraphLaunch(void* graph, void* stream);
int cuCtxSynchronize(void);
int cuDevicePrimaryCtxReset_v2(int device);
int cuDevicePrimaryCtxRetain(void** context, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
// NOLINTEND(readability-identifier-naming)
int fake_cuda_set_device(uint32_t device);
void fake_cuda_set_duration(uint64_t ns);

static const char* const kNames[] = {"_Z5saxpyPfS_fi", "reduce", "_ZN3lib4gemmIfEEvPKT_"};
enum { kNameCount = 3, kCopyBytes = 4096 };

static void* first_graph;
static void* last_graph;
static int graphs = 0; /* launched */

/// In PyTorch's mode, GLOBAL: calls of other threads may break it.
static void make_graph(void) {
  enum { kCaptureUs = 20000 };
  void* captured = NULL;
  void* stream = (void*)6;
  cuStreamBeginCapture_v2(stream, 0);
  cuLaunchKernel(kNames[0], 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
  usleep(kCaptureUs);
  if (cuStreamEndCapture(stream, &captured) != 0) abort();
  cuGraphInstantiateWithFlags(&last_graph, captured, 0);
  if (first_graph == NULL) first_graph = last_graph;
}

static void end_no_capture(void) {
  void* captured = NULL;
  if (cuStreamEndCapture((void*)7, &captured) == 0) abort();
}

static void capture_in_vain(const char* count) {
  const int is_broken = getenv("GPU_PROGRAM_BROKEN") != NULL;
  const int captures = count ? atoi(count) : 0;
  for (int i = 0; i < captures; ++i) {
    void* captured = NULL;
    void* stream = (void*)6;
    cuStreamBeginCapture_v2(stream, 1);
    if (getenv("GPU_PROGRAM_WRONG_ENDS")) end_no_capture();
    cuLaunchKernel(kNames[0], 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
    if (is_broken && cuCtxSynchronize() == 0) abort();
    if ((cuStreamEndCapture(stream, &captured) != 0) != is_broken) abort();
  }
}

static void* const kOpenStream = (void*)5;
static void begin_open_capture(void) {
  cuStreamBeginCapture_v2(kOpenStream, 2);
  cuLaunchKernel(kNames[0], 1, 1, 1, 1, 1, 1, 0, kOpenStream, NULL, NULL);
}

static void capture_before_all(void) {
  if (getenv("GPU_PROGRAM_LEFT_OPEN")) begin_open_capture();
  capture_in_vain(getenv("GPU_PROGRAM_CAPTURES"));
}

static void launch_graphs(void) {
  cuGraphLaunch(first_graph, (void*)6);
  cuGraphLaunch(last_graph, (void*)6);
  graphs += 2;
}

struct Job {
  int kernels;
  int stream;
  int device;
  long launched;
};

static void* run_stream(void* argument) {
  struct Job* job = argument;
  void* stream = (void*)(intptr_t)job->stream;
  fake_cuda_set_device((uint32_t)job->device);
  cuMemcpyHtoDAsync_v2(0, NULL, kCopyBytes, stream);
  for (int i = 0; i < job->kernels; ++i) {
    cuLaunchKernel(kNames[i % kNameCount], 8, 4, 1, 128, 1, 1, 256, stream, NULL, NULL);
    ++job->launched;
  }
  cuMemsetD8Async(0, 0, 512, stream);
  cuMemcpyDtoHAsync_v2(NULL, 0, 2 * kCopyBytes, stream);
  if (getenv("GPU_PROGRAM_WRONG_ENDS")) end_no_capture();
  if (getenv("GPU_PROGRAM_WAITS")) cuCtxSynchronize();
  return NULL;
}

/// A child that inherits all and leaves by exit().
static void fork_child(void) {
  const pid_t child = fork();
  if (child == 0) exit(3);
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 3) abort();
}

static int ask_by_name(const char* name) {
  void* shim = dlopen("libaon-cupti.so", RTLD_LAZY | RTLD_NOLOAD);
  int (*function)(void) = shim ? (int (*)(void))dlsym(shim, name) : NULL;
  return function ? function() : 0;
}

static int pause_gpu(void) {
  return getenv("GPU_PROGRAM_DLSYM") ? ask_by_name("aon_gpu_pause") : aon_gpu_pause();
}

static int resume_gpu(void) {
  return getenv("GPU_PROGRAM_DLSYM") ? ask_by_name("aon_gpu_resume") : aon_gpu_resume();
}

/// Kernels while CUPTI is somebody else's. Returns how many are seen.
static long launch_unseen(int kernels) {
  if (first_graph != NULL) launch_graphs();
  cuLaunchKernel(kNames[1], 1, 1, 1, 1, 1, 1, 0, (void*)7, NULL, NULL);
  cuCtxSynchronize();  // what still runs when CUPTI is given away gets no end
  const int is_paused = pause_gpu();
  printf("paused %d\n", is_paused);
  void* captured = NULL;
  if (getenv("GPU_PROGRAM_LEFT_OPEN")) cuStreamEndCapture(kOpenStream, &captured);
  for (int i = 0; i < kernels; ++i) {
    cuLaunchKernel("unseen", 1, 1, 1, 1, 1, 1, 0, (void*)7, NULL, NULL);
  }
  if (first_graph != NULL) make_graph();
  cuCtxSynchronize();
  if (getenv("GPU_PROGRAM_PAUSE_MS"))
    usleep(1000u * (unsigned)atoi(getenv("GPU_PROGRAM_PAUSE_MS")));
  if (is_paused) printf("resumed %d\n", resume_gpu());
  return 1;
}

/// Kernels in a pause, far from its borders. Returns how many are recorded.
static long launch_paused(int kernels) {
  enum { kFarUs = 20000 };
  cuLaunchKernel(kNames[1], 1, 1, 1, 1, 1, 1, 0, (void*)7, NULL, NULL);
  cuCtxSynchronize();
  MPI_Pcontrol(0);
  usleep(kFarUs);
  for (int i = 0; i < kernels; ++i) {
    cuLaunchKernel("paused", 1, 1, 1, 1, 1, 1, 0, (void*)7, NULL, NULL);
  }
  cuCtxSynchronize();
  usleep(kFarUs);
  MPI_Pcontrol(1);
  usleep(kFarUs);
  return 1;
}

typedef int (*PushId)(int kind, uint64_t id);
typedef int (*PopId)(int kind, uint64_t* id);
static PushId push_id;
static PopId pop_id;

static void pop(int kind, uint64_t expected) {
  uint64_t id = 0;
  if (pop_id(kind, &id) != 0 || id != expected) abort();
}

/// A framework's operation in a phase of the program: the second of two phases counts, beside the
/// operation, whose number none other has; a copy is of the phase alone, the last kernel of none.
static long launch_with_ids(int rounds) {
  enum { kUnknown = 1, kCustom0 = 3, kOuterPhase = 70, kPhase = 71, kQueueEmpty = 18 };
  const uint64_t first_operation = 1ull << 40;
  void* cupti = dlopen("libcupti.so.13", RTLD_LAZY);
  if (cupti == NULL) abort();
  push_id = (PushId)dlsym(cupti, "cuptiActivityPushExternalCorrelationId");
  pop_id = (PopId)dlsym(cupti, "cuptiActivityPopExternalCorrelationId");
  if (push_id(0, 1) == 0 || pop_id(kCustom0, NULL) != kQueueEmpty) abort();
  for (int i = 0; i < rounds; ++i) {
    const uint64_t operation = first_operation + (uint64_t)i;
    push_id(kUnknown, kOuterPhase);
    push_id(kUnknown, kPhase);
    push_id(kCustom0, operation);
    cuLaunchKernel("_Z7with_idv", 1, 1, 1, 1, 1, 1, 0, (void*)7, NULL, NULL);
    pop(kCustom0, operation);
    cuMemcpyHtoDAsync_v2(0, NULL, 64, (void*)7);
    pop(kUnknown, kPhase);
    pop(kUnknown, kOuterPhase);
    cuLaunchKernel("_Z10without_idv", 1, 1, 1, 1, 1, 1, 0, (void*)7, NULL, NULL);
    printf("id CUSTOM0 %llu calls 1\n", (unsigned long long)operation);
  }
  printf("id UNKNOWN %d calls %d\n", kPhase, 2 * rounds);
  return 2L * rounds;
}

static long launch_named(int names) {
  enum { kNameBytes = 24 };
  char* text = malloc((size_t)names * kNameBytes);  // CUPTI names them by pointers
  for (int i = 0; i < names; ++i) {
    char* name = text + (size_t)i * kNameBytes;
    snprintf(name, kNameBytes, "kernel_%d", i);
    cuLaunchKernel(name, 1, 1, 1, 1, 1, 1, 0, (void*)7, NULL, NULL);
  }
  return names;
}

static long launch_before_all(void) {
  const char* names = getenv("GPU_PROGRAM_NAMES");
  const char* rounds = getenv("GPU_PROGRAM_IDS");
  return (names ? launch_named(atoi(names)) : 0) + (rounds ? launch_with_ids(atoi(rounds)) : 0);
}

/// Annotated steps, each ended by waiting for the device.
static void run_steps(int steps) {
  enum { kLayers = 5 };
  const aon_region_t layer = aon_region("layer");
  for (int step = 0; step < steps; ++step) {
    aon_step_begin(step);
    aon_region_begin(layer);
    for (int i = 0; i < kLayers; ++i) {
      cuLaunchKernel("_Z7forwardv", 1, 1, 1, 1, 1, 1, 0, (void*)6, NULL, NULL);
    }
    aon_region_end(layer);
    cuLaunchKernel("_Z6updatev", 1, 1, 1, 1, 1, 1, 0, (void*)6, NULL, NULL);
    cuCtxSynchronize();
    aon_step_end();
  }
}

/// Thread of AON that reads records: its CPU time, and how often it went to sleep. 0: not there.
static int read_drain_thread(long long* cpu_ns, long long* sleeps) {
  DIR* tasks = opendir("/proc/self/task");
  int found = 0;
  for (const struct dirent* task = readdir(tasks); task && !found; task = readdir(tasks)) {
    char path[400];
    char line[128] = "";
    snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
    FILE* file = task->d_name[0] == '.' ? NULL : fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
      if (strcmp(line, "Name:\taon-cupti\n") == 0) found = 1;
      sscanf(line, "voluntary_ctxt_switches: %lld", sleeps);
    }
    if (file) fclose(file);
    if (!found) continue;
    snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", task->d_name);
    file = fopen(path, "r");
    found = file && fscanf(file, "%lld", cpu_ns) == 1;
    if (file) fclose(file);
  }
  closedir(tasks);
  return found;
}

static void watch_drain_thread(void) {
  long long cpu_ns[2] = {0, 0};
  long long sleeps[2] = {0, 0};
  int tries = 1000;  // it names itself when it runs first
  while (!read_drain_thread(&cpu_ns[0], &sleeps[0])) {
    if (--tries == 0) abort();
    usleep(10000);
  }
  sleep(2);
  if (!read_drain_thread(&cpu_ns[1], &sleeps[1])) abort();
  printf("drain cpu_ns %lld sleeps %lld\n", cpu_ns[1] - cpu_ns[0], sleeps[1] - sleeps[0]);
}

static long resident_kb(void) {
  long pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%*d %ld", &pages) != 1) abort();
  fclose(file);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static int compare(const void* a, const void* b) {
  const double difference = *(const double*)a - *(const double*)b;
  return (difference > 0) - (difference < 0);
}

/// What a launch costs (median of the rounds), what our thread uses per launch, and how memory
/// grows. Between two rounds there is time for the records.
static void measure(int rounds) {
  enum { kLaunches = 10000, kRestUs = 60000, kMaxRounds = 100000, kFirst = 10 };
  static double cost_ns[kMaxRounds];
  long long cpu_ns[2] = {0, 0};
  long long sleeps = 0;
  long first_kb = 0;
  if (rounds > kMaxRounds) rounds = kMaxRounds;
  fake_cuda_set_duration(1);
  for (int r = 0; r < rounds + kFirst; ++r) {
    if (r == kFirst) {
      read_drain_thread(&cpu_ns[0], &sleeps);
      first_kb = resident_kb();
    }
    const double start_ns = now_ns();
    for (int i = 0; i < kLaunches; ++i) {
      cuLaunchKernel(kNames[0], 1, 1, 1, 1, 1, 1, 0, (void*)6, NULL, NULL);
    }
    if (r >= kFirst) cost_ns[r - kFirst] = (now_ns() - start_ns) / kLaunches;
    usleep(kRestUs);
  }
  sleep(1);
  read_drain_thread(&cpu_ns[1], &sleeps);
  qsort(cost_ns, (size_t)rounds, sizeof cost_ns[0], compare);
  printf("bench launch_ns %.1f drain_ns %.1f launches %ld growth_kb %ld\n", cost_ns[rounds / 2],
         (double)(cpu_ns[1] - cpu_ns[0]) / kLaunches / rounds, (long)kLaunches * rounds,
         resident_kb() - first_kb);
}

/// Launches steadily, into a stream of its own.
static long launch_for(int seconds) {
  const int is_busy = getenv("GPU_PROGRAM_BUSY") != NULL;
  enum { kLaunchesPerGraph = 100 };
  long launched = 0;
  for (const time_t end = time(NULL) + seconds; time(NULL) < end; ++launched) {
    if (first_graph != NULL && launched % kLaunchesPerGraph == 0) {
      make_graph();
      launch_graphs();
    }
    cuLaunchKernel(kNames[0], 1, 1, 1, 1, 1, 1, 0, (void*)6, NULL, NULL);
    const double next_ns = now_ns() + 1e5;
    while (is_busy && now_ns() < next_ns) {
    }
    if (!is_busy) usleep(1000);
  }
  return launched;
}

static void reset_device(int device) {
  cuCtxSynchronize();
  cuDevicePrimaryCtxReset_v2(device);
}

static void release_device(int device, int times) {
  enum { kWorkUs = 10000 };
  void* context = NULL;
  cuDevicePrimaryCtxRetain(&context, device);
  for (int i = 0; i < times; ++i) {
    cuDevicePrimaryCtxRetain(&context, device);
    cuDevicePrimaryCtxRelease_v2(device);
    usleep((unsigned)(1000000 / times));
  }
  cuLaunchKernel(kNames[0], 1, 1, 1, 1, 1, 1, 0, (void*)6, NULL, NULL);
  cuCtxSynchronize();
  usleep(kWorkUs);
  cuDevicePrimaryCtxRelease_v2(device);
}

static void end_early(const char* how) {
  if (!how) return;
  if (strcmp(how, "0") == 0) _exit(0);
  kill(getpid(), atoi(how));
  pause();
}

int main(int argc, char** argv) {
  const int kernels = argc > 1 ? atoi(argv[1]) : 100;
  const int streams = argc > 2 ? atoi(argv[2]) : 2;
  const int has_threads = argc > 3 ? atoi(argv[3]) : 0;
  enum { kMaxStreams = 64 };
  int rank = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  cuInit(0);
  fake_cuda_set_device((uint32_t)rank % 2);
  const char* duration_us = getenv("GPU_PROGRAM_DURATION_US");
  if (duration_us) fake_cuda_set_duration(1000ull * strtoull(duration_us, NULL, 10));
  if (getenv("GPU_PROGRAM_BENCH")) {
    measure(atoi(getenv("GPU_PROGRAM_BENCH")));
    MPI_Finalize();
    return 0;
  }
  if (getenv("GPU_PROGRAM_FORK")) fork_child();
  long launched = 0;
  if (getenv("GPU_PROGRAM_GRAPHS")) make_graph();
  capture_before_all();
  if (getenv("GPU_PROGRAM_PAUSE")) launched += launch_unseen(atoi(getenv("GPU_PROGRAM_PAUSE")));
  if (getenv("GPU_PROGRAM_PCONTROL"))
    launched += launch_paused(atoi(getenv("GPU_PROGRAM_PCONTROL")));
  launched += launch_before_all();
  if (getenv("GPU_PROGRAM_STEPS")) run_steps(atoi(getenv("GPU_PROGRAM_STEPS")));
  if (getenv("GPU_PROGRAM_SECONDS")) launched += launch_for(atoi(getenv("GPU_PROGRAM_SECONDS")));
  struct Job jobs[kMaxStreams];
  pthread_t threads[kMaxStreams];
  for (int s = 0; s < streams && s < kMaxStreams; ++s) {
    jobs[s] = (struct Job){kernels, 7 + s, rank % 2, 0};
    if (has_threads) {
      pthread_create(&threads[s], NULL, run_stream, &jobs[s]);
    } else {
      run_stream(&jobs[s]);
    }
  }
  for (int s = 0; s < streams && s < kMaxStreams; ++s) {
    if (has_threads) pthread_join(threads[s], NULL);
    launched += jobs[s].launched;
  }
  fake_cuda_set_device((uint32_t)rank % 2);
  if (getenv("GPU_PROGRAM_RESET")) reset_device(rank % 2);
  if (getenv("GPU_PROGRAM_RELEASES")) {
    release_device(rank % 2, atoi(getenv("GPU_PROGRAM_RELEASES")));
    ++launched;
  }
  if (first_graph != NULL) launch_graphs();
  const int has_graph = !getenv("GPU_PROGRAM_GRAPHLESS");
  if (has_graph) cuGraphLaunch(NULL, (void*)7);
  cuCtxSynchronize();
  if (getenv("GPU_PROGRAM_REST")) watch_drain_thread();
  MPI_Barrier(MPI_COMM_WORLD);
  printf("rank %d kernels %ld copies %d bytes %ld sets %d graphs %d\n", rank, launched, 2 * streams,
         3L * kCopyBytes * streams, streams, graphs + has_graph);
  fflush(stdout);
  end_early(getenv("GPU_PROGRAM_END"));
  MPI_Finalize();
  return 0;
}
