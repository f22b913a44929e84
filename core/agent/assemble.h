/// Makes the archive when the launch is over: `aon finalize --from-agent DIR` in a child, with a
/// time limit. The core links no writer.
/// Thread: the keeper.   Errors: told in the outcome; the spool stays as it is.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/agent/config.h"

namespace aon::agent {

struct AssembleOutcome {
  bool is_complete;
  std::string text;      ///< one line; empty when complete
  bool is_busy = false;  ///< somebody else works on the directory
  bool is_hung = false;  ///< what makes it does not even end
};

/// `beat` is called every two seconds meanwhile. `is_marked`: this node is marked as done; when the
/// mark goes before the assembly begins, another node has made the archive.
AssembleOutcome assemble(const Config& config, const std::function<void()>& beat, bool is_marked);

/// Whether another node has called for shares of its assembly, by a plan other than `*last_plan`.
bool is_share_wanted(const Config& config, uint64_t* last_plan);
/// Does the share of this node, until `is_over`. What fails, the other one does itself.
void do_share(const Config& config, const std::function<void()>& beat,
              const std::function<bool()>& is_over);

}  // namespace aon::agent
