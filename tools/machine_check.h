/// What `aon doctor` finds: one line per ability of this machine, with the command that would
/// enable it. Checks only look or try on this very process; nothing is changed.
/// Thread: one.   Cost: some milliseconds; 3 s at most for looking at processes, and 2 s where the
/// counters of RAPL do not count.
#pragma once

#include <aon/perf_refusal.h>

#include <string>
#include <vector>

#include "core/provider/names.h"

namespace aon::tools {

struct LibraryProbe;

enum class Ability { kYes, kLimited, kNo };

struct Check {
  std::string name;
  Ability ability;
  std::string detail;
  std::string remedy;  ///< empty when there is nothing to do, or nothing that can be done
};

/// Operating system: clock, counters, shared memory, sockets, limits (machine_check.cpp).
std::vector<Check> check_system();
/// What the agent measures time with, by its own rule on these texts: /proc/cpuinfo, the current
/// clock source and the available ones.
Check check_clock(const std::string& cpu_info, const std::string& current,
                  const std::string& available);
/// What opening an event of perf on this process gave. `good`: the detail where it can be counted;
/// `paranoid_level` as the kernel writes it, "" where it cannot be read.
Check check_events(const std::string& name, const std::string& good, int error_number,
                   PerfReach reach, const std::string& paranoid_level);
/// Libraries of others: MPI, GPU, topology (library_check.cpp).
std::vector<Check> check_libraries();
/// What there is to say of CUPTI. `are_counters_restricted`: the driver leaves counters of GPUs to
/// administrators, and this process is of none.
/// `driver_version` by cuDriverGetVersion(), 0 not known.
Check check_cupti(const LibraryProbe& library, bool are_counters_restricted,
                  unsigned driver_version = 0);
/// `plugin`: why NCCL does not load ours, and what helps.
Check check_nccl(const LibraryProbe& library, const provider::Exclusion& plugin = {});
Check check_cuda_driver(const LibraryProbe& library);
/// Who has CUPTI's subscription and the counters of GPUs, or would (cupti_holders.cpp). To be asked
/// while this process has no other threads.
std::vector<Check> check_cupti_holders();
/// What each provider of the node can do here, in its own words (provider_check.cpp).
std::vector<Check> check_providers();

}  // namespace aon::tools
