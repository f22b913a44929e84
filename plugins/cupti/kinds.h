/// Which activities are recorded, and switching them on and off.
/// Thread: one at a time.   Cost: a call of CUPTI each.
#pragma once

#include "cupti/library.h"

namespace aon::cupti {

struct Wanted {
  bool has_calls;        ///< launches, copies and waits among the calls of CUDA
  bool has_graph_nodes;  ///< each kernel of a graph, instead of the graph as one
};

/// What the environment asks for: AON_CUPTI_CALLS, AON_CUPTI_GRAPH.
Wanted wanted_kinds();

/// Names of kinds that could not be switched on.
struct MissingKinds {
  static constexpr size_t kMaxText = 128;
  char text[kMaxText];  ///< "" none
};

/// Switches everything on. The code of the kernels' kind; of others the names are in `missing`.
Code enable_kinds(const Client& client, const Wanted& wanted, MissingKinds* missing);
/// Calls of CUDA alone, on or off.
void switch_calls(const Client& client, bool is_on);
void disable_kinds(const Client& client, const Wanted& wanted);

}  // namespace aon::cupti
