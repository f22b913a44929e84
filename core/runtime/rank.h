/// Rank and world of a process as its launcher's environment says, before MPI_Init. A first guess:
/// MPI's own answer replaces it.
///
/// Order, first match wins: torchrun (in its worker), Open MPI, PALS, Flux, MVAPICH2, PMIx, PMI,
/// Slurm. SLURM_PROCID counts only inside a step that srun made: in a batch script, and under an
/// mpirun started by one, it is that of the batch task and the same for every local rank.
#pragma once

#include <cstdint>

namespace aon::runtime {

struct RankInfo {
  int32_t rank = -1;        ///< -1: none
  uint32_t world_size = 0;  ///< 0: unknown
};

/// `read` is getenv, or a table in tests. Allocates nothing.
RankInfo rank_from_environment(const char* (*read)(const char* name));

}  // namespace aon::runtime
