/// Programs that died in AON's own code, or that somebody added: from then on this version of AON
/// leaves them alone. One list per user, $XDG_CONFIG_HOME/aon/avoid or ~/.config/aon/avoid, a line
/// for each:
///
///     VERSION <tab> YYYY-MM-DD <tab> MODULE+0xOFFSET <tab> PROGRAM
///
/// The agent adds to it (core/service/crash_log.h); aon-run and the agent look into it; `aon avoid`
/// shows it and takes programs out. Another version of AON tries them again.
/// A file that another user owns or may write is not used.
/// Thread: any.   Cost: one small file.   Errors: a list that cannot be read avoids nothing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace aon {

struct AvoidedProgram {
  std::string version;  ///< of AON
  std::string date;     ///< ISO 8601, UTC
  std::string place;    ///< of the crash: "libaon-mpi.so+0x1a2b"; empty: none, it was added
  std::string program;  ///< absolute path, links resolved
};

/// `program` as the list, aon-run and the agent know it: links resolved, as far as it is there.
std::string resolved_program(const std::string& program);

class AvoidList {
 public:
  /// Of this user, by the environment or else by his account; "" where there is no home.
  static std::string default_path();

  explicit AvoidList(std::string path) : path_(std::move(path)) {}

  /// All entries, of other versions, too.   Errors: kInvalid for a file that others may write; kIo.
  Result<std::vector<AvoidedProgram>> read() const;
  /// The entry of `program` for this version, if there is one. Never fails: see above.
  bool holds(std::string_view program, AvoidedProgram* found = nullptr) const;
  /// Adds `program`, once for a version.   Errors: kInvalid for names with tabs or line ends; kIo.
  Status add(const std::string& program, const std::string& place);
  /// Takes `program` out, whatever the version.   Errors: kNotFound; kIo.
  Status remove(const std::string& program);

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace aon
