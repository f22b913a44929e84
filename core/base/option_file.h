/// The TOML file of options: `name = value` with the names of the option table, strings, numbers,
/// booleans and arrays of strings. Read by one thread at start.
/// Errors: file and line of the first mistake.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"

namespace aon {

/// One setting, its value as the text that the command line would have.
struct FileSetting {
  std::string name;
  std::string text;
};

Result<std::vector<FileSetting>> read_option_file(const std::string& path);

}  // namespace aon
