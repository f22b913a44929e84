/// Keeps the kernel's software events in use between processes. The kernel patches its code, on all
/// cores, when the first event of a kind is opened and again when the last one is closed: 70 us for
/// each kind on a virtual machine of two cores, 300 while the other one computes, at each probe and
/// for each process of a script. An event of the agent's own, which counts nothing, spares all but
/// the first time: opening then takes 5 us. It goes when the budget wants less counted: a kind in
/// use is asked about at each of its happenings, on the whole node.
///
/// Owner: the provider.   Thread: the one that makes it.   Cost: one descriptor per kind.
#pragma once

#include <span>
#include <vector>

#include "perf/kernel.h"
#include "perf/table.h"

namespace aon::perf {

class EventsInUse {
 public:
  /// Those of `types` that are of software, as far as this machine has them, and descriptors; no
  /// clocks, which nothing is patched for, and page faults by their two kinds.
  EventsInUse(const Kernel& kernel, std::span<const EventType> types);
  ~EventsInUse();
  EventsInUse(const EventsInUse&) = delete;
  EventsInUse& operator=(const EventsInUse&) = delete;

 private:
  const Kernel& kernel_;
  std::vector<int> events_;
};

}  // namespace aon::perf
