/// aon-run [options] [--] program [args]: sets the environment, makes sure the node has an agent
/// for this launch, and executes the program in place. One aon-run per node, the one that started
/// the agent, stays as the parent of its rank and waits for the files, but for --wait 0.
///
///     options, program wrong ---> message, exit 2 (126, 127 for the program), nothing started
///     anything of ours fails ---> one line on stderr, the program runs unprofiled
#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>

#include "core/base/avoid_list.h"
#include "core/base/descriptors.h"
#include "core/base/disable.h"
#include "core/base/file.h"
#include "core/provider/names.h"
#include "core/runtime/rank.h"
#include "launcher/agent_link.h"
#include "launcher/environment.h"
#include "launcher/events.h"
#include "launcher/installation.h"
#include "launcher/job_directory.h"
#include "launcher/launch_id.h"
#include "launcher/parent.h"
#include "launcher/program.h"
#include "launcher/say.h"
#include "launcher/unknown_settings.h"
#include "launcher/waiter.h"

extern char** environ;

namespace aon::launcher {
namespace {

constexpr int kSummaryLines = 10;
constexpr int kExitNotPrinted = 1;

/// Everything decided before something is started.
struct Plan {
  Options options;
  std::vector<std::string> given;     ///< options of the command line
  std::vector<WrongSetting> unknown;  ///< variables that are no settings
  std::vector<std::string> program;
  std::string program_path;  ///< of its file, links resolved
  Installation files;
  Launch launch;
  std::string wanted_output;  ///< as asked for
  bool output_was_asked_for = false;
  std::string output;  ///< absolute, exists once opened
  std::string socket;
  pid_t agent = -1;  ///< if this process started it
};

const char* get(const char* name) { return getenv(name); }

/// A program that an aon-run started, without a launcher of its own in between and without -o,
/// belongs to the outer launch until that is over: a shell in the background may outlive it. The
/// socket of a doorman belongs to no launch.
bool is_nested(const Plan& plan) {
  const char* outer = getenv("AON_OUTPUT");
  const char* door = getenv("AON_DOOR");
  if (door != nullptr && getenv("AON_SOCKET") != nullptr && strcmp(door, getenv("AON_SOCKET")) == 0)
    return false;
  if (getenv("AON_SOCKET") == nullptr || outer == nullptr || plan.output_was_asked_for)
    return false;
  return !plan.launch.has_launcher || read_launch_id(outer) == plan.launch.id;
}

void make_plan(Plan& plan) {
  plan.launch = find_launch(get);
  plan.output_was_asked_for = !plan.options.output_dir.empty();
  plan.wanted_output =
      plan.output_was_asked_for ? plan.options.output_dir : "aon-" + plan.launch.id;
}

/// The outer launch has no agent any more. If its launcher's job is ours, the agent may have been
/// killed, and records belong where those of the other ranks are; but not where there is an archive
/// without its spool, which would be overwritten.
void leave_outer_launch(Plan& plan) {
  const std::string outer = getenv("AON_OUTPUT");
  const bool has_spool = access((outer + "/spool").c_str(), F_OK) == 0;
  const bool has_archive = access((outer + "/aon.json").c_str(), F_OK) == 0;
  if (plan.launch.has_launcher && (has_spool || !has_archive)) plan.wanted_output = outer;
  if (!plan.launch.has_launcher && (plan.options.record_fixture + "/").starts_with(outer + "/"))
    plan.options.record_fixture.clear();  // an option of that launch
}

void set_variables(const Plan& plan, const std::string& socket) {
  const ProgramEnvironment wanted =
      program_environment(plan.options, plan.files, socket, plan.output, get);
  if (socket.empty()) unsetenv("AON_SOCKET");
  for (const std::string& name : wanted.removed) unsetenv(name.c_str());
  for (const Variable& variable : wanted.variables)
    setenv(variable.name.c_str(), variable.value.c_str(), 1);
  if (!plan.options.verbose) return;
  for (const LeftAlone& one : wanted.left_alone) say(one.variable + " was set already; left alone");
}

/// By one aon-run of a launch, where the launcher tells which it is.
void say_unknown(const Plan& plan) {
  if (runtime::rank_from_environment(get).rank > 0) return;
  for (const WrongSetting& one : plan.unknown) say(one.message);
}

/// The exit status of an aon-run that starts nothing, and only prints.
int end_of_print() {
  const std::string wrong = flush_output();
  if (wrong.empty()) return 0;
  say(wrong);
  return kExitNotPrinted;
}

int print_plan(Plan& plan) {
  say_unknown(plan);
  const Result<std::string> output = absolute_path(plan.wanted_output);
  plan.output = output ? *output : plan.wanted_output;
  plan.socket = socket_path(plan.launch.id, plan.output);
  const ProgramEnvironment wanted =
      program_environment(plan.options, plan.files, plan.socket, plan.output, get);
  printf("launch %s\n", plan.launch.id.c_str());
  for (const Variable& variable : wanted.variables)
    printf("set %s=%s\n", variable.name.c_str(), variable.value.c_str());
  for (const std::string& name : wanted.removed) printf("unset %s\n", name.c_str());
  for (const LeftAlone& one : wanted.left_alone) printf("keep %s\n", one.variable.c_str());
  AgentArguments arguments;
  arguments.options = plan.options;
  arguments.options.output_dir = plan.output;
  arguments.launch_id = plan.launch.id;
  arguments.left_alone = wanted.left_alone;
  printf("agent %s", plan.files.agent.c_str());
  for (const std::string& text : agent_arguments(arguments)) printf(" %s", text.c_str());
  printf("\nrun");
  for (const std::string& word : plan.program) printf(" %s", word.c_str());
  printf("\n");
  return end_of_print();
}

/// Copies at most ten lines of what the agent's conversion left for the user.
void print_summary(const Plan& plan) {
  const Result<std::string> text = read_text_file(plan.output + "/summary.txt", 8192);
  if (!text || text->empty()) return say("the files are in " + plan.output);
  size_t end = 0;
  for (int line = 0; line < kSummaryLines && end < text->size(); ++line) {
    const size_t newline = text->find('\n', end);
    end = newline == std::string::npos ? text->size() : newline + 1;
  }
  write_bounded(std::string_view(*text).substr(0, end), kReaderMs);
}

/// After a failure the launcher has to learn of it at once: other ranks may be waiting for it to
/// act.
bool may_wait(const Plan& plan, const ProgramEnd& end) {
  return end.is_success() || (plan.launch.local_rank_count <= 1 && plan.launch.world_size <= 1);
}

/// The last word of an aon-run that may not wait, or no longer: its launcher may kill it at any
/// time (mpirun does, when a rank has died), so it waits for no reader and says one line.
void say_where(const Plan& plan) {
  const std::string& dir = plan.output;
  const std::string text =
      plan.options.no_assemble
          ? "aon-run: the spool will be in " + dir + "; run: aon finalize " + dir + "\n"
          : "aon-run: the files will be in " + dir + " soon; if not, run: aon finalize " + dir +
                "\n";
  write_bounded(text, 0);
}

int timeout_ms_of(const Plan& plan) {
  return static_cast<int>(std::min<uint64_t>(plan.options.wait_s, 1'000'000) * 1000);
}

void say_ended_early(const Plan& plan) {
  const std::string reason = last_words_of_agent(plan.output, plan.agent);
  say("the agent ended early" + (reason.empty() ? "" : " (" + reason + ")") +
      "; run: aon finalize " + plan.output);
}

/// The agent has answered, or is gone.
void print_outcome(const Plan& plan, int connection) {
  agent::Done done{};
  const ssize_t count = recv(connection, &done, sizeof(done), MSG_DONTWAIT);
  const bool is_done = count == sizeof(done) && done.header.type == agent::MessageType::kDone;
  if (!is_done) {
    say_ended_early(plan);
  } else if (done.complete == 0) {
    done.text[sizeof(done.text) - 1] = '\0';
    say(done.text);
  } else if (done.complete == agent::kDoneReport) {
    print_summary(plan);
  }
}

void wait_for_files(const Plan& plan, Parent& parent, const ProgramEnd& end, int connection) {
  if (connection < 0) {
    say_ended_early(plan);
  } else if (!may_wait(plan, end)) {
    if (!end.is_success()) say_where(plan);
  } else if (!parent.wait_for_input(connection, timeout_ms_of(plan))) {
    say_where(plan);
  } else {
    print_outcome(plan, connection);
  }
}

/// Registers `pid` on `connection`; a failure costs the exit status of the rank, nothing more.
void register_rank(const Plan& plan, int connection, pid_t pid) {
  const Status status =
      send_register(connection, {pid, plan.launch.local_rank_count, plan.program_path});
  if (!status && plan.options.verbose) say(status.error().message);
}

/// Starts the agent of the link, which is closed then.
Status start_agent(Plan& plan, AgentLink& link) {
  AgentArguments arguments;
  arguments.options = plan.options;
  arguments.options.output_dir = plan.output;
  arguments.launch_id = plan.launch.id;
  if (!plan.launch.is_of_all_nodes) arguments.options.rendezvous = "off";
  arguments.left_alone =
      program_environment(plan.options, plan.files, plan.socket, plan.output, get).left_alone;
  const Result<pid_t> agent = spawn_agent(plan.files.agent, link, std::move(arguments));
  link.listener.reset();
  link.lock.reset();
  if (!agent) return agent.error();
  plan.agent = *agent;
  if (plan.options.verbose)
    say("agent " + std::to_string(*agent) + " of launch " + plan.launch.id + ", files in " +
        plan.output);
  return {};
}

void say_no_agent(const Plan& plan, const Error& error) {
  say(error.message + "; no agent, recording into a file; afterwards run: aon finalize " +
      plan.output);
}

/// Starts the program as a child, then the agent: the program need not wait for that one's start,
/// for the link listens already, and has what `connection` tells. Does not return.
[[noreturn]] void run_as_parent(Plan& plan, AgentLink& link, Result<UniqueFd> connection) {
  Result<Parent> parent = Parent::start(plan.program, [&] {
    link.listener.reset();  // while exec() reads a program, they would outlive the agent
    link.lock.reset();
    set_variables(plan, plan.socket);
  });
  const int descriptor = connection ? connection->release() : -1;
  if (descriptor >= 0) register_rank(plan, descriptor, parent ? parent->child() : getpid());
  if (descriptor >= 0 && parent) (void)send_wait(descriptor);
  const Status agent = start_agent(plan, link);
  if (!agent) say_no_agent(plan, agent.error());
  if (!parent) {
    set_variables(plan, agent ? plan.socket : "");
    if (agent) say(parent.error().message + "; the files will be in " + plan.output);
    _exit(execute(plan.program));
  }
  parent->close_descriptors(descriptor);
  // Where the agent hears nothing, it may still find out by itself.
  const ProgramEnd end = parent->wait_for_program([&](const ProgramEnd& seen) {
    if (descriptor >= 0) (void)send_exited(descriptor, parent->child(), seen.wait_status);
  });
  if (agent) wait_for_files(plan, *parent, end, descriptor);
  end_like(end);
}

/// Leaves a process behind that waits for the files, on the connection `fd`; the caller starts the
/// program in its own place.
void leave_waiter(const Plan& plan, int fd) {
  const Result<UniqueFd> notices = open_notices(plan.socket);
  const int notices_fd = notices ? notices->get() : -1;
  const UniqueFd program(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
  const Status status = start_waiter({fd, notices_fd, program.get()}, [&] {
    if (wait_for_descriptor(fd, notices_fd, program.get(), timeout_ms_of(plan))) {
      print_outcome(plan, fd);
    } else {
      say_where(plan);
    }
    if (notices_fd >= 0) unlink((plan.socket + agent::kWaiterSuffix).c_str());
  });
  if (!status) say(status.error().message + "; the files will be in " + plan.output);
}

/// Joins the agent of this node or starts it. Returns the status to print; the program is started
/// by the caller then.
Status run_with_agent(Plan& plan) {
  if (Status status = check_descriptor_limit(plan.launch.local_rank_count); !status)
    return status.error();
  plan.socket = socket_path(plan.launch.id, plan.output);
  Result<AgentLink> link = join_or_listen(plan.socket);
  if (!link && link.error().code == Code::kBusy) {  // the program itself calls later
    set_variables(plan, plan.socket);
    return {};
  }
  if (!link) return link.error();
  if (link->connection) {
    register_rank(plan, link->connection.get(), getpid());
    set_variables(plan, plan.socket);
    return {};
  }
  // First of all who call, and before there is an agent: later there may be no room.
  Result<UniqueFd> connection = connect_agent(plan.socket);
  if (plan.options.wait_s != 0 && !launcher_watches_socket(get))
    run_as_parent(plan, *link, std::move(connection));
  if (connection) register_rank(plan, connection->get(), getpid());
  const bool waits = connection && plan.options.wait_s != 0 && send_wait(connection->get());
  if (Status status = start_agent(plan, *link); !status) return status.error();
  set_variables(plan, plan.socket);
  if (getpid() == 1)
    say("in this container the agent ends with the program; afterwards run: aon finalize " +
        plan.output);
  if (!connection) say_ended_early(plan);
  if (waits) leave_waiter(plan, connection->get());
  return {};
}

/// A rank of a launch that is recorded already: tells its agent and runs.
int run_nested(const Plan& plan, const Result<UniqueFd>& agent) {
  if (agent) register_rank(plan, agent->get(), getpid());
  for (const Variable& variable : lost_variables(plan.files, get))
    setenv(variable.name.c_str(), variable.value.c_str(), 1);
  return execute(plan.program);
}

int run_unprofiled(const Plan& plan, const std::string& reason) {
  say(reason + "; running without profiling");
  return execute(plan.program);
}

/// Options of the command line that together do nothing.
Status check_options(const Plan& plan) {
  const bool is_given =
      std::find(plan.given.begin(), plan.given.end(), "record-fixture") != plan.given.end();
  if (is_given && !provider_is_wanted(plan.options, "cupti"))
    return Error{Code::kInvalid, "--record-fixture keeps what CUPTI tells, and cupti is left out"};
  if (is_given && plan.options.cupti_mode == "off")
    return Error{Code::kInvalid,
                 "--record-fixture keeps what CUPTI tells, and --cupti-mode is off"};
  return {};
}

Status check_providers(const Plan& plan) {
  if (Status status = check_options(plan); !status) return status;
  if (plan.options.providers.empty() && plan.options.without.empty()) return {};
  const std::string& libraries = plan.files.library_dir;
  return provider::check_names(
      {plan.options.providers, plan.options.without},
      provider::installed_names(libraries, provider::provider_folder(libraries)));
}

/// A folder that cannot be: an error of the option, where the user has just given it. What a site
/// has set for all, or what befell this node alone, costs no job.
int refuse_folder(const Plan& plan, const char* option, const Error& error) {
  const bool is_users = std::find(plan.given.begin(), plan.given.end(), option) != plan.given.end();
  if (!is_users || error.code != Code::kInvalid) return run_unprofiled(plan, error.message);
  say(error.message);
  return kExitOptions;
}

struct FolderOption {
  const char* name;
  std::string Options::*field;
};
constexpr FolderOption kFolderOptions[] = {{"record-fixture", &Options::record_fixture},
                                           {"spool-dir", &Options::spool_dir}};

/// Makes the folders of options; those in the job directory once it is claimed, as it is no empty
/// one with them, and in the one that the launch got. Returns the exit status, if it ends here.
std::optional<int> open_folders(Plan& plan) {
  const Result<std::string> wanted = absolute_path(plan.wanted_output);
  for (const FolderOption& option : kFolderOptions) {
    std::string& folder = plan.options.*option.field;
    if (folder.empty()) continue;
    const Result<std::string> path = absolute_path(folder);
    if (!path) return refuse_folder(plan, option.name, path.error());
    const bool is_inside = wanted && (*path + "/").starts_with(*wanted + "/");
    if (is_inside && plan.output.empty()) continue;
    if (is_inside) folder = plan.output + path->substr(wanted->size());
    const Status status = open_folder(("--" + std::string(option.name)).c_str(), folder);
    if (!status) return refuse_folder(plan, option.name, status.error());
  }
  return std::nullopt;
}

int run(Plan& plan) {
  Result<Installation> files = find_installation();
  if (!files) return run_unprofiled(plan, files.error().message);
  plan.files = std::move(*files);
  if (Status status = check_providers(plan); !status) {
    say(status.error().message);
    return kExitOptions;
  }
  Result<std::vector<std::string>> events = resolve_events(plan.options.events);
  if (!events) {
    say(events.error().message);
    return kExitOptions;
  }
  plan.options.events = std::move(*events);  // from here on encoded, for the agent too
  make_plan(plan);
  if (plan.options.dry_run) return print_plan(plan);
  if (is_nested(plan)) {
    const Result<UniqueFd> agent = connect_agent(getenv("AON_SOCKET"));
    const bool is_over = !agent && agent.error().code == Code::kNotFound;
    if (!is_over) return run_nested(plan, agent);
    leave_outer_launch(plan);
  }
  say_unknown(plan);
  if (const auto refused = open_folders(plan)) return *refused;
  const Result<std::string> output = open_job_directory(plan.wanted_output, plan.launch);
  if (!output) return refuse_folder(plan, "output", output.error());
  plan.output = *output;
  if (const auto refused = open_folders(plan)) return *refused;
  if (Status status = run_with_agent(plan); !status) {
    say_no_agent(plan, status.error());
    set_variables(plan, "");
  }
  return execute(plan.program);
}

std::string reason_to_avoid(const AvoidedProgram& program) {
  if (program.place.empty()) return " was added to what aon avoid lists on " + program.date;
  return " died in AON's own code (" + program.place + ", " + program.date +
         "), or of a bad pointer that it passed there";
}

int main_of(int argc, char** argv) {
  hold_standard_descriptors();
  keep_environment();
  size_t variable_count = 0;
  while (environ[variable_count] != nullptr) ++variable_count;
  const std::span<const char* const> environment{environ, variable_count};
  Result<CommandLine> line =
      read_command_line({argv + 1, static_cast<size_t>(argc - 1)}, environment);
  if (!line) {
    say(line.error().message);
    return kExitOptions;
  }
  if (line->action != Action::kRun) {
    const std::string text =
        line->action == Action::kHelp ? help_text() : std::string("aon " AON_VERSION "\n");
    fwrite(text.data(), 1, text.size(), stdout);
    return end_of_print();
  }
  Plan plan;
  plan.options = std::move(line->options);
  plan.given = std::move(line->given);
  plan.program = std::move(line->program);
  if (is_disabled_by(getenv("AON_DISABLE"))) return execute(plan.program);
  const Program program = find_program(plan.program.front());
  if (program.exit_code != 0) {
    say(plan.program.front() + ": " + strerror(program.error_number));
    return program.exit_code;
  }
  if (program.is_privileged) {
    if (plan.options.verbose) say(program.path + " is set-uid; running without profiling");
    return execute(plan.program);
  }
  plan.program_path = resolved_program(program.path);
  AvoidedProgram avoided;
  if (AvoidList(AvoidList::default_path()).holds(plan.program_path, &avoided)) {
    say(plan.program_path + reason_to_avoid(avoided) + "; running without profiling; " +
        "to try again: aon avoid --remove " + plan.program_path);
    return execute(plan.program);
  }
  plan.unknown = unknown_settings(environment);
  return run(plan);
}

}  // namespace
}  // namespace aon::launcher

int main(int argc, char** argv) { return aon::launcher::main_of(argc, argv); }
