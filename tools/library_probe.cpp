#include "tools/library_probe.h"

#include <aon/cupti_library.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "core/base/unique_fd.h"

namespace aon::tools {
namespace {

/// What the loading process tells: that it begins with a name, then that it is loaded.
struct Message {
  char name[256];
  char remark[kCuptiRemarkBytes];
  uint32_t is_loaded;
  uint32_t is_path_wrong;
  uint32_t version;
};
static_assert(sizeof(Message) <= PIPE_BUF, "written at once");

void set_name(Message* message, const char* name) {
  snprintf(message->name, sizeof message->name, "%s", name);
}

/// In the loading process.
void tell(int out, const Message& message) {
  if (write(out, &message, sizeof(message)) != sizeof(message)) _exit(1);
}

unsigned version_of(void* library, const VersionFunction& function) {
  void* found = function.name != nullptr ? dlsym(library, function.name) : nullptr;
  if (found == nullptr) return 0;
  if (function.form == VersionFunction::kReturns) return reinterpret_cast<unsigned (*)()>(found)();
  int version[2] = {0, 0};
  return reinterpret_cast<int (*)(int*)>(found)(version) == 0 ? static_cast<unsigned>(version[0])
                                                              : 0;
}

void load(std::initializer_list<const char*> names, const VersionFunction& function, int out) {
  Message message{};
  for (const char* name : names) {
    set_name(&message, name);
    tell(out, message);
    void* library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) continue;
    message.is_loaded = 1;
    message.version = version_of(library, function);
    return tell(out, message);
  }
}

void load_cupti(int out) {
  const auto tell_state = [out](const char* name, const CuptiLibrary& library) {
    Message message{};
    set_name(&message, name);
    memcpy(message.remark, library.remark, sizeof message.remark);
    message.is_path_wrong = library.is_path_wrong ? 1 : 0;
    message.is_loaded = library.handle != nullptr ? 1 : 0;
    if (library.handle != nullptr)
      message.version = version_of(library.handle, {kCuptiFunction, VersionFunction::kFills});
    tell(out, message);
  };
  const CuptiLibrary library = open_cupti(tell_state);
  tell_state(library.handle != nullptr ? path_of_library(library.handle) : "", library);
}

template <class Load>
[[noreturn]] void run_apart(Load load, int out) {
  for (const int signal_number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM})
    signal(signal_number, SIG_DFL);
  alarm(kProbeTimeoutS);
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null >= 0) {
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
  }
  load(out);
  _exit(0);
}

template <class Load>
LibraryProbe probe(Load load) {
  LibraryProbe result;
  const auto failed = [&](const char* call) {
    result.problem = fmt::format("{}: {}", call, strerror(errno));
    return result;
  };
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return failed("pipe");
  const UniqueFd in(ends[0]);
  UniqueFd out(ends[1]);
  const pid_t child = fork();
  if (child < 0) return failed("fork");
  if (child == 0) run_apart(load, out.get());
  out.reset();
  Message last{};
  Message message{};
  while (read(in.get(), &message, sizeof(message)) == sizeof(message)) last = message;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  result.remark = last.remark;
  result.is_path_wrong = last.is_path_wrong != 0;
  if (last.is_loaded != 0) {
    result.name = last.name;
    result.version = last.version;
    return result;
  }
  if (!WIFSIGNALED(status)) return result;
  const int signal_number = WTERMSIG(status);
  result.problem =
      signal_number == SIGALRM
          ? fmt::format("{} was not loaded after {} s", last.name, kProbeTimeoutS)
          : fmt::format("loading {} ends the process: {}", last.name, strsignal(signal_number));
  return result;
}

}  // namespace

LibraryProbe probe_library(std::initializer_list<const char*> names, VersionFunction function) {
  return probe([&](int out) { load(names, function, out); });
}

LibraryProbe probe_cupti() {
  return probe([](int out) { load_cupti(out); });
}

}  // namespace aon::tools
