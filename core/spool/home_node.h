/// A process that its agent answered too late writes a file of its own, which is a node of the job
/// beside that of its agent: what is known of the machine stands in the latter.
/// Thread: any.   Cost: a look at the nodes' processes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/spool/job.h"

namespace aon::spool {

/// Of processes with files of their own alone.
inline bool is_own_file(const Node& node) {
  return !node.processes.empty() &&
         std::all_of(node.processes.begin(), node.processes.end(),
                     [](const auto& one) { return one.second.start.fallback != 0; });
}

/// Of the first agent on the machine of `node`; `node` where that is an agent's, or there is none.
inline uint32_t home_node(const Job& job, uint32_t node) {
  if (node >= job.nodes.size() || !is_own_file(job.nodes[node])) return node;
  const auto home = std::find_if(job.nodes.begin(), job.nodes.end(), [&](const Node& one) {
    return one.host == job.nodes[node].host && !is_own_file(one);
  });
  return home == job.nodes.end() ? node : static_cast<uint32_t>(home - job.nodes.begin());
}

}  // namespace aon::spool
