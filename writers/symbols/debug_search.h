/// Where names and lines are looked for beside the file that ran (docs/symbols.md).
#pragma once

#include <string>
#include <vector>

namespace aon::symbols {

struct DebugSearch {
  std::vector<std::string> directories = {"/usr/lib/debug"};  ///< with .build-id and whole paths
  /// Asks the servers of DEBUGINFOD_URLS for what is not there. Only when the user wants it: it is
  /// the network, and tells them what ran.
  bool allows_debuginfod = false;
};

}  // namespace aon::symbols
