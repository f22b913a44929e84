/// The program to run: found as execvp would find it, before anything of ours is started.
/// Thread: any.   Cost: a few stat().
#pragma once

#include <string>
#include <vector>

namespace aon::launcher {

constexpr int kExitOptions = 2;          ///< an error in our own options
constexpr int kExitNotExecutable = 126;  ///< as env(1), nohup(1) and every shell
constexpr int kExitNotFound = 127;

struct Program {
  std::string path;   ///< what execve would open; empty: not found
  int exit_code = 0;  ///< not 0: it cannot run, and this is what a shell would exit with
  int error_number = 0;
  bool is_privileged = false;  ///< set-uid or set-gid: left alone
};

Program find_program(const std::string& name);

/// The environment is the user's so far. To be called before the first variable is set.
void keep_environment();

/// execvp()s; returns only on failure, with the exit code a shell would have after the message.
/// Where our variables leave no room for the program's arguments it is started without them.
int execute(const std::vector<std::string>& words);

}  // namespace aon::launcher
