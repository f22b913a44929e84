/// aon-task: what Slurm's TaskProlog calls before each task (launcher/slurm/aon-taskprolog.sh). It
/// prints the lines that put AON into the task's environment, and makes sure that somebody stands
/// at the step's socket (doorman.h). It says nothing else and prints either all lines or none.
/// Where AON is off they take back what is there from elsewhere: a job that is submitted from a
/// job has all of its environment.
///
///     aon-task              lines for TaskProlog: export NAME=VALUE, unset NAME; exit 1 for none
///     aon-task --check      for people: why there would be none, or which settings a job would
///                           leave out, in one line, exit 1
#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "core/base/account.h"
#include "core/base/disable.h"
#include "core/base/file.h"
#include "launcher/agent_link.h"
#include "launcher/doorman.h"
#include "launcher/environment.h"
#include "launcher/installation.h"
#include "launcher/runtime_folder.h"

extern char** environ;

namespace aon::launcher {
namespace {

constexpr char kUsage[] =
    "usage: aon-task [--check]\n"
    "What Slurm's TaskProlog calls before each task: prints the lines that put AON into the "
    "task's\nenvironment.\n\n"
    "  --check     print nothing but why there would be none, or which settings are wrong; exit 1\n"
    "  -h, --help  print this text\n";

const char* get(const char* name) { return getenv(name); }

std::string value(const char* name) {
  const char* text = getenv(name);
  return text != nullptr ? text : "";
}

std::string site_folder() {
  const std::string set = value("AON_SITE_DIR");
  return set.empty() ? "/etc/aon" : set;
}

std::string node_folder() {
  const std::string set = value("AON_NODE_DIR");
  return set.empty() ? "/var/lib/aon" : set;
}

bool has_line(const std::string& path, const std::string& wanted) {
  const Result<std::string> text = read_text_file(path);
  if (!text || wanted.empty()) return false;
  return ("\n" + *text + "\n").find("\n" + wanted + "\n") != std::string::npos;
}

/// As slurmstepd says: $USER is what the user makes of it.
std::string user_name() {
  const std::string of_slurm = value("SLURM_JOB_USER");
  return of_slurm.empty() && account() ? account()->name : of_slurm;
}

Status switched_off(const std::string& reason) { return Error{Code::kUnavailable, reason}; }

/// By the user, the site or the node's canary.
Status check_switches() {
  if (is_disabled_by(value("AON_DISABLE").c_str())) return switched_off("AON_DISABLE is set");
  const Result<std::string> home = home_folder();
  if (!home && home.error().code != Code::kNotFound)
    return switched_off("whether the user wants it is not known: " + home.error().message);
  const std::string home_file = home ? *home + "/.aon/off" : "";
  if (home && access(home_file.c_str(), F_OK) == 0) return switched_off(home_file + " exists");
  const std::string partition = value("SLURM_JOB_PARTITION");
  if (has_line(site_folder() + "/off-partitions", partition))
    return switched_off("partition " + partition + " is in " + site_folder() + "/off-partitions");
  const std::string users = site_folder() + "/off-users";
  if (has_line(users, std::to_string(geteuid())) ||
      (access(users.c_str(), F_OK) == 0 && has_line(users, user_name())))
    return switched_off("user is in " + users);
  const std::string node_file = node_folder() + "/off";
  if (access(node_file.c_str(), F_OK) == 0) return switched_off(node_file + " exists");
  return {};
}

bool read_header(const std::string& path, Elf64_Ehdr& header) {
  const Result<UniqueFd> file = open_file(path, O_RDONLY);
  if (!file) return false;
  const Result<size_t> got = read_at(file->get(), &header, sizeof(header), 0);
  return got && *got == sizeof(header);
}

/// A preloaded library that the loader cannot take would make it print a line in every program.
Status check_library(const std::string& path) {
  Elf64_Ehdr found{};
  Elf64_Ehdr own{};
  if (!read_header(path, found) || !read_header("/proc/self/exe", own) ||
      memcmp(found.e_ident, own.e_ident, EI_OSABI) != 0 || found.e_machine != own.e_machine ||
      found.e_type != ET_DYN)
    return Error{Code::kInvalid, path + " is no library of this architecture"};
  return {};
}

/// One name for all tasks of a step on this node.
std::string step_name() {
  const std::string step = value("SLURM_STEP_ID");
  return "step " + value("SLURM_JOB_ID") + "." + (step.empty() ? "batch" : step);
}

pid_t task_pid() {
  const std::string text = value("SLURM_TASK_PID");
  const long pid = strtol(text.c_str(), nullptr, 10);
  return pid > 1 ? static_cast<pid_t>(pid) : getppid();
}

Status open_door(const Installation& files, const std::string& socket) {
  Result<AgentLink> link = join_or_listen(socket);
  if (!link) return link.error();
  if (link->connection) return send_register(link->connection.get(), {task_pid(), 0, ""});
  return start_doorman(std::move(*link), files, task_pid());
}

/// What the user set and would not get, one sentence; the job runs with the rest.
Status check_settings(const Wanted& wanted) {
  std::string text;
  for (const WrongSetting& one : wanted.wrong) text += (text.empty() ? "" : "; ") + one.message;
  for (const std::string& one : wanted.unknown_events) text += (text.empty() ? "" : "; ") + one;
  if (text.empty()) return {};
  return Error{Code::kInvalid, text + " (a job leaves it out, and its ledger says so)"};
}

std::string lines_of(const ProgramEnvironment& environment) {
  std::string text;
  for (const Variable& variable : environment.variables)
    text += "export " + variable.name + "=" + variable.value + "\n";
  for (const std::string& name : environment.removed) text += "unset " + name + "\n";
  return text;
}

/// Where AON is off.
std::string lines_of_none() { return lines_of(without_outer_launch(get)); }

Result<std::string> lines(bool is_check) {
  if (Status status = check_switches(); !status) return status.error();
  if (value("SLURM_JOB_ID").empty()) return Error{Code::kUnavailable, "this is no job of Slurm"};
  const Result<Installation> files = find_installation();
  if (!files) return files.error();
  for (const std::string& path : {files->mpi_library, files->runtime_library}) {
    if (Status status = check_library(path); !status) return status.error();
  }
  const Wanted options = options_of_environment(*files);
  if (is_check) {
    if (Status status = check_settings(options); !status) return status.error();
  }
  const std::string wanted = wanted_output(get);
  if (!wanted.empty()) setenv("AON_DOOR_OUTPUT", wanted.c_str(), 1);
  const std::string output = directory_in_job(find_launch(get), get);
  const std::string socket = socket_path(step_name(), "");
  if (Status status = open_door(*files, socket); !status) return status.error();
  std::string text = lines_of(environment_for(options, *files, socket, output, get));
  text += "export AON_DOOR=" + socket + "\nexport AON_DOOR_GAVE=" + output + "\n";
  if (!wanted.empty()) text += "export AON_DOOR_OUTPUT=" + wanted + "\n";
  return text;
}

}  // namespace
}  // namespace aon::launcher

int main(int argc, char** argv) {
  // The script has taken it out of its own environment, and that of what it runs.
  if (const char* users = getenv("AON_USER_PRELOAD")) setenv("LD_PRELOAD", users, 1);
  const std::string_view word = argc > 1 ? argv[1] : "";
  if (argc == 2 && (word == "--help" || word == "-h")) {
    fputs(aon::launcher::kUsage, stdout);
    return 0;
  }
  const bool is_check = word == "--check";
  if (argc > 2 || (argc == 2 && !is_check)) {
    fprintf(stderr, "aon-task: '%s' is no argument; see aon-task --help\n", argv[is_check ? 2 : 1]);
    return 2;
  }
  const aon::Result<std::string> lines = aon::launcher::lines(is_check);
  if (is_check) {
    if (!lines) fprintf(stderr, "aon-task: %s\n", lines.error().message.c_str());
    return lines ? 0 : 1;
  }
  const std::string text = lines ? *lines : aon::launcher::lines_of_none();
  fwrite(text.data(), 1, text.size(), stdout);
  return text.empty() ? 1 : 0;
}
