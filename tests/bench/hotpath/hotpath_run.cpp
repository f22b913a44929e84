// Runs a program under an agent that drains and drops: `hotpath_run PROGRAM [ARGUMENTS]`. Says on
// stderr what was taken from it and its children; exit 3 when events were refused, for then
// refusals were measured too, and when nothing was taken though HOTPATH_PRELOAD names what should
// record.
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
    setenv("AON_ATTACH_MS", "10000", 1);  // on a machine that has more to do
    execvp(argv[1], argv + 1);
    _exit(127);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  unsigned long long counted = 0;
  unsigned long long refused = 0;
  for (const int32_t attached : agent.pids()) {
    const aon::test::TakenProcess taken = agent.finish(attached);
    counted += taken.counted();
    refused += taken.refused();
  }
  std::fprintf(stderr, "taken %llu refused %llu\n", counted, refused);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return 1;
  const bool should_record = getenv("HOTPATH_PRELOAD") != nullptr;
  return (counted != 0) == should_record && refused == 0 ? 0 : 3;
}
