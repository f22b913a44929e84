/// What records cost in the program's calls, by estimate: that of work whose times the device lost
/// costs as much as one that is good.
/// Thread: any.   Signal: safe.   Cost: a few ns.
#pragma once

#include "cupti/parser.h"
#include "cupti/watchdog.h"

namespace aon::cupti {

/// Work of a graph that is recorded node by node.
inline bool is_node(const Work& work) {
  return work.row == Row::kStream && work.operation != DeviceOperation::kGraph && work.graph != 0;
}

inline uint64_t cost_of(Parsed parsed, const Work& work) {
  if (parsed == Parsed::kIgnored || work.row != Row::kStream) return kOtherNs;
  if (work.operation == DeviceOperation::kGraph) return kGraphNs;
  return is_node(work) ? kNodeNs : kLaunchNs;
}

/// Records that were read.
struct RecordCounts {
  uint64_t all = 0;
  uint64_t calls = 0;   ///< of CUDA, and external ids of these
  uint64_t nodes = 0;   ///< work of graphs, each by itself
  uint64_t graphs = 0;  ///< recorded as one
};

/// What it saves to leave calls out: in the program's calls and of the CPU time of the threads that
/// handle records.
inline uint64_t spared_ns(const RecordCounts& counts, uint64_t threads_cpu_ns) {
  if (counts.all == 0) return 0;
  const double share = static_cast<double>(counts.calls) / static_cast<double>(counts.all);
  return counts.calls * kOtherNs +
         static_cast<uint64_t>(share * static_cast<double>(threads_cpu_ns));
}

}  // namespace aon::cupti
