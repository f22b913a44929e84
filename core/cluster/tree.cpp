#include "core/cluster/tree.h"

#include <algorithm>

namespace aon::cluster {

std::vector<std::string> parent_candidates(const std::vector<std::string>& nodes,
                                           const std::string& node) {
  const auto index =
      static_cast<size_t>(std::lower_bound(nodes.begin(), nodes.end(), node) - nodes.begin());
  std::vector<std::string> candidates;
  std::vector<bool> is_ancestor(index);
  for (size_t at = index; at > 0;) {
    at = (at - 1) / kFanOut;
    candidates.push_back(nodes[at]);
    is_ancestor[at] = true;
  }
  for (size_t i = 0; i < index; ++i) {
    if (!is_ancestor[i]) candidates.push_back(nodes[i]);
  }
  return candidates;
}

}  // namespace aon::cluster
