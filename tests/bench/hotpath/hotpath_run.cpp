// Runs a program under an agent that drains and drops: `hotpath_run PROGRAM [ARGUMENTS]`. Says on
// stderr what was taken; exit 3 when events were refused, for then refusals were measured too.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "tests/unit/runtime/fake_agent.h"

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  aon::test::FakeAgentOptions options;
  options.keeps = false;
  aon::test::FakeAgent agent(options);
  const pid_t pid = fork();
  if (pid == 0) {
    const char* preload = getenv("HOTPATH_PRELOAD");
    if (preload != nullptr) setenv("LD_PRELOAD", preload, 1);
    setenv("AON_SOCKET", agent.socket_path().c_str(), 1);
    setenv("AON_OUTPUT", "", 1);
    execv(argv[1], argv + 1);
    _exit(127);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  const aon::test::TakenProcess taken = agent.finish(pid);
  std::fprintf(stderr, "taken %llu refused %llu\n",
               static_cast<unsigned long long>(taken.counted()),
               static_cast<unsigned long long>(taken.refused()));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return 1;
  return taken.counted() != 0 && taken.refused() == 0 ? 0 : 3;
}
