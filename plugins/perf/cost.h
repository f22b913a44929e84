/// What the kernel's events cost the threads that they watch. It cannot be measured in place: these
/// are prices, and how often they are paid is counted.
/// Thread: any.   Cost: reads /proc/cpuinfo.
#pragma once

#include <cstdint>

#include "perf/kernel.h"

namespace aon::perf {

bool is_virtual_machine(const Kernel& kernel);

/// By how much a context switch takes longer where one of its threads has events of one provider:
/// the kernel stops them all and starts them again. Measured with two processes that take turns on
/// one CPU of a virtual machine, 2.0 us each without: 0.9 us with one software event, 1.8 with six,
/// 2.0 with a clock that samples. On bare metal no timer has to be asked of a hypervisor.
uint64_t switch_cost_ns(const Kernel& kernel);

/// By how much a page fault takes longer where minor and major ones are counted: 60 to 70 ns of
/// 1160 (120 where "page-faults" is counted beside them).
constexpr uint64_t kFaultNs = 70;

}  // namespace aon::perf
