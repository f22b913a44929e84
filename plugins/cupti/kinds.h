/// Which activities are recorded, and switching them on and off.
/// Thread: one at a time.   Cost: a call of CUPTI each.
#pragma once

#include "cupti/library.h"

namespace aon::cupti {

struct Wanted {
  bool has_calls;        ///< launches, copies and waits among the calls of CUDA, and external ids
                         ///< that the program gives them
  bool has_graph_nodes;  ///< each kernel of a graph, instead of the graph as one
};

/// Names of kinds that could not be switched on.
struct MissingKinds {
  static constexpr size_t kMaxText = 192;
  char text[kMaxText];  ///< "" none
};

/// `missing` null: nobody wants to know.
void add_missing(MissingKinds* missing, const char* name);
/// Whether this version has the function: a younger one is not missing.
bool is_known_call(const Client& client, int32_t domain, uint32_t function);

/// Graphs as one, which excludes their nodes: once, before a program can have made a graph, and off
/// only with the subscription. The launch of a graph that was made while this was off is the end of
/// the program where it is on (a null pointer in CUPTI of CUDA 13.0, driver 580, seen on an H100).
void enable_graphs(const Client& client, MissingKinds* missing);
void disable_graphs(const Client& client);

/// Switches all else on. The code of the kernels' kind; of others the names are in `missing`, too.
/// Null: it was told before, which spares asking CUPTI for each call whether it is known.
Code enable_kinds(const Client& client, bool has_calls, MissingKinds* missing);
/// Calls of CUDA alone, on or off.
void switch_calls(const Client& client, bool is_on);
void disable_kinds(const Client& client, bool has_calls);

}  // namespace aon::cupti
