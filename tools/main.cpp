/// aon COMMAND: looks at job directories and at the machine. `aon --help` lists the commands.
#include <fmt/format.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string_view>

#include "core/base/descriptors.h"
#include "core/base/options.h"
#include "launcher/installation.h"
#include "tools/command.h"

namespace aon::tools {

int fail(const std::string& command, const std::string& text, int exit_code) {
  fmt::print(stderr, "aon{}{}: {}\n", command.empty() ? "" : " ", command, text);
  return exit_code;
}

namespace {

/// What the command line asks for: set by the subcommand that was named.
struct Request {
  std::function<int()> run;
  InfoOptions info;
  FinalizeOptions finalize;
  HangOptions hang;
  LevelOptions level;
  AvoidOptions avoid;
  ExportOptions export_job;
  DiffOptions diff;
  std::vector<std::string> pair;  ///< of diff
  std::string disk = "0";
  bool doctor_json = false;
};

void add_info(CLI::App& app, Request& request) {
  CLI::App* command = app.add_subcommand("info", "what a job directory holds");
  command->add_option("DIR", request.info.dir, "job directory")->required();
  command->add_flag("--json", request.info.as_json, "print the ledger");
  command->callback([&request] { request.run = [&request] { return info(request.info); }; });
}

/// The option of aon-run with the same name: its limits are ours.
const OptionSpec& as_of_aon_run(std::string_view name) {
  const auto table = option_table();
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const OptionSpec& spec) { return name == spec.name; });
  return found != table.end() ? *found : table.front();
}

/// Of tests and small clusters; the option, which only the agent gives, has the last word.
Status read_share_records(const CLI::App& command, FinalizeOptions& options) {
  const char* text = std::getenv("AON_SHARE_RECORDS");
  if (text == nullptr || *text == '\0' || command.count("--share-records") != 0) return {};
  const char* end = text + std::strlen(text);
  const auto [rest, error] = std::from_chars(text, end, options.least_shared_records);
  if (error == std::errc() && rest == end) return {};
  return Error{Code::kInvalid,
               fmt::format("AON_SHARE_RECORDS: '{}' is no number of records", text)};
}

int run_finalize(const CLI::App& command, Request& request) {
  if (Status status = read_share_records(command, request.finalize); !status)
    return fail("finalize", status.error().message, kExitUse);
  const Result<uint64_t> disk_bytes = parse_bytes(request.disk);
  if (!disk_bytes)
    return fail("finalize", fmt::format("--disk: '{}' is no size like 8MiB", request.disk),
                kExitUse);
  const double least_bytes = as_of_aon_run("disk").minimum;
  if (*disk_bytes != 0 && static_cast<double>(*disk_bytes) < least_bytes &&
      !request.finalize.from_agent)
    return fail("finalize",
                fmt::format("--disk: '{}' leaves nothing of the job; at least {} bytes",
                            request.disk, least_bytes),
                kExitUse);
  request.finalize.disk_bytes = *disk_bytes;
  return finalize(request.finalize);
}

void add_debug_directories(CLI::App& command, std::vector<std::string>& directories) {
  command
      .add_option("--debug-directories", directories,
                  "where separate debug files lie, DIR:DIR (default /usr/lib/debug)")
      ->delimiter(':')
      ->allow_extra_args(false)
      ->envname("AON_DEBUG_DIRECTORIES");  // also of what the agent starts
}

void add_finalize(CLI::App& app, Request& request) {
  FinalizeOptions& options = request.finalize;
  const OptionSpec& locations = as_of_aon_run("otf2-locations");
  CLI::App* command =
      app.add_subcommand("finalize", "write the archive of a job from its spool; may be repeated");
  command
      ->add_option("DIR", options.dirs, "job directories of one launch; the first gets the archive")
      ->required();
  command->add_flag("--snapshot", options.snapshot,
                    "a job that still runs: write what is there now");
  command->add_flag("--drop-spool", options.drop_spool, "remove the spool afterwards");
  command->add_flag("-q,--quiet", options.is_quiet, "print no summary");
  command->add_flag("--if-needed", options.if_needed,
                    "do nothing where an archive was begun after the last change of the spool");
  command
      ->add_option("--otf2-locations", options.otf2_location_count,
                   "above so many locations only master threads and streams go in (default 4096)")
      ->check(CLI::Range(locations.minimum, locations.maximum));
  command->add_flag("--nccl-as-mpi", options.nccl_as_mpi,
                    "operations of NCCL are MPI's in the archive, for tools that know only those");
  command->add_flag("--debuginfod", options.symbol_search.allows_debuginfod,
                    "ask the servers of DEBUGINFOD_URLS for names and lines of functions");
  add_debug_directories(*command, options.symbol_search.directories);
  command->add_option("--disk", request.disk,
                      "limit of spool and archive together (default: that of the run)");
  command->add_option("-j,--jobs", options.jobs,
                      "processes that go through the events (default 1; 0: one per core)");
  // Internal: not in the help.
  command->add_flag("--from-agent", options.from_agent)->group("");
  command->add_flag("--share", options.is_share)->group("");
  command->add_option("--node", options.node)->group("");
  command->add_option("--share-records", options.least_shared_records)->group("");
  command->callback([&request, command] {
    request.run = [&request, command] { return run_finalize(*command, request); };
  });
}

void add_hang(CLI::App& app, Request& request) {
  CLI::App* command = app.add_subcommand(
      "hang", "which calls do not return, and who did not arrive; of a live job");
  command->add_option("DIR", request.hang.dir, "job directory")->required();
  command
      ->add_option("--ras", request.hang.ras,
                   "HOST:PORT of NCCL's RAS service (default NCCL_RAS_ADDR, localhost:28028 on a "
                   "node of a live job); off: do not ask it")
      ->type_name("ADDRESS");
  add_debug_directories(*command, request.hang.symbol_search.directories);
  command->callback([&request] { request.run = [&request] { return hang(request.hang); }; });
}

void add_level(CLI::App& app, Request& request) {
  CLI::App* command = app.add_subcommand(
      "level", "how much NCCL is asked to tell in a job, or, while it runs, ask for another level");
  command->add_option("DIR", request.level.dir, "job directory")->required();
  command
      ->add_option("LEVEL", request.level.level,
                   "api, gpu, net or step: of all processes, also of those that begin later")
      ->type_name("LEVEL");
  command
      ->add_option("--wait", request.level.wait_s,
                   "seconds to wait for what becomes of it (default 10)")
      ->check(CLI::Range(0, 3600));
  command->callback([&request] { request.run = [&request] { return level(request.level); }; });
}

void add_avoid(CLI::App& app, Request& request) {
  CLI::App* command = app.add_subcommand(
      "avoid",
      "programs that died in AON's own code, or of a bad pointer that they passed there, and are "
      "not recorded any more");
  command->add_option("--remove", request.avoid.remove, "record PROGRAM again")
      ->type_name("PROGRAM");
  command->add_option("--add", request.avoid.add, "do not record PROGRAM (absolute path)")
      ->type_name("PROGRAM");
  command->add_option("--place", request.avoid.place, "where it died, for --add");
  command->callback([&request] { request.run = [&request] { return avoid(request.avoid); }; });
}

/// Where the Python module aon is: beside the libraries of this installation.
int print_python_path() {
  const Result<launcher::Installation> files = launcher::find_installation();
  if (!files) return fail("--python-path", files.error().message, kExitFailed);
  fmt::print("{}/aon/python\n", files->library_dir);
  return kExitDone;
}

void add_export(CLI::App& app, Request& request) {
  ExportOptions& options = request.export_job;
  CLI::App* command = app.add_subcommand("export", "write another format");
  command->add_option("DIR", options.dir, "job directory")->required();
  CLI::Option_group* format = command->add_option_group("format", "what to write");
  format->add_option("--slurm-hdf5", options.slurm_hdf5, "FILE that Slurm's sh5util reads");
  format->add_option(
      "--folded", options.folded,
      "FILE of folded stacks for flame graphs (speedscope, flamegraph.pl); - prints");
  format->require_option(1);
  command->add_flag("--by-rank", options.by_rank, "folded stacks begin with the rank");
  command->callback(
      [&request] { request.run = [&request] { return export_job(request.export_job); }; });
}

int run_diff(Request& request) {
  DiffOptions& options = request.diff;
  if (options.limit_percent && !std::isfinite(*options.limit_percent))
    return fail("diff", "--limit: that is no number of percent", kExitUse);
  if (!request.pair.empty()) {
    if (request.pair.size() != 2 || !options.base.empty() || !options.now.empty())
      return fail("diff", "give BASE and NEW, or --base DIR... and --new DIR...", kExitUse);
    options.base = {request.pair[0]};
    options.now = {request.pair[1]};
  }
  if (options.base.empty() || options.now.empty())
    return fail("diff", "two job directories are needed: aon diff BASE NEW", kExitUse);
  return diff(options);
}

void add_diff(CLI::App& app, Request& request) {
  DiffOptions& options = request.diff;
  CLI::App* command = app.add_subcommand(
      "diff", "what is slower in one job than in another, with confidence intervals");
  command->add_option("BASE NEW", request.pair, "two job directories")->type_name("DIR");
  command->add_option("--base", options.base, "several runs of one kind")->type_name("DIR");
  command->add_option("--new", options.now, "and of the other")->type_name("DIR");
  command
      ->add_option("--limit", options.limit_percent,
                   "exit 4 where a step (without steps the job) is slower by more than so many "
                   "percent, 5 where the interval holds the limit")
      ->type_name("PERCENT")
      ->check(CLI::Range(0.0, 1e6));
  command->add_flag("--json", options.as_json, "for programs");
  command->callback([&request] { request.run = [&request] { return run_diff(request); }; });
}

void add_doctor(CLI::App& app, Request& request) {
  CLI::App* command =
      app.add_subcommand("doctor", "what this machine allows, and how to allow the rest");
  command->add_flag("--json", request.doctor_json, "for programs");
  command->callback(
      [&request] { request.run = [&request] { return doctor(request.doctor_json); }; });
}

int refuse_command(const CLI::App& app, const std::string& name) {
  std::string names;
  for (const CLI::App* command : app.get_subcommands({}))
    names += (names.empty() ? "" : ", ") + command->get_name();
  fmt::print(stderr, "aon: {}; commands are: {}\n",
             name.empty() ? "no command" : fmt::format("unknown command '{}'", name), names);
  return kExitUse;
}

int run(int argc, char** argv) {
  CLI::App app{"Looks at what aon-run recorded, and at the machine.", "aon"};
  app.set_version_flag("--version", "aon " AON_VERSION);
  app.add_flag("--python-path")
      ->description("print the folder of the Python module aon, for PYTHONPATH");
  app.require_subcommand(1);
  Request request;
  add_info(app, request);
  add_finalize(app, request);
  add_hang(app, request);
  add_level(app, request);
  add_avoid(app, request);
  add_export(app, request);
  add_diff(app, request);
  add_doctor(app, request);
  const std::string first = argc > 1 ? argv[1] : "";
  if (first == "--python-path") return print_python_path();
  const auto commands = app.get_subcommands({});
  const bool is_command = std::any_of(commands.begin(), commands.end(), [&](const CLI::App* one) {
    return one->get_name() == first;
  });
  if (!first.starts_with('-') && !is_command) return refuse_command(app, first);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    app.failure_message([&](const CLI::App*, const CLI::Error& wrong) {
      const std::string name = is_command ? "aon " + first : "aon";
      return fmt::format("{}: {}; see {} --help\n", name, wrong.what(), name);
    });
    return app.exit(error) == 0 ? kExitDone : kExitUse;
  }
  return request.run();
}

int run_and_print(int argc, char** argv) {
  const int exit_code = run(argc, argv);
  const std::string wrong = flush_output();
  if (wrong.empty()) return exit_code;
  const int failed = fail("", wrong, kExitFailed);
  return exit_code == kExitDone ? failed : exit_code;
}

}  // namespace
}  // namespace aon::tools

int main(int argc, char** argv) {
  aon::hold_standard_descriptors();
  signal(SIGCHLD, SIG_DFL);  // whoever starts it may ignore it, and some commands have children
  signal(SIGXFSZ, SIG_IGN);  // "ulimit -f": a write that fails is told, and cleaned up behind
  try {
    return aon::tools::run_and_print(argc, argv);
  } catch (const std::exception& error) {
    return aon::tools::fail("", error.what());
  }
}
