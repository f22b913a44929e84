/// Whether somebody works on a job directory: an agent whose ranks still run, or a finalize.
/// Thread: any.   Cost: one small file per node folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace aon::tools {

struct LiveOwner {
  std::string role;  ///< "agent" or "finalize"
  std::string host;
  int32_t pid = 0;
};

/// Path of the lease of whoever assembles `dir`.
std::string assemble_lease(const std::string& dir);

/// The first live owner in `dir`; `ignored_pid` on this host is not one.
std::optional<LiveOwner> find_live_owner(const std::string& dir, int32_t ignored_pid);

std::string describe(const LiveOwner& owner);

}  // namespace aon::tools
