// First events where the program has left the runtime little: a thread that is to be cancelled, no
// descriptors, no thread keys, a small stack, a filter of system calls, a lock function of its own;
// and what is done at once.
#include <aon/annotation.h>
#include <aon/pause.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <thread>
#include <vector>

#include "tests/unit/runtime/life_child.h"

namespace life {
namespace {

bool g_is_old_kernel = false;
bool g_annotates_locks = false;
volatile sig_atomic_t g_trap_count = 0;

/// As a sandbox does that answers some calls by itself: EPERM.
void refuse_trapped_call(int, siginfo_t*, void* context) {
  g_trap_count = g_trap_count + 1;
  mcontext_t& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  machine.gregs[REG_RAX] = -EPERM;
#elif defined(__aarch64__)
  machine.regs[0] = static_cast<unsigned long long>(-EPERM);
#endif
}

}  // namespace

/// The program has a pthread_mutex_lock() of its own, below.
void run_annotated_lock() {
  g_annotates_locks = true;
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
}

/// As threads say it that all call MPI_Pcontrol: one pauses, one goes on.
void run_pauses_at_once() {
  constexpr int kRounds = 5000;
  event();
  const aon::Writer* w = aon::writer();
  std::atomic<int> begun{0};
  std::atomic<int> done{0};
  std::thread other([&] {
    for (int round = 1; round <= kRounds; ++round) {
      while (begun.load() != round) sched_yield();
      aon::aon_set_paused(false);
      done.store(round);
    }
  });
  int half_count = 0;
  for (int round = 1; round <= kRounds; ++round) {
    begun.store(round);
    aon::aon_set_paused(true);
    while (done.load() != round) sched_yield();
    uint32_t paused_sites = aon::aon_was_paused(aon::ticks(w)) ? 1 : 0;
    for (uint32_t site = 0; site < aon::kMaxSites; ++site)
      paused_sites += (w->modes[site].load() & aon::kModePaused) != 0 ? 1 : 0;
    half_count += paused_sites != 0 && paused_sites != aon::kMaxSites + 1 ? 1 : 0;
    aon::aon_set_paused(false);
  }
  other.join();
  printf("halves %d\n", half_count);
}

/// As two leave the place that write as one thread at a time: a child in its parent's memory, which
/// does not wait for it.
void run_beyond_a_chunk() {
  event();
  aon::WriterContext& context = aon::writer()->context[0];
  const aon::ChunkHeader* chunk = context.chunk;
  context.cursor = context.end + aon::kSlotBytes;
  event();
  printf("same chunk %d\n", chunk == context.chunk ? 1 : 0);
}

/// An event is no place at which a thread ends.
void run_cancelled_thread() {
  pthread_t thread;
  void* result = nullptr;
  pthread_create(
      &thread, nullptr,
      [](void*) -> void* {
        pthread_cancel(pthread_self());
        event();
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
        return nullptr;
      },
      nullptr);
  pthread_join(thread, &result);
  printf("cancelled %d\n", result == PTHREAD_CANCELED ? 1 : 0);
  event();
}

void run_without_keys() {
  pthread_key_t key;
  while (pthread_key_create(&key, nullptr) == 0) continue;
  event();
}

/// A ring takes two.
void run_without_descriptors(rlim_t left) {
  const int next = fcntl(STDOUT_FILENO, F_DUPFD, 0);
  const rlimit limit = {static_cast<rlim_t>(next) + left, static_cast<rlim_t>(next) + left};
  close(next);
  setrlimit(RLIMIT_NOFILE, &limit);
  event();
}

/// The program closes the descriptor of the agent that was asked, and has one of its own under the
/// number: bytes that are `left` in it.
void run_with_the_agents_descriptor_taken() {
  static constexpr aon::Site kSlow = {74, "slow_call", 0, 0, aon::kModeFull};
  int own[2];
  if (aon::aon_attach_begin(&kSlow)) _exit(122);
  if (socketpair(AF_UNIX, SOCK_DGRAM, 0, own) != 0 || write(own[1], "data", 4) != 4) _exit(123);
  int number = -1;
  int replaced_count = 0;
  for (int fd = STDERR_FILENO + 1; fd <= 1024; ++fd) {
    struct stat status = {};
    if (fd == own[0] || fd == own[1] || fstat(fd, &status) != 0 || !S_ISSOCK(status.st_mode))
      continue;
    number = dup2(own[0], fd);
    ++replaced_count;
  }
  event();
  char bytes[8];
  const ssize_t left = recv(number, bytes, sizeof bytes, MSG_PEEK | MSG_DONTWAIT);
  printf("replaced %d\nleft %d\n", replaced_count, static_cast<int>(left));
}

/// Whether the lowest number that was free before the first event is free after it.
void run_with_descriptors(rlim_t count, rlim_t first_taken) {
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = count;
  setrlimit(RLIMIT_NOFILE, &limit);
  for (rlim_t fd = first_taken; fd < count; ++fd)
    fcntl(STDOUT_FILENO, F_DUPFD, static_cast<int>(fd));
  const int before = fcntl(STDOUT_FILENO, F_DUPFD, 0);
  close(before);
  event();
  const int after = fcntl(STDOUT_FILENO, F_DUPFD, 0);
  close(after);
  printf("moved %d\n", after - before);
}

/// Two pages are left.
void run_without_memory() {
  unsigned long long pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == nullptr || fscanf(file, "%llu", &pages) != 1) _exit(121);
  fclose(file);
  const rlimit limit = {(pages + 2) * 4096, (pages + 2) * 4096};
  setrlimit(RLIMIT_AS, &limit);
  event();
}

/// Before Linux 4.14 memory cannot be wiped in a child.
void run_on_an_old_kernel() {
  g_is_old_kernel = true;
  event();
  std::thread([] { event(); }).join();
}

void run_with_umask(void (*run)()) {
  umask(0777);
  run();
}

/// Receiving a descriptor raises SIGSYS, which would kill where it is blocked.
void run_with_trapped_calls() {
  struct sigaction action = {};
  action.sa_sigaction = refuse_trapped_call;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSYS, &action, nullptr);
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_recvmsg, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {sizeof code / sizeof *code, code};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) _exit(122);
  event();
  printf("trapped %d\n", static_cast<int>(g_trap_count));
}

/// Beside what the kernel puts there for a signal.
void run_on_a_small_signal_stack() {
  static std::vector<char> memory(getauxval(AT_MINSIGSTKSZ) + (4 << 10));
  stack_t stack = {};
  stack.ss_sp = memory.data();
  stack.ss_size = memory.size();
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_handler = [](int) { event(); };
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &action, nullptr);
  raise(SIGUSR1);
}

}  // namespace life

/// As the runtime finds it.
extern "C" int madvise(void* memory, size_t bytes, int advice) noexcept {
  if (life::g_is_old_kernel && advice == MADV_WIPEONFORK) {
    errno = EINVAL;
    return -1;
  }
  return static_cast<int>(syscall(SYS_madvise, memory, bytes, advice));
}

/// The same: it may be called where the runtime takes a lock.
extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  using Function = int (*)(pthread_mutex_t*);
  static std::atomic<Function> kept;
  Function real = kept.load();
  if (real == nullptr) {
    real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
    kept.store(real);
  }
  if (!life::g_annotates_locks) return real(mutex);
  const aon::Annotation* region =
      aon::aon_find_annotation("lock", 4, aon::RegionRole::kUser, aon::Paradigm::kUser);
  life::g_emitted.fetch_add(2);
  begin_region(region);
  const int result = real(mutex);
  end_region(region);
  return result;
}
