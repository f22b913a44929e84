#include "writers/nccl/bandwidth.h"

#include <array>
#include <limits>
#include <utility>

namespace aon::writers::nccl {
namespace {

constexpr double kNsPerSecond = 1e9;
constexpr double kNotKnown = std::numeric_limits<double>::quiet_NaN();

constexpr std::array<std::pair<std::string_view, Formula>, 35> kFormulas{{
    {"ncclAllReduce", {false, 2}},
    {"ncclReduceScatter", {true, 1}},
    {"ncclAllGather", {true, 1}},
    {"ncclBroadcast", {false, 0}},
    {"ncclReduce", {false, 0}},
    {"ncclAlltoAll", {true, 1}},
    {"ncclGather", {true, 1}},
    {"ncclScatter", {true, 1}},
    {"ncclSend", {false, 0}},
    {"ncclRecv", {false, 0}},
    {"ncclSendRecv", {false, 0}},
    {"MPI_Allreduce", {false, 2}},
    {"MPI_Reduce_scatter_block", {true, 1}},
    {"MPI_Reduce_scatter", {true, 1}},
    {"MPI_Allgather", {true, 1}},
    {"MPI_Allgatherv", {true, 1}},
    {"MPI_Alltoall", {true, 1}},
    {"MPI_Alltoallv", {true, 1}},
    {"MPI_Alltoallw", {true, 1}},
    {"MPI_Iallreduce", {false, 2}},
    {"MPI_Ireduce_scatter_block", {true, 1}},
    {"MPI_Ireduce_scatter", {true, 1}},
    {"MPI_Iallgather", {true, 1}},
    {"MPI_Iallgatherv", {true, 1}},
    {"MPI_Ialltoall", {true, 1}},
    {"MPI_Ialltoallv", {true, 1}},
    {"MPI_Ialltoallw", {true, 1}},
    {"MPI_Allreduce_init", {false, 2}},
    {"MPI_Reduce_scatter_block_init", {true, 1}},
    {"MPI_Reduce_scatter_init", {true, 1}},
    {"MPI_Allgather_init", {true, 1}},
    {"MPI_Allgatherv_init", {true, 1}},
    {"MPI_Alltoall_init", {true, 1}},
    {"MPI_Alltoallv_init", {true, 1}},
    {"MPI_Alltoallw_init", {true, 1}},
}};

}  // namespace

std::optional<Formula> formula_of(std::string_view region) {
  for (const auto& [name, formula] : kFormulas) {
    if (name == region) return formula;
  }
  return std::nullopt;
}

Bandwidth bandwidth(std::string_view region, uint64_t bytes, uint64_t time_ns,
                    uint32_t rank_count) {
  const std::optional<Formula> formula = formula_of(region);
  if (!formula || time_ns == 0) return {kNotKnown, kNotKnown};
  const double ranks = rank_count;
  const double size = static_cast<double>(bytes) * (formula->is_times_ranks ? ranks : 1.0);
  const bool needs_ranks = formula->is_times_ranks || formula->bus_factor != 0;
  if (formula->is_times_ranks && rank_count == 0) return {kNotKnown, kNotKnown};
  const double algorithm = size / (static_cast<double>(time_ns) / kNsPerSecond);
  if (needs_ranks && rank_count == 0) return {algorithm, kNotKnown};
  const double factor = formula->bus_factor == 0 ? 1.0 : formula->bus_factor * (ranks - 1) / ranks;
  return {algorithm, algorithm * factor};
}

}  // namespace aon::writers::nccl
