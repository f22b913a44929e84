// aon-agent: leaves everything it inherited from the rank that started it, then becomes the keeper.
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "core/agent/affinity.h"
#include "core/agent/config.h"
#include "core/agent/keeper.h"
#include "core/agent/settle.h"
#include "core/base/descriptors.h"
#include "core/base/log.h"
#include "core/topology/topology.h"

namespace aon::agent {
namespace {

constexpr size_t kThreadStackBytes = 1u << 20;

/// Descriptors of the rank: an open PMI_FD or pipe of ours would keep its launcher waiting.
void close_inherited(const AgentArguments& arguments) {
  close_descriptors_but({arguments.listen_fd, arguments.lock_fd});
  ::fcntl(arguments.listen_fd, F_SETFD, FD_CLOEXEC);
  if (arguments.lock_fd >= 3) ::fcntl(arguments.lock_fd, F_SETFD, FD_CLOEXEC);
  const int null = ::open("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3 && null >= 0; ++fd) ::dup2(null, fd);
  if (null > 2) ::close(null);
}

void reset_signals() {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &action, nullptr);
  action.sa_handler = SIG_IGN;
  // A write beyond the rank's file size limit fails instead. Signals that a user or a batch system
  // sends to all processes of a job are meant for the application.
  for (const int signal :
       {SIGPIPE, SIGXFSZ, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGQUIT, SIGXCPU})
    ::sigaction(signal, &action, nullptr);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

/// The rank's soft limits were meant for the rank. The stack's is that of the first thread and of
/// what we start; where it is ours to choose, it is what systems usually give.
void raise_limits() {
  for (const auto resource : {RLIMIT_NOFILE, RLIMIT_FSIZE, RLIMIT_AS, RLIMIT_DATA, RLIMIT_CPU}) {
    rlimit limit{};
    if (::getrlimit(resource, &limit) != 0) continue;
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(resource, &limit);
  }
  constexpr rlim_t kStackBytes = 8 << 20;
  rlimit stack{};
  if (::getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur >= kStackBytes) return;
  stack.rlim_cur = std::min(kStackBytes, stack.rlim_max);
  ::setrlimit(RLIMIT_STACK, &stack);
}

/// As was the size of its stack, which a thread would have, too.
void size_thread_stacks() {
  pthread_attr_t attributes;
  if (::pthread_attr_init(&attributes) != 0) return;
  ::pthread_attr_setstacksize(&attributes, kThreadStackBytes);
  ::pthread_setattr_default_np(&attributes);
  ::pthread_attr_destroy(&attributes);
}

/// One heap for the few threads, what was freed at its end stays, and what is not huge comes from
/// it: each new page is a fault.
void size_heap() {
  constexpr int kKeptBytes = 4 << 20;
  ::mallopt(M_ARENA_MAX, 1);
  ::mallopt(M_TOP_PAD, 256 << 10);
  ::mallopt(M_TRIM_THRESHOLD, kKeptBytes);
  ::mallopt(M_MMAP_THRESHOLD, kKeptBytes / 4);  // no more by what was freed: the others turn it off
}

/// Everything that a child of a rank inherits and an agent must not keep.
void leave_the_rank(Config* config) {
  ::setsid();
  reset_signals();
  ::umask(077);
  if (::getpriority(PRIO_PROCESS, 0) > 0) ::setpriority(PRIO_PROCESS, 0, 0);
  sched_param parameters{};
  ::sched_setscheduler(0, SCHED_OTHER, &parameters);
  affinity::reset();
  if (const auto cpus = topology::binding_of(::getpid())) config->allowed_cpus = *cpus;
  raise_limits();
  size_thread_stacks();
  close_inherited(config->arguments);
  if (::chdir("/") != 0) AON_LOG_DEBUG("cannot change to /");
}

int run(int argc, char** argv) {
  auto config = read_config({argv + 1, argv + argc});
  if (!config) {
    std::fprintf(stderr, "aon-agent: %s\n", config.error().message.c_str());
    return 2;
  }
  if (const Status status = topology::settle_xml_file(); !status)
    config->topology_problem = status.error().message;
  leave_the_rank(&*config);
  std::optional<Lease> lease = settle_node(&*config);
  set_log_name("aon-agent");
  if (config->arguments.options.verbose) set_log_level(LogLevel::kInfo);
  if (Status status = set_log_file(log_path(*config).c_str()); !status) return 1;
  const int code = run_keeper(*config, std::move(lease));
  remove_empty_log(*config);
  return code;
}

}  // namespace
}  // namespace aon::agent

int main(int argc, char** argv) {
  aon::hold_standard_descriptors();
  aon::agent::size_heap();
  return aon::agent::run(argc, argv);
}
