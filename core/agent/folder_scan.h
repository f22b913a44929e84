/// What earlier agents of the same launch left in the spool folder. Thread: any, at start.
#pragma once

#include <aon/definition.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace aon::agent {

/// The first process number that no file and no definition in `folder` uses; 0 for a new folder.
uint32_t next_process_number(const std::string& folder);

/// Of the node's own, which has no number that is given anew: where it stands.
struct NodeStand {
  struct Count {
    double value;
    uint64_t enabled_ns;
    uint64_t running_ns;
  };
  /// By slot and context. `committed` is not below what the blocks have.
  std::map<std::pair<uint16_t, uint16_t>, StreamDefinition> streams;
  std::map<uint32_t, Count> counts;  ///< of accumulated metrics
  UsageDefinition usage{};
};

/// All zero for a new folder. What is damaged is left out.   Cost: the node's definitions, and its
/// blocks from the last one back to where each metric was seen.
NodeStand read_node_stand(const std::string& folder);

}  // namespace aon::agent
