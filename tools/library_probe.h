/// Tries whether the dynamic linker finds a library and whether it can be loaded, in a process of
/// its own: a broken library ends that process, not ours, and its threads and exit handlers stay
/// there.
/// Thread: one.   Cost: a fork and what the library's constructors take, at most kProbeTimeoutS.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

namespace aon::tools {

constexpr unsigned kProbeTimeoutS = 10;

struct LibraryProbe {
  std::string name;      ///< the first of the names that loads; empty: none
  std::string problem;   ///< one was found and ended the process that loaded it
  unsigned version = 0;  ///< what the version function gave, 0 without one
  // Of probe_cupti(), as open_cupti() has them:
  std::string remark;
  bool is_path_wrong = false;
};

/// A function of the library that tells its version.
struct VersionFunction {
  enum Form : uint8_t {
    kReturns,  ///< unsigned f(void)
    kFills,    ///< int f(int* version), 0 on success
  };
  const char* name = nullptr;  ///< null: none is called
  Form form = kReturns;
};
LibraryProbe probe_library(std::initializer_list<const char*> names, VersionFunction function = {});

/// What open_cupti() finds, and its version.
LibraryProbe probe_cupti();

}  // namespace aon::tools
