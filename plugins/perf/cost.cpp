#include "perf/cost.h"

#include <string>

namespace aon::perf {
namespace {

constexpr uint64_t kVirtualSwitchNs = 2'000;
constexpr uint64_t kSwitchNs = 1'000;
constexpr size_t kFirstCpuBytes = 16384;  ///< of /proc/cpuinfo: the flags of one CPU are in them

}  // namespace

bool is_virtual_machine(const Kernel& kernel) {
  const std::string flags = kernel.read_file("/proc/cpuinfo").substr(0, kFirstCpuBytes);
  return flags.find(" hypervisor") != std::string::npos;
}

uint64_t switch_cost_ns(const Kernel& kernel) {
  return is_virtual_machine(kernel) ? kVirtualSwitchNs : kSwitchNs;
}

}  // namespace aon::perf
