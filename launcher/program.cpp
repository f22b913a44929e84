#include "launcher/program.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "launcher/say.h"

namespace aon::launcher {
namespace {

std::vector<char*> g_users_environment;  ///< with the null at its end

/// 0 when `path` is a file that may be executed, else errno.
int check_executable(const std::string& path, struct stat& status) {
  if (stat(path.c_str(), &status) != 0) return errno;
  if (!S_ISREG(status.st_mode)) return EACCES;
  return access(path.c_str(), X_OK) == 0 ? 0 : errno;
}

int exit_code_of(int error_number) {
  return error_number == ENOENT || error_number == ENOTDIR ? kExitNotFound : kExitNotExecutable;
}

Program judge(const std::string& path) {
  struct stat status {};
  Program program;
  program.error_number = check_executable(path, status);
  if (program.error_number == 0) {
    program.path = path;
    program.is_privileged = (status.st_mode & (S_ISUID | S_ISGID)) != 0;
  } else {
    program.exit_code = exit_code_of(program.error_number);
  }
  return program;
}

}  // namespace

Program find_program(const std::string& name) {
  if (name.empty()) return judge(name);
  if (name.find('/') != std::string::npos) return judge(name);
  const char* path = getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/bin:/usr/bin";
  Program best;
  best.exit_code = kExitNotFound;
  best.error_number = ENOENT;
  for (;;) {
    const size_t colon = rest.find(':');
    const std::string_view folder = rest.substr(0, colon);
    Program found = judge(folder.empty() ? "./" + name : std::string(folder) + "/" + name);
    if (found.exit_code == 0) return found;
    if (found.exit_code == kExitNotExecutable) best = found;
    if (colon == std::string_view::npos) return best;
    rest.remove_prefix(colon + 1);
  }
}

void keep_environment() {
  size_t count = 0;
  while (environ[count] != nullptr) ++count;
  g_users_environment.assign(environ, environ + count + 1);
}

int execute(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  if (errno == E2BIG && !g_users_environment.empty()) {
    say(words.front() + ": no room for our variables beside its own; running without profiling");
    environ = g_users_environment.data();
    execvp(arguments[0], arguments.data());
  }
  const int error_number = errno;
  say(words.front() + ": " + strerror(error_number));
  return exit_code_of(error_number);
}

}  // namespace aon::launcher
