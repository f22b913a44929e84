/// How far the clocks of two nodes may be apart.
/// Thread: one.   Cost: two loads.
#pragma once

#include <cstdint>
#include <vector>

#include "writers/writer.h"

namespace aon::writers {

class ClockBounds {
 public:
  explicit ClockBounds(const Model& model)
      : model_(model), edge_of_(model.clock_error_ns.size(), nullptr) {
    for (const clock::ClockEdge& edge : model.cluster.edges) {
      if (edge.is_in_tree) edge_of_[edge.node] = &edge;
    }
  }

  /// That of their edge in the tree, else the sum of both to the reference; kUnknownClockError.
  uint64_t between(uint32_t a, uint32_t b) const {
    if (a == b) return 0;
    if (a >= edge_of_.size() || b >= edge_of_.size()) return kUnknownClockError;
    if (edge_of_[a] != nullptr && edge_of_[a]->peer == b) return edge_of_[a]->error_ns;
    if (edge_of_[b] != nullptr && edge_of_[b]->peer == a) return edge_of_[b]->error_ns;
    const uint64_t error_a_ns = model_.clock_error_ns[a];
    const uint64_t error_b_ns = model_.clock_error_ns[b];
    if (error_a_ns == kUnknownClockError || error_b_ns == kUnknownClockError)
      return kUnknownClockError;
    return error_a_ns + error_b_ns;
  }

 private:
  const Model& model_;
  std::vector<const clock::ClockEdge*> edge_of_;  ///< to the node it leans on
};

}  // namespace aon::writers
