#include <fmt/format.h>

#include <charconv>
#include <cstring>

#include "core/base/options.h"

namespace aon {
namespace {

std::string field_text(const OptionSpec& spec, const Options& options) {
  struct Render {
    const Options& options;
    std::string operator()(std::string Options::*f) const { return options.*f; }
    std::string operator()(std::vector<std::string> Options::*f) const {
      return fmt::format("{}", fmt::join(options.*f, ","));
    }
    std::string operator()(uint64_t Options::*f) const { return fmt::format("{}", options.*f); }
    std::string operator()(double Options::*f) const { return fmt::format("{}", options.*f); }
    std::string operator()(bool Options::*f) const { return options.*f ? "1" : "0"; }
  };
  return std::visit(Render{options}, spec.field);
}

bool take_descriptor(std::string_view argument, std::string_view name, int& descriptor) {
  if (!argument.starts_with(name)) return false;
  argument.remove_prefix(name.size());
  std::from_chars(argument.data(), argument.data() + argument.size(), descriptor);
  return true;
}

constexpr std::string_view kAvoided = "--avoided=";
constexpr std::string_view kLeftAlone = "--left-alone=";  ///< PROVIDER:VARIABLE

constexpr std::string_view kWrong = "--wrong-setting=";  ///< VARIABLE:MESSAGE

/// The two parts of a value with a colon behind `name`.
bool take_pair(std::string_view argument, std::string_view name, std::string& first,
               std::string& second) {
  if (!argument.starts_with(name)) return false;
  argument.remove_prefix(name.size());
  const size_t colon = argument.find(':');
  if (colon == std::string_view::npos) return false;
  first = argument.substr(0, colon);
  second = argument.substr(colon + 1);
  return true;
}

bool take_wrong(std::string_view argument, std::vector<WrongSetting>& list) {
  WrongSetting one;
  if (!take_pair(argument, kWrong, one.variable, one.message)) return false;
  list.push_back(std::move(one));
  return true;
}

bool take_left_alone(std::string_view argument, std::vector<LeftAlone>& list) {
  LeftAlone one;
  if (!take_pair(argument, kLeftAlone, one.provider, one.variable)) return false;
  list.push_back(std::move(one));
  return true;
}

}  // namespace

std::vector<std::string> agent_arguments(const AgentArguments& values) {
  std::vector<std::string> arguments{fmt::format("--launch-id={}", values.launch_id),
                                     fmt::format("--listen-fd={}", values.listen_fd),
                                     fmt::format("--lock-fd={}", values.lock_fd)};
  for (const LeftAlone& one : values.left_alone)
    arguments.push_back(fmt::format("{}{}:{}", kLeftAlone, one.provider, one.variable));
  for (const WrongSetting& one : values.wrong)
    arguments.push_back(fmt::format("{}{}:{}", kWrong, one.variable, one.message));
  for (const std::string& program : values.avoided)
    arguments.push_back(fmt::format("{}{}", kAvoided, program));
  for (const OptionSpec& spec : option_table()) {
    const std::string text = field_text(spec, values.options);
    if (spec.is_flag()) {
      if (text == "1") arguments.push_back(fmt::format("--{}", spec.name));
    } else if (!text.empty()) {
      arguments.push_back(fmt::format("--{}={}", spec.name, text));
    }
  }
  return arguments;
}

Result<AgentArguments> read_agent_arguments(std::span<const char* const> arguments) {
  constexpr std::string_view kLaunch = "--launch-id=";
  AgentArguments values;
  std::vector<const char*> shared;
  for (const char* argument : arguments) {
    const std::string_view text(argument);
    if (text.starts_with(kLaunch)) {
      values.launch_id = text.substr(kLaunch.size());
    } else if (text.starts_with(kAvoided)) {
      values.avoided.emplace_back(text.substr(kAvoided.size()));
    } else if (!take_left_alone(text, values.left_alone) && !take_wrong(text, values.wrong) &&
               !take_descriptor(text, "--listen-fd=", values.listen_fd) &&
               !take_descriptor(text, "--lock-fd=", values.lock_fd)) {
      shared.push_back(argument);
    }
  }
  // The rest is aon-run's own syntax with a program name that nobody runs.
  shared.push_back("--");
  shared.push_back("agent");
  Result<CommandLine> line = read_command_line(shared, {});
  if (!line) return line.error();
  if (line->action != Action::kRun || line->program.size() != 1)
    return Error{Code::kInvalid, "aon-agent is started by aon-run; it takes only its options"};
  values.options = std::move(line->options);
  if (values.launch_id.empty() || values.options.output_dir.empty() || values.listen_fd < 0)
    return Error{Code::kInvalid, "aon-agent needs --launch-id, --output and --listen-fd"};
  return values;
}

}  // namespace aon
