/// The control groups (v1 and v2) that a process is in, and what they count. Slurm's job is found
/// by its name, job_N, in the path: what its steps and tasks are in is below it.
///
/// Sources: Documentation/admin-guide/cgroup-v2.rst (memory.current, cpu.stat, *.pressure) and
/// Documentation/admin-guide/cgroup-v1 (memory.usage_in_bytes, cpu.stat, cpuacct.usage).
/// Owner: a session.   Thread: the provider's.   Cost: 5 to 8 files of 5 us a reading.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "node/output.h"
#include "node/system.h"

namespace aon::node {

class Cgroups {
 public:
  /// Finds those of `pid` below the mounts that we see.
  Cgroups(const System& system, pid_t pid);

  bool empty() const { return !memory_ && !cpu_ && !accounting_; }
  void read(Output& output) const;

 private:
  struct Group {
    std::string folder;  ///< where its files are
    std::string where;   ///< at the end of its descriptions: which group, or all of the node
    bool is_v2 = false;
  };
  struct Mount {
    std::string root;
    std::string folder;
    std::string options;
    bool is_v2;
  };

  std::vector<Mount> mounts() const;
  std::string where(const Mount& mount, const std::string& folder, const std::string& path) const;
  std::optional<Group> group_of(const std::string& membership, const std::string& controller,
                                const std::vector<std::string>& files);
  void read_memory(Output& output) const;
  void read_cpu(Output& output) const;
  void read_pressure(Output& output) const;

  const System* system_;
  std::optional<Group> memory_;
  std::optional<Group> cpu_;
  std::optional<Group> accounting_;  ///< v1: CPU time is in a group of its own
};

}  // namespace aon::node
