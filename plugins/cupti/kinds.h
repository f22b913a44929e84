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

/// Switches everything on. The code of the kernels' kind; others may be missing.
Code enable_kinds(const Backend& backend, const Functions& cupti, const Wanted& wanted);
void disable_kinds(const Backend& backend, const Functions& cupti, const Wanted& wanted);

}  // namespace aon::cupti
