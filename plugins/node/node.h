/// The node provider: memory, load and paging of the node (/proc/meminfo, vmstat, stat, loadavg;
/// Documentation/filesystems/proc.rst), the job's control group, and the clocks of its CPUs.
/// Owner: the provider.   Thread: the provider's.   Cost: about 20 files and one per CPU, once a
/// second.
#pragma once

#include <map>
#include <optional>
#include <set>

#include "node/cgroup.h"
#include "node/clocks.h"
#include "node/session.h"

namespace aon::node {

constexpr uint32_t kNodePeriodMs = 1000;

class NodeSession : public Session {
 public:
  NodeSession(System& system, Output output)
      : Session(system, std::move(output)), clocks_(system) {}

  /// The first process tells the control group; each adds the CPUs that it may use.
  void process_started(uint32_t process, pid_t pid) override;

 protected:
  StateText find() override;
  void read() override;

 private:
  /// CPU time of the node as of the last reading, in ticks of the kernel.
  struct CpuTimes {
    uint64_t busy = 0;
    uint64_t all = 0;
  };

  void read_memory();
  void read_paging();
  void read_load();
  void read_cpu_line(std::string_view line);

  Clocks clocks_;
  std::optional<Cgroups> cgroups_;
  std::set<int> job_cpus_;  ///< empty: no process has told, all are meant
  std::optional<CpuTimes> last_;
};

}  // namespace aon::node
