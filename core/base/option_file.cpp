#include "core/base/option_file.h"

#include <fcntl.h>

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/base/unique_fd.h"

#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

namespace aon {
namespace {

/// A scalar as text; empty optional for a table or an array.
std::optional<std::string> scalar_text(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return fmt::format("{}", number->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "1" : "0";
  return std::nullopt;
}

std::optional<std::string> node_text(const toml::node& node) {
  const toml::array* items = node.as_array();
  if (items == nullptr) return scalar_text(node);
  std::string text;
  for (const toml::node& item : *items) {
    const std::optional<std::string> part = scalar_text(item);
    if (!part) return std::nullopt;
    text += text.empty() ? *part : "," + *part;
  }
  return text;
}

/// toml++ reads a folder or an endless device as an empty file, waits for ever for who writes a
/// pipe (which one process alone could read), and does not say why it cannot open a file.
Status check_file(const std::string& path) {
  struct stat status {};
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd || fstat(fd.get(), &status) != 0)
    return Error{Code::kInvalid, fmt::format("AON_CONFIG: {}: {}", path, strerror(errno))};
  if (S_ISDIR(status.st_mode))
    return Error{Code::kInvalid,
                 fmt::format("AON_CONFIG: {} is a directory; expected a TOML file", path)};
  const bool is_null = S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3);
  if (!S_ISREG(status.st_mode) && !is_null)
    return Error{Code::kInvalid,
                 fmt::format("AON_CONFIG: {} is no regular file; expected a TOML file", path)};
  return {};
}

}  // namespace

Result<std::vector<FileSetting>> read_option_file(const std::string& path) {
  if (Status status = check_file(path); !status) return status.error();
  std::vector<FileSetting> settings;
  try {
    const toml::table table = toml::parse_file(path);
    for (const auto& [key, node] : table) {
      const std::optional<std::string> text = node_text(node);
      if (!text)
        return Error{Code::kInvalid, fmt::format("{}:{}: '{}' is a table; expected name = value",
                                                 path, node.source().begin.line, key.str())};
      settings.push_back({std::string(key.str()), *text});
    }
  } catch (const toml::parse_error& error) {
    return Error{Code::kInvalid, fmt::format("{}:{}: {} (AON_CONFIG names this file)", path,
                                             error.source().begin.line, error.description())};
  }
  return settings;
}

}  // namespace aon
