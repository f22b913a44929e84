/// Whether processes of two nodes of a job ran on one machine: of one agent, or of files of their
/// own beside it. Two agents are two machines, whatever they are called.
/// Thread: any.   Cost: none; see HomeNodes.
#pragma once

#include "core/spool/home_node.h"

namespace aon::spool {

/// Where there is no agent for their files, machines are told apart by name.
inline bool is_same_machine(const Job& job, const HomeNodes& homes, uint32_t a, uint32_t b) {
  const uint32_t home_a = homes.of(a);
  const uint32_t home_b = homes.of(b);
  if (home_a == home_b) return true;
  const auto is_homeless = [&](uint32_t home) {
    return home < job.nodes.size() && is_own_file(job.nodes[home]);
  };
  return is_homeless(home_a) && is_homeless(home_b) &&
         job.nodes[home_a].host == job.nodes[home_b].host;
}

}  // namespace aon::spool
