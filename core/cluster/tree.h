/// Whom a node's agent asks for the time: the nodes of a launch, in order of their names, form a
/// tree of kFanOut children each, so that 1250 nodes are at most four hops from the root.
/// Thread: any.   Cost: proportional to the number of nodes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace aon::cluster {

constexpr size_t kFanOut = 8;

/// Of `nodes` (sorted), those that `node` may take as its parent, the best first: its parent in the
/// tree, that one's parent, ..., the root; then every other node before it. The first has none.
/// All come before it in order, so there is no ring.
std::vector<std::string> parent_candidates(const std::vector<std::string>& nodes,
                                           const std::string& node);

}  // namespace aon::cluster
