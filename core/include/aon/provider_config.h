/// What a provider's start() is given as `config`: lines "key=value". All providers of a host have
/// the same text, and each reads the keys it knows; docs/provider-abi.md lists them.
/// Depends on nothing.   Thread: any.   Cost: a search through some ten lines.
#pragma once

#include <string>
#include <string_view>

namespace aon {

/// Value of the line of `key`, the first if there are more; empty without one. A key that only ends
/// alike is another one.
inline std::string config_value(std::string_view config, std::string_view key) {
  while (!config.empty()) {
    const std::string_view line = config.substr(0, config.find('\n'));
    if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == '=')
      return std::string(line.substr(key.size() + 1));
    config.remove_prefix(line.size() < config.size() ? line.size() + 1 : line.size());
  }
  return {};
}

}  // namespace aon
