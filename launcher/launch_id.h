/// Identity of a launch: what all ranks that one mpirun, srun or torchrun started have in common.
/// Derived from the environment alone; PMIx is never called (it would break the application's
/// MPI_Init).
///
/// | launcher          | id                                                       | shared by   |
/// |-------------------|----------------------------------------------------------|-------------|
/// | Open MPI, PMIx    | PMIX_NAMESPACE                                           | all nodes   |
/// | srun              | SLURM_JOB_ID.SLURM_STEP_ID                               | all nodes   |
/// | torchrun          | TORCHELASTIC_RUN_ID.TORCHELASTIC_RESTART_COUNT           | all nodes   |
/// | MPICH's hydra     | hydra-HOST.PORT.GROUP, where its proxies find mpiexec    | all nodes   |
/// | another           | HOST-PID-START of the launcher's process that started us | one node    |
/// | none              | HOST-PID-START of aon-run itself                         | one process |
///
/// Hydra's ports come again: who has such an id must look how old what he finds is.
/// Thread: any.   Cost: a few getenv, one small file of /proc.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace aon::launcher {

/// Value of an environment variable, or null.
using Environment = std::function<const char*(const char*)>;

struct Launch {
  std::string id;             ///< usable as part of a file name
  std::string evidence;       ///< tells two launches with the same id apart; may be empty
  std::string part;           ///< of the launch, usable as part of a file name; may be empty
  std::string part_evidence;  ///< tells parts of the same name of two launches apart
  bool has_launcher = false;
  bool is_of_all_nodes = false;   ///< the id is the same on all of them, and of no other launch
  bool may_come_again = false;    ///< another launch may have the id, some time later
  uint32_t local_rank_count = 0;  ///< on this node, 0 unknown
  uint32_t world_size = 0;        ///< 0 unknown
};

Launch find_launch(const Environment& environment);

/// The same of another process, whose parent is `parent_pid`.
Launch find_launch(const Environment& environment, int32_t pid, int32_t parent_pid);

/// Ranks on node `node` from Slurm's form "4(x2),3"; 0 when it cannot be read.
uint32_t slurm_tasks_of_node(const char* tasks_per_node, uint32_t node);

}  // namespace aon::launcher
