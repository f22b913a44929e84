// The MPI program of the fault tests. It counts its own calls in a shared file mapping, which
// outlives it however it ends: `DIR/count.RANK` holds one u64, stored after each call returned.
//
//   worker loop DIR SECONDS     MPI_Sendrecv with itself until the time is over
//   worker until DIR SECONDS    the same, at most so long, until there is DIR/end
//   worker calls DIR N          N times MPI_Sendrecv with itself
//   worker steady DIR N         the same, with a pause of a millisecond after each hundred
//   worker recv DIR SECONDS     two ranks: a received message, then rank 0 waits in MPI_Recv for a
//                               message that rank 1 sends after SECONDS
//   worker threads DIR N        N threads one after the other, ten MPI_Sendrecv each
//   worker crowds DIR N         the same with a hundred threads at a time
//   worker pace DIR SECONDS     twenty MPI_Sendrecv a millisecond
//   worker busy DIR SECONDS     the same, and computes in between
//   worker forks DIR N          N children, every second one execs; ten MPI_Sendrecv between them
//   worker exit DIR CODE        leaves with CODE after MPI_Finalize
//   worker leave DIR CODE       leaves with CODE without MPI_Finalize
//   worker die DIR SIGNAL       dies by SIGNAL
//   worker descriptors DIR 0    prints which descriptors are open
//   worker counters DIR N       sets each of 60 counters N times, to numbers that do not compress
//   worker sleepers DIR N       N children that make one call as `early` does, and live until there
//                               is DIR/end
//   worker early DIR N          N times MPI_Initialized, without MPI_Init: it is the rank that its
//                               launcher's variables say, under any launcher
//   worker later DIR N          as early, and as often again once there is DIR/end
#include <aon/annotate.h>
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile uint64_t* count;
static int rank;

static void map_count(const char* folder) {
  char path[4096];
  snprintf(path, sizeof(path), "%s/count.%d", folder, rank);
  const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (fd < 0 || ftruncate(fd, 4096) != 0) exit(99);
  count = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (count == MAP_FAILED) exit(99);
  close(fd);
}

static void call(void) {
  char out[8] = {0};
  char in[8];
  MPI_Sendrecv(out, 8, MPI_CHAR, 0, 1, in, 8, MPI_CHAR, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  __atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
}

static void loop(double seconds) {
  const double end = MPI_Wtime() + seconds;
  while (MPI_Wtime() < end)
    for (int i = 0; i < 100; ++i) call();
}

static void until_told(const char* folder, double seconds) {
  char path[4096];
  snprintf(path, sizeof(path), "%s/end", folder);
  const double end = MPI_Wtime() + seconds;
  while (access(path, F_OK) != 0 && MPI_Wtime() < end)
    for (int i = 0; i < 1000; ++i) call();
}

static void steady(int number) {
  for (int i = 0; i < number; ++i) {
    call();
    if (i % 100 == 99) usleep(1000);
  }
}

static void pace(double seconds) {
  const double end = MPI_Wtime() + seconds;
  while (MPI_Wtime() < end) {
    for (int i = 0; i < 20; ++i) call();
    usleep(1000);
  }
}

static void busy(double seconds) {
  const double end = MPI_Wtime() + seconds;
  while (MPI_Wtime() < end) {
    for (int i = 0; i < 20; ++i) call();
    for (volatile int i = 0; i < 300000; ++i) continue;
  }
}

static void receive(double seconds) {
  char byte = 0;
  if (rank == 1) {
    MPI_Send(&byte, 1, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
    usleep((useconds_t)(seconds * 1e6));
    MPI_Send(&byte, 1, MPI_CHAR, 0, 2, MPI_COMM_WORLD);
  } else if (rank == 0) {
    MPI_Recv(&byte, 1, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    ++*count;
    MPI_Recv(&byte, 1, MPI_CHAR, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    ++*count;
  }
}

static pthread_barrier_t all_have_called;

static void* thread_main(void* unused) {
  for (int i = 0; i < 10; ++i) call();
  pthread_barrier_wait(&all_have_called);
  return unused;
}

static void threads(int n, int at_once) {
  pthread_t made[100];
  pthread_barrier_init(&all_have_called, NULL, (unsigned)at_once);
  for (int i = 0; i < n; i += at_once) {
    for (int k = 0; k < at_once; ++k)
      if (pthread_create(&made[k], NULL, thread_main, NULL) != 0) exit(98);
    for (int k = 0; k < at_once; ++k) pthread_join(made[k], NULL);
  }
}

static void forks(int n) {
  for (int i = 0; i < n; ++i) {
    const pid_t pid = fork();
    if (pid == 0) {
      if (i % 2 != 0) execl("/bin/true", "true", (char*)NULL);
      _exit(0);
    }
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) exit(97);
    for (int k = 0; k < 10; ++k) call();
  }
}

static void descriptors(void) {
  for (int fd = 0; fd < 1024; ++fd)
    if (fcntl(fd, F_GETFD) >= 0) printf("%d ", fd);
  printf("\n");
}

static void counters(int n) {
  aon_counter_t made[60];
  char name[16];
  for (int i = 0; i < 60; ++i) {
    snprintf(name, sizeof(name), "counter %d", i);
    made[i] = aon_counter(name, "1");
  }
  for (int round = 0; round < n; ++round) {
    for (int i = 0; i < 60; ++i) aon_counter_set(made[i], rand() * 1e-9);
    usleep(500);
  }
}

static int early(int n) {
  int flag = 0;
  for (int i = 0; i < n; ++i) MPI_Initialized(&flag);
  return 0;
}

static int later(const char* folder, int n) {
  char path[4096];
  snprintf(path, sizeof(path), "%s/end", folder);
  early(n);
  for (int i = 0; i < 6000 && access(path, F_OK) != 0; ++i) usleep(10000);
  return early(n);
}

static int sleepers(const char* folder, int n) {
  char path[4096];
  snprintf(path, sizeof(path), "%s/end", folder);
  for (int i = 0; i < n; ++i) {
    if (fork() != 0) continue;
    early(1);
    while (access(path, F_OK) != 0) usleep(50000);
    _exit(0);
  }
  while (wait(NULL) > 0) continue;
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 4) return 96;
  const char* mode = argv[1];
  if (strcmp(mode, "early") == 0) return early(atoi(argv[3]));
  if (strcmp(mode, "later") == 0) return later(argv[2], atoi(argv[3]));
  if (strcmp(mode, "sleepers") == 0) return sleepers(argv[2], atoi(argv[3]));
  int provided = 0;
  const int has_threads = strcmp(mode, "threads") == 0 || strcmp(mode, "crowds") == 0;
  MPI_Init_thread(&argc, &argv, has_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  map_count(argv[2]);
  const double number = atof(argv[3]);
  if (strcmp(mode, "loop") == 0) loop(number);
  if (strcmp(mode, "until") == 0) until_told(argv[2], number);
  if (strcmp(mode, "calls") == 0)
    for (int i = 0; i < (int)number; ++i) call();
  if (strcmp(mode, "steady") == 0) steady((int)number);
  if (strcmp(mode, "recv") == 0) receive(number);
  if (strcmp(mode, "threads") == 0) threads((int)number, 1);
  if (strcmp(mode, "crowds") == 0) threads((int)number, 100);
  if (strcmp(mode, "pace") == 0) pace(number);
  if (strcmp(mode, "busy") == 0) busy(number);
  if (strcmp(mode, "forks") == 0) forks((int)number);
  if (strcmp(mode, "descriptors") == 0) descriptors();
  if (strcmp(mode, "die") == 0) raise((int)number);
  if (strcmp(mode, "counters") == 0) counters((int)number);
  if (strcmp(mode, "leave") == 0) _exit((int)number);
  MPI_Finalize();
  printf("rank %d made %llu calls\n", rank, (unsigned long long)*count);
  return strcmp(mode, "exit") == 0 ? (int)number : 0;
}
