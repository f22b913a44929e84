/// A process that its agent answered too late writes a file of its own, which is a node of the job
/// beside that of its agent: what is known of the machine stands in the latter.
/// Thread: any.   Cost: a look at all nodes' processes, once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "core/spool/job.h"

namespace aon::spool {

/// Of processes with files of their own alone.
inline bool is_own_file(const Node& node) {
  return !node.processes.empty() &&
         std::all_of(node.processes.begin(), node.processes.end(),
                     [](const auto& one) { return one.second.start.fallback != 0; });
}

/// Of all nodes of a job, which may be as many as its processes.
class HomeNodes {
 public:
  HomeNodes() = default;
  explicit HomeNodes(const Job& job) : homes_(job.nodes.size()) {
    std::map<std::string_view, uint32_t> agents;  // by host, the first
    std::vector<bool> is_own(homes_.size());
    for (uint32_t node = 0; node < homes_.size(); ++node) {
      is_own[node] = is_own_file(job.nodes[node]);
      if (!is_own[node]) agents.try_emplace(job.nodes[node].host, node);
    }
    for (uint32_t node = 0; node < homes_.size(); ++node) {
      const auto agent = agents.find(job.nodes[node].host);
      homes_[node] = is_own[node] && agent != agents.end() ? agent->second : node;
    }
  }

  /// Of the first agent on the machine of `node`; `node` where it is an agent's, or none is there.
  uint32_t of(uint32_t node) const { return node < homes_.size() ? homes_[node] : node; }

 private:
  std::vector<uint32_t> homes_;  ///< by node
};

}  // namespace aon::spool
