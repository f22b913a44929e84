#include "tools/library_probe.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>

#include "core/base/unique_fd.h"

namespace aon::tools {
namespace {

/// What the loading process tells: that it begins with a name, then that it is loaded.
struct Message {
  uint32_t index;
  uint32_t is_loaded;
  uint32_t version;
};

[[noreturn]] void load(std::initializer_list<const char*> names, const char* version_function,
                       int out) {
  for (const int signal_number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM})
    signal(signal_number, SIG_DFL);
  alarm(kProbeTimeoutS);
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null >= 0) {
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
  }
  Message message{};
  for (const char* name : names) {
    if (write(out, &message, sizeof(message)) != sizeof(message)) _exit(1);
    void* library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    if (library != nullptr) {
      message.is_loaded = 1;
      if (version_function != nullptr) {
        const auto version = reinterpret_cast<unsigned (*)()>(dlsym(library, version_function));
        if (version != nullptr) message.version = version();
      }
      _exit(write(out, &message, sizeof(message)) == sizeof(message) ? 0 : 1);
    }
    ++message.index;
  }
  _exit(0);
}

}  // namespace

LibraryProbe probe_library(std::initializer_list<const char*> names, const char* version_function) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {{}, fmt::format("pipe: {}", strerror(errno))};
  const UniqueFd in(ends[0]);
  UniqueFd out(ends[1]);
  const pid_t child = fork();
  if (child < 0) return {{}, fmt::format("fork: {}", strerror(errno))};
  if (child == 0) load(names, version_function, out.get());
  out.reset();
  Message last{};
  Message message{};
  while (read(in.get(), &message, sizeof(message)) == sizeof(message)) last = message;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  const std::string name = names.begin()[last.index];
  if (last.is_loaded != 0) return {name, {}, last.version};
  if (!WIFSIGNALED(status)) return {};
  const int signal_number = WTERMSIG(status);
  if (signal_number == SIGALRM)
    return {{}, fmt::format("{} was not loaded after {} s", name, kProbeTimeoutS)};
  return {{}, fmt::format("loading {} ends the process: {}", name, strsignal(signal_number))};
}

}  // namespace aon::tools
