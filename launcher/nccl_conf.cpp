#include "launcher/nccl_conf.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "core/base/file.h"

namespace aon::launcher {
namespace {

/// What the first line of `name` says.
std::optional<std::string> value_in(const std::string& path, const std::string& name) {
  const Result<std::string> text = read_text_file(path);
  if (!text) return std::nullopt;
  std::string_view rest = *text;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (line.size() > name.size() && line.substr(0, name.size()) == name &&
        line[name.size()] == '=')
      return std::string(line.substr(name.size() + 1));
  }
  return std::nullopt;
}

std::string users_file(const Environment& environment) {
  const char* named = environment("NCCL_CONF_FILE");
  if (named != nullptr && *named != '\0') return named;
  const char* home = environment("HOME");
  return home == nullptr || *home == '\0' ? std::string() : std::string(home) + "/.nccl.conf";
}

}  // namespace

NcclSetting nccl_file_that_sets(const std::string& name, const Environment& environment,
                                const std::string& system_file) {
  for (const std::string& path : {users_file(environment), system_file}) {
    if (path.empty()) continue;
    const std::optional<std::string> value = value_in(path, name);
    if (value) return value->empty() ? NcclSetting() : NcclSetting{path, *value};
  }
  return {};
}

}  // namespace aon::launcher
