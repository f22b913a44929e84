#include "core/base/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "core/base/disable.h"
#include "core/base/option_file.h"

namespace aon {
namespace {

constexpr double kMostRingBytes = 0x1p40;  ///< chunks of a ring are counted with 32 bits
constexpr double kMostBytes = 0x1p60;
constexpr uint64_t kMebibyte = 1u << 20;

const std::array<OptionSpec, 30> kTable{{
    {"output", 'o', "DIR", "", OptionUnit::kNone, 0, 0, &Options::output_dir,
     "job directory (default aon-<launch id>); one of another launch is left alone, DIR.1 is used"},
    {"providers", 0, "LIST", "", OptionUnit::kNone, 0, 0, &Options::providers,
     "record only these providers, separated by commas (default all)"},
    {"without", 0, "LIST", "", OptionUnit::kNone, 0, 0, &Options::without,
     "record all providers but these"},
    {"memory", 0, "SIZE", "8MiB", OptionUnit::kBytes, 262144, kMostRingBytes,
     &Options::memory_bytes, "ring of one process, at least 256KiB"},
    {"node-memory", 0, "SIZE", "0", OptionUnit::kBytes, 0, kMostBytes, &Options::node_memory_bytes,
     "sum of all rings of a node; 0: the smaller of 1GiB and 1 % of the cgroup's limit"},
    {"disk", 0, "SIZE", "1GiB", OptionUnit::kBytes, 1048576, kMostBytes, &Options::disk_bytes,
     "all files of this job written by one node, at least 1MiB; the oldest go first"},
    {"spool-dir", 0, "DIR", "", OptionUnit::kNone, 0, 0, &Options::spool_dir,
     "where the spool is written (default the job directory)"},
    {"rendezvous", 0, "DIR", "", OptionUnit::kNone, 0, 0, &Options::rendezvous,
     "a folder that all nodes see, for agents to meet where the job directory is on a disk of each "
     "node (default ~/.aon/launches); off: none"},
    {"flush-ms", 0, "N", "250", OptionUnit::kNone, 10, 60000, &Options::flush_ms,
     "write events at least this often; samples and metrics each second"},
    {"attach-ms", 0, "N", "20", OptionUnit::kNone, 1, 60000, &Options::attach_ms,
     "a process waits for the agent at most so long, once; without one it records into a file"},
    {"budget", 0, "PCT", "1", OptionUnit::kNone, 0.01, 100, &Options::budget_percent,
     "cost that may not be exceeded, in percent of the ranks' CPU time"},
    {"sampling", 0, "HZ", "97", OptionUnit::kNone, 0, 10000, &Options::sampling_hz,
     "call-path samples of each thread, per second of its CPU time; 0: none"},
    {"call-graph", 0, "HOW", "fp", OptionUnit::kNone, 0, 0, &Options::call_graph,
     "how samples find their callers: fp (frame pointers), lbr (Intel's branch records), dwarf "
     "(stack copies, dear) or none",
     "fp|lbr|dwarf|none"},
    {"sampling-fallback", 0, "HOW", "none", OptionUnit::kNone, 0, 0, &Options::sampling_fallback,
     "where perf is forbidden: timer (a signal in each thread that records, SIGURG) or none",
     "timer|none"},
    {"events", 0, "LIST", "", OptionUnit::kNone, 0, 0, &Options::events,
     "count these events (cycles,instructions,page-faults or the CPU's own), the first four of the "
     "hardware at the borders of calls, too"},
    {"gpu-counters", 0, "SET", "off", OptionUnit::kNone, 0, 0, &Options::gpu_counters,
     "hardware counters of NVIDIA's GPUs: core, or wide (more on Hopper), 100 times a second; "
     "burst "
     "(core, 1000 times, for half a second in ten); or off",
     "off|core|wide|burst"},
    {"hang", 0, "S", "60", OptionUnit::kNone, 0, 1e6, &Options::hang_s,
     "note calls that do not return for so many seconds, for `aon hang DIR`; 0: never"},
    {"nccl-level", 0, "LEVEL", "api", OptionUnit::kNone, 0, 0, &Options::nccl_level,
     "how much NCCL is asked to tell: api (operations), gpu (and their times on the GPU: "
     "bandwidths, late ranks, hangs), net (and the network's part), step (and its steps) or off",
     "api|gpu|net|step|off"},
    {"cupti-mode", 0, "MODE", "exclusive", OptionUnit::kNone, 0, 0, &Options::cupti_mode,
     "whose CUPTI is: exclusive (AON's), yield (a program may take it, aon_gpu_pause()) or off "
     "(work of GPUs is not recorded)",
     "exclusive|yield|off"},
    {"cupti-graph", 0, "HOW", "graph", OptionUnit::kNone, 0, 0, &Options::cupti_graph,
     "CUDA graphs are recorded as graph (one piece of work each launch) or node (its kernels, "
     "dear)",
     "graph|node"},
    {"cupti-calls", 0, "SWITCH", "1", OptionUnit::kNone, 0, 0, &Options::cupti_calls,
     "record calls of CUDA, and so which of them started what work; 0: none"},
    {"cupti-memory", 0, "SIZE", "256MiB", OptionUnit::kMebibytes, 2, 1024,
     &Options::cupti_memory_mib,
     "buffers for CUPTI of one process, 1MiB for each thread that launches; a number alone is MiB"},
    {"record-fixture", 0, "DIR", "", OptionUnit::kNone, 0, 0, &Options::record_fixture,
     "keep what CUPTI delivers in DIR, at most 64MiB of each process, to make a test of it"},
    {"wait", 0, "S", "60", OptionUnit::kNone, 0, 1e6, &Options::wait_s,
     "wait at most so many seconds for the files at the end; 0: do not wait"},
    {"drop-spool", 0, "", "", OptionUnit::kNone, 0, 0, &Options::drop_spool,
     "remove the spool once the archive is complete"},
    {"no-assemble", 0, "", "", OptionUnit::kNone, 0, 0, &Options::no_assemble,
     "leave the spool as it is; `aon finalize DIR` makes the archive later"},
    {"otf2-locations", 0, "N", "4096", OptionUnit::kNone, 1, 1e9, &Options::otf2_location_count,
     "above so many locations only master threads and streams go into the archive"},
    {"nccl-as-mpi", 0, "", "", OptionUnit::kNone, 0, 0, &Options::nccl_as_mpi,
     "operations of NCCL are MPI's in the archive, for tools that know only those"},
    {"dry-run", 0, "", "", OptionUnit::kNone, 0, 0, &Options::dry_run,
     "print what would be set, start nothing"},
    {"verbose", 'v', "", "", OptionUnit::kNone, 0, 0, &Options::verbose,
     "say on stderr, and in the agent's log, what is done"},
}};

/// Items between commas, spaces around them left out.
std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> items;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    std::string_view item = text.substr(0, comma);
    while (item.starts_with(' ')) item.remove_prefix(1);
    while (item.ends_with(' ')) item.remove_suffix(1);
    if (!item.empty()) items.emplace_back(item);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return items;
}

Error bad_value(const OptionSpec& spec, std::string_view source, std::string_view text,
                std::string_view expected) {
  return {Code::kInvalid,
          fmt::format("{}: '{}' is not valid for --{}: {}", source, text, spec.name, expected)};
}

Result<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return Error{Code::kInvalid, "not a number"};
  return value;
}

/// As parse_bytes() reads it, in the largest unit.
std::string bytes_text(double bytes) {
  constexpr std::array kUnits{"", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < kUnits.size(); ++unit) bytes /= 1024;
  return fmt::format("{}{}", bytes, kUnits[unit]);
}

/// In the unit of the row.
Result<uint64_t> parse_size(const OptionSpec& spec, std::string_view text) {
  if (spec.unit == OptionUnit::kBytes) return parse_bytes(text);
  const bool is_alone = text.find_first_not_of("0123456789 ") == std::string_view::npos;
  const Result<uint64_t> bytes = parse_bytes(fmt::format("{}{}", text, is_alone ? "MiB" : ""));
  if (!bytes) return bytes.error();
  if (*bytes % kMebibyte != 0) return Error{Code::kInvalid, "not a size in MiB"};
  return *bytes / kMebibyte;
}

Error bad_size(const OptionSpec& spec, std::string_view source, std::string_view text) {
  if (spec.unit == OptionUnit::kMebibytes)
    return bad_value(spec, source, text, "expected MiB, or a size like 64MiB or 1G");
  return bad_value(
      spec, source, text,
      fmt::format("expected a size like 8MiB or 1G, at most {}", bytes_text(spec.maximum)));
}

Error out_of_range(const OptionSpec& spec, std::string_view source, std::string_view text) {
  const double unit_bytes = spec.unit == OptionUnit::kMebibytes ? kMebibyte : 1;
  return bad_value(spec, source, text,
                   spec.unit == OptionUnit::kNone
                       ? fmt::format("expected {} to {}", spec.minimum, spec.maximum)
                       : fmt::format("expected {} to {}", bytes_text(spec.minimum * unit_bytes),
                                     bytes_text(spec.maximum * unit_bytes)));
}

Status store_number(const OptionSpec& spec, std::string_view source, std::string_view text,
                    Options& options) {
  double value = 0;
  uint64_t whole = 0;
  if (spec.unit != OptionUnit::kNone) {
    const Result<uint64_t> size = parse_size(spec, text);
    if (!size) return bad_size(spec, source, text);
    whole = *size;
    value = static_cast<double>(whole);
  } else {
    const Result<double> number = parse_number(text);
    if (!number) return bad_value(spec, source, text, "expected a number");
    value = *number;
    whole = value >= 0 && value < 1e18 ? static_cast<uint64_t>(value) : 0;
  }
  if (value < spec.minimum || value > spec.maximum) return out_of_range(spec, source, text);
  if (const auto* real = std::get_if<double Options::*>(&spec.field)) {
    options.** real = value;
    return {};
  }
  if (static_cast<double>(whole) != value)
    return bad_value(spec, source, text, "expected a whole number");
  options.*std::get<uint64_t Options::*>(spec.field) = whole;
  return {};
}

Status store_flag(const OptionSpec& spec, std::string_view source, std::string_view text,
                  Options& options) {
  const bool is_on = text == "1" || text == "true" || text == "yes" || text == "on";
  const bool is_off =
      text.empty() || text == "0" || text == "false" || text == "no" || text == "off";
  if (!is_on && !is_off) return bad_value(spec, source, text, "expected 1 or 0");
  options.*std::get<bool Options::*>(spec.field) = is_on;
  return {};
}

bool is_choice(std::string_view choices, std::string_view text) {
  while (!choices.empty()) {
    const size_t end = std::min(choices.find('|'), choices.size());
    if (choices.substr(0, end) == text) return true;
    choices.remove_prefix(std::min(end + 1, choices.size()));
  }
  return false;
}

/// Parses `text` by the row's type and stores it; the only place where text becomes a value.
Status store(const OptionSpec& spec, std::string_view source, std::string_view text,
             Options& options) {
  if (const auto* field = std::get_if<std::string Options::*>(&spec.field)) {
    if (spec.choices != nullptr && !is_choice(spec.choices, text))
      return bad_value(spec, source, text, fmt::format("expected one of {}", spec.choices));
    options.** field = text;
    return {};
  }
  if (const auto* field = std::get_if<std::vector<std::string> Options::*>(&spec.field)) {
    options.** field = split_list(text);
    return {};
  }
  if (std::holds_alternative<bool Options::*>(spec.field))
    return store_flag(spec, source, text, options);
  return store_number(spec, source, text, options);
}

const char* find_variable(std::span<const char* const> environment, std::string_view name) {
  for (const char* entry : environment) {
    const std::string_view text(entry);
    if (text.size() > name.size() && text[name.size()] == '=' && text.starts_with(name))
      return entry + name.size() + 1;
  }
  return nullptr;
}

Status store_defaults(Options& options) {
  for (const OptionSpec& spec : kTable) {
    if (*spec.default_text == '\0') continue;
    if (Status status = store(spec, "default", spec.default_text, options); !status) return status;
  }
  return {};
}

void note(const std::string& variable, const Status& status, std::vector<WrongSetting>& wrong) {
  if (!status) wrong.push_back({variable, status.error().message});
}

Status store_setting(const FileSetting& setting, const std::string& path, Options& options) {
  for (const OptionSpec& spec : kTable) {
    if (setting.name == spec.name) return store(spec, path, setting.text, options);
  }
  return Error{Code::kInvalid, fmt::format("{}: unknown option '{}'", path, setting.name)};
}

void store_file(const std::string& path, Options& options, std::vector<WrongSetting>& wrong) {
  const Result<std::vector<FileSetting>> settings = read_option_file(path);
  if (!settings) return note("AON_CONFIG", settings.error(), wrong);
  for (const FileSetting& setting : *settings)
    note("AON_CONFIG", store_setting(setting, path, options), wrong);
}

/// True when an outer aon-run, or a TaskProlog, set AON_OUTPUT for its program, so it is no option
/// of the user's. Both leave what they set in another variable, too.
bool output_is_inherited(std::span<const char* const> environment, std::string_view output) {
  if (find_variable(environment, "AON_SOCKET") == nullptr) return false;
  bool is_told = false;
  for (const char* name : {"AON_OUTPUT_GAVE", "AON_DOOR_GAVE"}) {
    const char* gave = find_variable(environment, name);
    if (gave != nullptr && output == gave) return true;
    is_told = is_told || gave != nullptr;
  }
  return !is_told;
}

void store_environment(std::span<const char* const> environment, Options& options,
                       std::vector<WrongSetting>& wrong) {
  const char* file = find_variable(environment, "AON_CONFIG");
  if (file != nullptr && *file != '\0') store_file(file, options, wrong);
  for (const OptionSpec& spec : kTable) {
    const std::string name = environment_name(spec);
    const char* text = find_variable(environment, name);
    if (text == nullptr || *text == '\0') continue;
    if (name == "AON_OUTPUT" && output_is_inherited(environment, text)) continue;
    note(name, store(spec, name, text, options), wrong);
  }
}

/// The command line as texts: parsed before the other sources, stored after them.
struct RawCommandLine {
  std::vector<std::pair<const OptionSpec*, std::string>> values;
  std::vector<std::string> rest;
  bool wants_help = false;
  bool wants_version = false;
};

struct RawOption {
  const OptionSpec* spec;
  std::string text;
};

void add_table(CLI::App& app, std::span<RawOption> slots) {
  for (RawOption& slot : slots) {
    std::string names = fmt::format("--{}", slot.spec->name);
    if (slot.spec->short_name != 0) names = fmt::format("-{},{}", slot.spec->short_name, names);
    if (slot.spec->is_flag()) {
      app.add_flag(names, slot.text);
    } else {
      app.add_option(names, slot.text)->take_last();
    }
  }
}

const OptionSpec* find_option(std::string_view word) {
  for (const OptionSpec& spec : kTable) {
    if (word.starts_with("--") ? word.substr(2) == spec.name
                               : word.size() == 2 && word[1] == spec.short_name)
      return &spec;
  }
  return nullptr;
}

/// An option of ours without its value: CLI11 takes the next word for it, which is the program.
Status check_values(std::span<const char* const> arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view word(arguments[i]);
    if (word.size() < 2 || word[0] != '-' || word == "--") return {};  // the program
    const size_t equals = word.find('=');
    const OptionSpec* spec = find_option(word.substr(0, equals));
    if (spec == nullptr) continue;
    const bool is_flag = spec->is_flag();
    bool is_empty = equals + 1 == word.size();
    if (equals == std::string_view::npos && !is_flag)
      is_empty = ++i >= arguments.size() || *arguments[i] == '\0';
    if (!is_empty) continue;
    return Error{Code::kInvalid, fmt::format("command line: --{} needs a value: {}", spec->name,
                                             is_flag ? "1 or 0, or none" : spec->placeholder)};
  }
  return {};
}

/// Whether the option's name stands somewhere on the command line; short ones may stand together.
/// CLI11 takes half of a start for a table of all.
bool may_be_given(const OptionSpec& spec, std::span<const char* const> arguments) {
  return spec.short_name != 0 ||
         std::any_of(arguments.begin(), arguments.end(), [&](std::string_view word) {
           return word.starts_with("--") && word.substr(2).starts_with(spec.name);
         });
}

Result<RawCommandLine> split_command_line(std::span<const char* const> arguments) {
  if (Status status = check_values(arguments); !status) return status.error();
  RawCommandLine raw;
  std::vector<RawOption> slots;
  for (const OptionSpec& spec : kTable) {
    if (may_be_given(spec, arguments)) slots.push_back({&spec, ""});
  }
  CLI::App app;
  app.set_help_flag();
  app.prefix_command();
  add_table(app, slots);
  app.add_flag("-h,--help", raw.wants_help);
  app.add_flag("--version", raw.wants_version);
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    return Error{Code::kInvalid, error.what()};
  }
  for (RawOption& slot : slots) {
    const bool is_given = app.count(fmt::format("--{}", slot.spec->name)) > 0;
    if (is_given) raw.values.emplace_back(slot.spec, slot.text);
  }
  raw.rest = app.remaining();
  return raw;
}

/// Takes the `--` off; before it, a word that begins with '-' is an option we do not have.
Status check_program(std::vector<std::string>& program) {
  if (!program.empty() && program.front() == "--") {
    program.erase(program.begin());
  } else if (!program.empty() && program.front().size() > 1 && program.front()[0] == '-') {
    return Error{Code::kInvalid,
                 fmt::format("unknown option {}; see aon-run --help", program.front())};
  }
  if (program.empty())
    return Error{Code::kInvalid, "no program given; usage: aon-run [options] [--] program [args]"};
  return {};
}

}  // namespace

std::span<const OptionSpec> option_table() { return kTable; }

Result<uint64_t> parse_bytes(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return Error{Code::kInvalid, "not a size"};
  std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  uint32_t shift = 0;
  if (!unit.empty() && unit.front() != 'B' && unit.front() != 'b') {
    constexpr std::string_view kLetters = "KMGTkmgt";
    const size_t letter = kLetters.find(unit.front());
    if (letter == std::string_view::npos) return Error{Code::kInvalid, "not a size"};
    shift = 10 * (static_cast<uint32_t>(letter % 4) + 1);
    unit.remove_prefix(1);
    if (unit.starts_with('i')) unit.remove_prefix(1);
  }
  if (!unit.empty() && unit != "B" && unit != "b") return Error{Code::kInvalid, "not a size"};
  if (value > std::numeric_limits<uint64_t>::max() >> shift)
    return Error{Code::kInvalid, "size too large"};
  return value << shift;
}

std::string environment_name(const OptionSpec& spec) {
  std::string name = "AON_";
  for (const char* c = spec.name; *c != '\0'; ++c)
    name += *c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(*c)));
  return name;
}

std::string help_text() {
  std::string text =
      "usage: aon-run [options] [--] program [args]\n"
      "Runs the program with its MPI calls, counters and annotations recorded.\n\n";
  for (const OptionSpec& spec : kTable) {
    const std::string short_part =
        spec.short_name != 0 ? fmt::format("-{}, ", spec.short_name) : std::string("    ");
    const std::string names = fmt::format("{}--{} {}", short_part, spec.name, spec.placeholder);
    text += fmt::format("  {:<30}{}", names, spec.help);
    if (*spec.default_text != '\0' && std::string_view(spec.default_text) != "0")
      text += fmt::format(" (default {})", spec.default_text);
    text += '\n';
  }
  text += fmt::format("  {:<30}{}\n  {:<30}{}\n", "    --version", "print the version",
                      "-h, --help", "print this text");
  text +=
      "\nEach option is also read from AON_<NAME> (AON_NODE_MEMORY=64MiB) and from the TOML file\n"
      "that AON_CONFIG names (node-memory = \"64MiB\"). AON_DISABLE=1 runs the program alone.\n";
  return text;
}

Options read_environment(std::span<const char* const> environment,
                         std::vector<WrongSetting>& wrong) {
  Options options;
  note("default", store_defaults(options), wrong);
  if (!is_disabled_by(find_variable(environment, "AON_DISABLE")))
    store_environment(environment, options, wrong);
  return options;
}

Result<CommandLine> read_command_line(std::span<const char* const> arguments,
                                      std::span<const char* const> environment) {
  Result<RawCommandLine> raw = split_command_line(arguments);
  if (!raw) return raw.error();
  CommandLine line;
  if (raw->wants_help || raw->wants_version) {
    line.action = raw->wants_help ? Action::kHelp : Action::kVersion;
    return line;
  }
  line.program = std::move(raw->rest);
  if (Status status = check_program(line.program); !status) return status.error();
  if (Status status = store_defaults(line.options); !status) return status.error();
  if (is_disabled_by(find_variable(environment, "AON_DISABLE"))) return line;
  std::vector<WrongSetting> wrong;
  store_environment(environment, line.options, wrong);
  if (!wrong.empty()) return Error{Code::kInvalid, wrong.front().message};
  for (const auto& [spec, text] : raw->values) {
    if (Status status = store(*spec, "command line", text, line.options); !status)
      return status.error();
    line.given.emplace_back(spec->name);
  }
  return line;
}

}  // namespace aon
