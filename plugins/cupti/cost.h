/// What a record costs in the program's calls, by estimate: that of work whose times the device lost
/// costs as much as one that is good.
/// Thread: any.   Signal: safe.   Cost: a few ns.
#pragma once

#include "cupti/parser.h"
#include "cupti/watchdog.h"

namespace aon::cupti {

inline uint64_t cost_of(Parsed parsed, const Work& work) {
  if (parsed == Parsed::kIgnored || work.row != Row::kStream) return kOtherNs;
  if (work.operation == DeviceOperation::kGraph) return kGraphNs;
  return work.graph != 0 ? kNodeNs : kLaunchNs;
}

}  // namespace aon::cupti
