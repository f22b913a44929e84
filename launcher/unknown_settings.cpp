#include "launcher/unknown_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string>
#include <string_view>

#include "launcher/events.h"

namespace aon::launcher {
namespace {

constexpr size_t kMostNameBytes = 40;  ///< longer ones are near none
constexpr size_t kMostTold = 8;
constexpr size_t kNearCount = 3;

/// What users set beside the options.
constexpr const char* kMoreSettings[] = {
    "AON_CONFIG",     "AON_DISABLE",     "AON_CUPTI_API",         "AON_CUPTI_LIB",
    "AON_NCCL_CHAIN", "AON_NODE_SOCKET", "AON_DEBUG_DIRECTORIES", "AON_SHARE_RECORDS"};

/// What AON, its scripts and their administrators set.
constexpr const char* kOwnVariables[] = {
    "AON_SOCKET",   "AON_OUTPUT_GAVE",  "AON_DOOR",          "AON_DOOR_GAVE", "AON_DOOR_OUTPUT",
    "AON_LEFT_OUT", "AON_STDERR",       "AON_COUNTERS",      "AON_SITE_DIR",  "AON_SAMPLING_TIMER",
    "AON_NODE_DIR", "AON_USER_PRELOAD", "AON_CANARY_PROGRAM"};

std::vector<std::string> all_settings() {
  std::vector<std::string> names;
  for (const OptionSpec& spec : option_table()) names.push_back(environment_name(spec));
  names.insert(names.end(), std::begin(kMoreSettings), std::end(kMoreSettings));
  return names;
}

/// A letter or two are others, words are too many (AON_BUDGET_PERCENT) or letters too few (AON_OUT,
/// AON_NCCL).
bool is_near(std::string_view name, std::string_view setting) {
  constexpr size_t kShortBytes = 8;      // AON_DISK: two other letters make any word of it
  constexpr size_t kBeginningBytes = 7;  // AON_OUT
  const bool is_beginning = name.size() >= kBeginningBytes && setting.starts_with(name);
  const bool has_more = name.starts_with(setting) && name.substr(setting.size()).starts_with('_');
  return is_beginning || has_more ||
         edit_distance(name, setting) <= (setting.size() > kShortBytes ? 2 : 1);
}

/// The name of an entry of environ that may have been meant for AON; else empty.
std::string_view name_of(std::string_view entry) {
  const std::string_view name = entry.substr(0, entry.find('='));
  const bool is_word = std::all_of(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
  return is_word && name.starts_with("AON_") && name.size() <= kMostNameBytes ? name
                                                                              : std::string_view();
}

}  // namespace

std::vector<WrongSetting> unknown_settings(std::span<const char* const> environment) {
  const std::vector<std::string> settings = all_settings();
  std::vector<WrongSetting> unknown;
  for (const char* entry : environment) {
    const std::string_view name = name_of(entry);
    const auto is_name = [&](std::string_view known) { return known == name; };
    if (name.empty() || unknown.size() == kMostTold ||
        std::any_of(settings.begin(), settings.end(), is_name) ||
        std::any_of(std::begin(kOwnVariables), std::end(kOwnVariables), is_name))
      continue;
    std::vector<std::string> near;
    std::copy_if(settings.begin(), settings.end(), std::back_inserter(near),
                 [&](const std::string& setting) { return is_near(name, setting); });
    if (near.empty()) continue;
    unknown.push_back(
        {std::string(name), fmt::format("{} is no setting of AON; near it: {}", name,
                                        fmt::join(nearest_names(name, near, kNearCount), ", "))});
  }
  return unknown;
}

}  // namespace aon::launcher
