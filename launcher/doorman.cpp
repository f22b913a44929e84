#include "launcher/doorman.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "core/base/account.h"
#include "core/base/descriptors.h"
#include "core/base/file.h"
#include "core/base/packet.h"
#include "core/base/time.h"
#include "core/provider/names.h"
#include "launcher/descriptors.h"
#include "launcher/environment.h"
#include "launcher/events.h"
#include "launcher/job_directory.h"
#include "launcher/unknown_settings.h"

extern char** environ;

namespace aon::launcher {
namespace {

constexpr int64_t kSilentMs = 2000;  ///< a program says Hello at once, if it gets a core
constexpr unsigned kLeadSeconds = 15;
constexpr size_t kMaxTasks = 4096;  ///< of one step on one node
constexpr size_t kEnvironmentBytes = 4 << 20;

int open_pidfd(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

std::string program_of(pid_t pid) {
  char path[PATH_MAX];
  const std::string link = "/proc/" + std::to_string(pid) + "/exe";
  const ssize_t length = readlink(link.c_str(), path, sizeof(path));
  return length > 0 ? std::string(path, static_cast<size_t>(length)) : std::string();
}

pid_t parent_of(pid_t pid) {
  const Result<std::string> text = read_text_file("/proc/" + std::to_string(pid) + "/stat");
  if (!text) return 1;
  const size_t name_end = text->rfind(')');
  if (name_end == std::string::npos || name_end + 4 > text->size()) return 1;
  return static_cast<pid_t>(strtol(text->c_str() + name_end + 4, nullptr, 10));
}

const char* get(const char* name) { return getenv(name); }

Status send_hand_over(int agent, int program) {
  agent::HandOver packet{};
  packet.header = {agent::kProtocolMagic, agent::kProtocolVersion, agent::MessageType::kHandOver,
                   sizeof(packet)};
  if (send_struct(agent, packet, {&program, 1})) return {};
  return Error{Code::kUnavailable, std::string("cannot reach the agent: ") + strerror(errno)};
}

/// Names of providers that --providers and --without do not take are taken out of their lists.
void keep_known_providers(const Installation& files, Wanted& wanted) {
  Options& options = wanted.options;
  if (options.providers.empty() && options.without.empty()) return;
  const std::vector<std::string> installed =
      provider::installed_names(files.library_dir, provider::provider_folder(files.library_dir));
  const auto keep = [&](const char* variable, std::vector<std::string>& names, auto selection_of) {
    std::erase_if(names, [&](const std::string& name) {
      const Status status = provider::check_names(selection_of(name), installed);
      if (!status) wanted.wrong.push_back({variable, status.error().message});
      return !status;
    });
  };
  const bool had_providers = !options.providers.empty();
  keep("AON_PROVIDERS", options.providers, [](const std::string& name) {
    return provider::Selection{{name}, {}};
  });
  // No list is that of all: who asked for some gets MPI alone rather than more.
  if (had_providers && options.providers.empty()) options.providers = {"mpi"};
  keep("AON_WITHOUT", options.without, [](const std::string& name) {
    return provider::Selection{{}, {name}};
  });
}

/// In the fork, with the program's environment: the agent of its launch gets `program`.
Status lead_to_agent(const Installation& files, int program, pid_t pid) {
  const Launch launch = find_launch(get, pid, parent_of(pid));
  if (Status status = check_descriptor_limit(launch.local_rank_count); !status)
    return status.error();
  const Result<std::string> output = open_job_directory(directory_in_job(launch, get), launch);
  if (!output) return output.error();
  Result<AgentLink> link = join_or_listen(socket_path(launch.id, *output));
  if (!link) return link.error();
  if (!link->connection) {
    const std::string socket = link->socket;
    AgentArguments arguments;
    Wanted wanted = options_of_environment(files);
    arguments.left_alone = environment_for(wanted, files, socket, *output, get).left_alone;
    arguments.options = std::move(wanted.options);
    arguments.wrong = std::move(wanted.wrong);
    arguments.options.output_dir = *output;
    arguments.launch_id = launch.id;
    if (!launch.is_of_all_nodes) arguments.options.rendezvous = "off";
    const Result<pid_t> agent = spawn_agent(files.agent, *link, std::move(arguments));
    if (!agent) return agent.error();
    Result<UniqueFd> connection = connect_agent(socket);
    if (!connection) return connection.error();
    link->connection = std::move(*connection);
  }
  const int agent = link->connection.get();
  const Registration registration{pid, launch.local_rank_count, program_of(pid)};
  if (Status status = send_register(agent, registration); !status) return status.error();
  return send_hand_over(agent, program);
}

class Doorman {
 public:
  Doorman(AgentLink link, const Installation& files) : link_(std::move(link)), files_(files) {}

  /// False: its end could not be seen.
  bool watch(pid_t task) {
    UniqueFd fd(open_pidfd(task));
    if (!fd || tasks_.size() >= kMaxTasks) return false;
    tasks_.push_back(std::move(fd));
    return true;
  }

  /// Until the last task has ended, and nobody has come meanwhile.
  void run() {
    do {
      serve();
      accept_all();
      while (!callers_.empty()) hear(callers_.size() - 1, true);
    } while (!tasks_.empty());
    leave();
  }

  void leave() const {
    unlink((link_.socket + ".lock").c_str());
    unlink(link_.socket.c_str());
  }

 private:
  /// Somebody who has not spoken yet.
  struct Caller {
    UniqueFd fd;
    pid_t pid;
    int64_t since_ms;
  };

  void serve() {
    while (!tasks_.empty()) {
      const bool has_room = callers_.size() < kMaxTasks;
      std::vector<pollfd> watched{{has_room ? link_.listener.get() : -1, POLLIN, 0}};
      for (const UniqueFd& task : tasks_) watched.push_back({task.get(), POLLIN, 0});
      const size_t first_caller = watched.size();
      for (const Caller& caller : callers_) watched.push_back({caller.fd.get(), POLLIN, 0});
      const int wait_ms = callers_.empty() ? -1 : static_cast<int>(kSilentMs);
      if (poll(watched.data(), watched.size(), wait_ms) < 0) continue;
      for (size_t i = watched.size(); i-- > 1;) {
        const bool is_ready = watched[i].revents != 0;
        if (i >= first_caller) {
          hear(i - first_caller, is_ready);
        } else if (is_ready) {
          tasks_.erase(tasks_.begin() + static_cast<long>(i) - 1);
        }
      }
      if (watched[0].revents != 0) accept_all();
    }
  }

  void accept_all() {
    while (callers_.size() < kMaxTasks) {
      UniqueFd fd(accept4(link_.listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!fd) {
        if ((errno == EMFILE || errno == ENFILE) && spare_.send_one_away(link_.listener.get()))
          continue;
        return;
      }
      ucred peer{};
      socklen_t bytes = sizeof(peer);
      if (getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
          peer.uid == geteuid())
        callers_.push_back({std::move(fd), peer.pid, now_ms()});
    }
  }

  /// Serves a caller that has spoken; one that is silent for too long is sent away.
  void hear(size_t index, bool has_spoken) {
    const Caller& caller = callers_[index];
    if (has_spoken) {
      receive(caller);
    } else if (now_ms() - caller.since_ms < kSilentMs) {
      return;
    }
    callers_.erase(callers_.begin() + static_cast<long>(index));
  }

  void receive(const Caller& caller) {
    agent::Register message{};
    const int fd = caller.fd.get();
    const ssize_t got = recv(fd, &message, sizeof(message), MSG_PEEK | MSG_DONTWAIT);
    if (got < static_cast<ssize_t>(sizeof(message.header)) ||
        message.header.magic != agent::kProtocolMagic)
      return;
    if (message.header.type == agent::MessageType::kHello) lead(fd, caller.pid);
    if (message.header.type == agent::MessageType::kRegister &&
        got == static_cast<ssize_t>(sizeof(message)))
      (void)watch(message.pid);
  }

  void lead(int fd, pid_t pid) {
    if (fork() != 0) return;  // without one: the program finds no agent
    alarm(kLeadSeconds);      // a file system that hangs must not leave one for each program
    link_.listener.reset();
    link_.lock.reset();
    tasks_.clear();
    const std::vector<std::string> texts = environment_of(pid);
    std::vector<char*> variables;
    for (const std::string& text : texts) variables.push_back(const_cast<char*>(text.c_str()));
    variables.push_back(nullptr);
    environ = variables.data();
    // AON_CONFIG may name a file in the program's folder.
    (void)!chdir(("/proc/" + std::to_string(pid) + "/cwd").c_str());
    const Status status = texts.empty() ? Status(Error{Code::kNotFound, "program has ended"})
                                        : lead_to_agent(files_, fd, pid);
    _exit(status ? 0 : 1);
  }

  AgentLink link_;
  const Installation& files_;
  SpareDescriptor spare_;
  std::vector<UniqueFd> tasks_;  ///< pidfds
  std::vector<Caller> callers_;
};

}  // namespace

std::vector<std::string> environment_of(pid_t pid) {
  std::vector<std::string> variables;
  const Result<std::string> text =
      read_text_file("/proc/" + std::to_string(pid) + "/environ", kEnvironmentBytes);
  if (!text) return variables;
  for (size_t at = 0; at < text->size();) {
    const size_t end = std::min(text->find('\0', at), text->size());
    if (end > at) variables.push_back(text->substr(at, end - at));
    at = end + 1;
  }
  return variables;
}

Wanted options_of_environment(const Installation& files) {
  size_t variable_count = 0;
  while (environ[variable_count] != nullptr) ++variable_count;
  Wanted wanted;
  wanted.options = read_environment({environ, variable_count}, wanted.wrong);
  keep_known_providers(files, wanted);
  for (WrongSetting& one : unknown_settings({environ, variable_count}))
    wanted.wrong.push_back(std::move(one));
  for (std::string& event : wanted.options.events) {
    const Result<std::vector<std::string>> encoded = resolve_events({event});
    if (!encoded) wanted.unknown_events.push_back(encoded.error().message);
    if (encoded && !encoded->empty()) event = encoded->front();
  }
  return wanted;
}

ProgramEnvironment environment_for(const Wanted& wanted, const Installation& files,
                                   const std::string& socket, const std::string& output_dir,
                                   const Environment& environment) {
  ProgramEnvironment result =
      program_environment(wanted.options, files, socket, output_dir, environment);
  std::erase_if(result.variables, [&](const Variable& variable) {
    return std::any_of(wanted.wrong.begin(), wanted.wrong.end(),
                       [&](const WrongSetting& one) { return one.variable == variable.name; });
  });
  return result;
}

std::string wanted_output(const Environment& environment) {
  const auto value = [&](const char* name) {
    const char* text = environment(name);
    return std::string(text != nullptr ? text : "");
  };
  const std::string output = value("AON_OUTPUT");
  const bool is_users = value("AON_DOOR").empty() || output != value("AON_DOOR_GAVE");
  return is_users && !output.empty() ? output : value("AON_DOOR_OUTPUT");
}

std::string directory_in_job(const Launch& launch, const Environment& environment) {
  const auto value = [&](const char* name) {
    const char* text = environment(name);
    return std::string(text != nullptr ? text : "");
  };
  std::string folder = value("SLURM_SUBMIT_DIR");
  if (folder.empty() || access(folder.c_str(), W_OK | X_OK) != 0) folder = value("HOME");
  if (folder.empty()) {
    const Result<std::string> home = home_folder();
    if (home) folder = *home;
  }
  const std::string wanted = wanted_output(environment);
  if (!wanted.empty()) return wanted.front() == '/' ? wanted : folder + "/" + wanted;
  const std::string job = value("SLURM_JOB_ID");
  constexpr char kOfSlurm[] = "slurm.pmix.";
  std::string id = launch.id;
  if (id.rfind(kOfSlurm, 0) == 0) id.erase(0, strlen(kOfSlurm));
  if (!job.empty() && id.rfind(job + ".", 0) != 0) id = job + "-" + id;
  return folder + "/aon-" + id;
}

Status start_doorman(AgentLink link, const Installation& files, pid_t task) {
  int ready[2];
  if (pipe2(ready, O_CLOEXEC) != 0)
    return Error{Code::kUnavailable, std::string("cannot make a pipe: ") + strerror(errno)};
  const pid_t child = fork();
  if (child < 0) {
    close(ready[0]);
    close(ready[1]);
    return Error{Code::kUnavailable, std::string("cannot fork: ") + strerror(errno)};
  }
  if (child == 0) {
    setsid();
    signal(SIGCHLD, SIG_IGN);  // nobody waits for the forks
    // What is sent to all processes of a step is meant for its programs; this one ends by itself.
    for (const int number : {SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2}) signal(number, SIG_IGN);
    prctl(PR_SET_NAME, "aon-doorman");
    (void)!chdir("/");
    keep_descriptors({link.listener.get(), link.lock.get(), ready[1]});
    dup2(STDIN_FILENO, STDERR_FILENO);
    Doorman doorman(std::move(link), files);
    if (!doorman.watch(task)) {
      doorman.leave();
      _exit(1);
    }
    (void)!write(ready[1], "r", 1);
    close(ready[1]);
    doorman.run();
    _exit(0);
  }
  close(ready[1]);
  char answer = 0;
  const bool is_ready = read(ready[0], &answer, 1) == 1;
  close(ready[0]);
  if (is_ready) return {};
  return Error{Code::kUnavailable,
               "the task cannot be watched: it has ended, or this kernel has no "
               "pidfd_open (Linux 5.3)"};
}

}  // namespace aon::launcher
