/// The options of aon-run and aon-agent: one table says the name, type, unit, default and help text
/// of each, and everything else is derived from it: the command line, the environment
/// (AON_<NAME>), the TOML file that AON_CONFIG names, and the text of --help.
///
///     defaults  <  TOML file  <  environment  <  command line
///
/// aon-run resolves all sources once and hands the agent finished values on its command line, so
/// the agent reads no environment.
/// Thread: plain values; call from one thread at start.   Cost: about 100 us, no I/O unless
/// AON_CONFIG is set.   Errors: a message that names the option, its source and what it accepts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/result.h"

namespace aon {

/// Every option of architecture.md's command line contract, resolved.
struct Options {
  std::string output_dir;              ///< empty: `aon-<launch id>` in the current directory
  std::vector<std::string> providers;  ///< empty: all that are there
  std::vector<std::string> without;
  uint64_t memory_bytes = 0;       ///< ring of one process
  uint64_t node_memory_bytes = 0;  ///< 0: the smaller of 1 GiB and 1 % of the cgroup's limit
  uint64_t disk_bytes = 0;         ///< of this node and job, spool and archive together
  std::string spool_dir;           ///< empty: the job directory
  std::string rendezvous;          ///< empty: ~/.aon/launches; of an agent: the launch's
  uint64_t flush_ms = 0;
  uint64_t attach_ms = 0;
  double budget_percent = 0;
  uint64_t sampling_hz = 0;
  std::vector<std::string> events;
  std::string call_graph;
  std::string sampling_fallback;
  std::string gpu_counters;
  std::string record_fixture;  ///< folder for buffers of CUPTI as they were; empty: none
  uint64_t hang_s = 0;
  std::string nccl_level;
  std::string cupti_mode;
  std::string cupti_graph;
  bool cupti_calls = true;
  uint64_t cupti_memory_mib = 0;
  uint64_t wait_s = 0;
  bool drop_spool = false;
  bool no_assemble = false;
  uint64_t otf2_location_count = 0;
  bool nccl_as_mpi = false;
  bool dry_run = false;
  bool verbose = false;
};

using OptionField = std::variant<std::string Options::*, std::vector<std::string> Options::*,
                                 uint64_t Options::*, double Options::*, bool Options::*>;

/// kBytes: 8MiB, 64k, 1G are accepted; kMebibytes: these, too, and a number alone is MiB.
enum class OptionUnit { kNone, kBytes, kMebibytes };

/// One row of the table.
struct OptionSpec {
  const char* name;          ///< long name; AON_<NAME> is this in capitals with '_' for '-'
  char short_name;           ///< 0: none
  const char* placeholder;   ///< of the value in --help; empty for a flag
  const char* default_text;  ///< parsed like any other source; empty: see `help`
  OptionUnit unit;
  double minimum;
  double maximum;
  OptionField field;
  const char* help;
  const char* choices = nullptr;  ///< of a text, separated by '|'; null: any

  /// It needs no value: its name alone switches it on.
  bool is_flag() const {
    return std::holds_alternative<bool Options::*>(field) && *placeholder == '\0';
  }
};

/// The table.
std::span<const OptionSpec> option_table();

/// "8MiB", "64k", "1G", "4096" as bytes; every letter means powers of 1024.
Result<uint64_t> parse_bytes(std::string_view text);

/// Environment name of an option: AON_ and its name in capitals.
std::string environment_name(const OptionSpec& spec);

/// Help text of aon-run, rendered from the table.
std::string help_text();

enum class Action { kRun, kHelp, kVersion };

/// What the command line of aon-run says.
struct CommandLine {
  Action action = Action::kRun;
  Options options;
  std::vector<std::string> given;    ///< names of the options that stood there
  std::vector<std::string> program;  ///< with its arguments; never empty for kRun
};

/// Splits options from the program and resolves all sources. `environment` is environ's form.
/// AON_DISABLE=1 in it (disable.h) leaves environment and file unread.
Result<CommandLine> read_command_line(std::span<const char* const> arguments,
                                      std::span<const char* const> environment);

/// What a setting says that cannot be taken.
struct WrongSetting {
  std::string variable;  ///< AON_<NAME>; AON_CONFIG for what its file says
  std::string message;   ///< as aon-run would say it
  friend bool operator==(const WrongSetting&, const WrongSetting&) = default;
};

/// The options where there is nobody to tell: a setting that is wrong is left out and told in
/// `wrong`, the others hold. With AON_DISABLE=1 the defaults.
Options read_environment(std::span<const char* const> environment,
                         std::vector<WrongSetting>& wrong);

/// A variable that would load a provider into the program and that the user had set to something
/// else: it is left alone, and the ledger says so.
struct LeftAlone {
  std::string provider;
  std::string variable;
  friend bool operator==(const LeftAlone&, const LeftAlone&) = default;
};

/// What aon-run tells the agent it starts.
struct AgentArguments {
  Options options;  ///< output_dir is absolute and exists
  std::string launch_id;
  int listen_fd = -1;  ///< bound and listening
  int lock_fd = -1;    ///< held lock of the socket; close it when no more ranks are accepted
  std::vector<LeftAlone> left_alone;
  std::vector<WrongSetting> wrong;   ///< settings that were left out
  std::vector<std::string> avoided;  ///< programs that are not to be recorded (avoid_list.h)
};

/// Arguments behind the program name, and back. The two are inverse.
std::vector<std::string> agent_arguments(const AgentArguments& values);
Result<AgentArguments> read_agent_arguments(std::span<const char* const> arguments);

}  // namespace aon
