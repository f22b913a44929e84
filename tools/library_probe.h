/// Tries whether the dynamic linker finds a library and whether it can be loaded, in a process of
/// its own: a broken library ends that process, not ours, and its threads and exit handlers stay
/// there.
/// Thread: one.   Cost: a fork and what the library's constructors take, at most kProbeTimeoutS.
#pragma once

#include <initializer_list>
#include <string>

namespace aon::tools {

constexpr unsigned kProbeTimeoutS = 10;

struct LibraryProbe {
  std::string name;      ///< the first of the names that loads; empty: none
  std::string problem;   ///< one was found and ended the process that loaded it
  unsigned version = 0;  ///< what `version_function` gave, 0 without one
  // Of probe_cupti(), as open_cupti() has them:
  std::string remark;
  bool is_path_wrong = false;
};

/// `version_function`: name of a function of the library, unsigned f(void); null: none is called.
LibraryProbe probe_library(std::initializer_list<const char*> names,
                           const char* version_function = nullptr);

/// What open_cupti() finds.
LibraryProbe probe_cupti();

}  // namespace aon::tools
