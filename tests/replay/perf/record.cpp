// perf_record [TICKS]: records a transcript of this machine while a small program computes,
// allocates and sleeps, and prints it. Add it to this folder as MACHINE.transcript, run replay.perf
// with AON_UPDATE_FIXTURES=1, and check MACHINE.expected by hand.
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iostream>

#include "plugins/perf/session.h"
#include "tests/replay/perf/transcript.h"
#include "tests/unit/provider/fake_core.h"

namespace {

[[noreturn]] void work() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  constexpr size_t kBytes = 1 << 20;
  for (;;) {
    for (int i = 0; i < 20'000'000; ++i) asm volatile("");
    char* memory = static_cast<char*>(
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    for (size_t i = 0; i < kBytes; i += 4096) memory[i] = 1;
    munmap(memory, kBytes);
    usleep(1000);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int ticks = argc > 1 ? atoi(argv[1]) : 12;
  const pid_t pid = fork();
  if (pid == 0) work();
  const aon::perf::Kernel& kernel = aon::perf::test::recording_kernel(std::cout);
  aon_core core;
  aon::perf::Session session(&core, &aon::test::fake_core_api(), kernel,
                             aon::perf::probe_all(kernel), 0);
  std::cout << "> start 1 " << pid << '\n';
  session.process_started(1, pid);
  for (int tick = 1; tick <= ticks; ++tick) {
    usleep(100'000);
    std::cout << "> tick " << tick << '\n';
    session.tick(static_cast<uint64_t>(tick));
  }
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  std::cout << "> end 1\n";
  session.process_ended(1);
  return 0;
}
