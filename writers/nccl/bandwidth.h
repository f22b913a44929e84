/// Bandwidth of collectives as nccl-tests states it (its doc/PERFORMANCE.md):
///
///     algbw = S / t      busbw = algbw * f      with n ranks
///
/// | operation                       | S in terms of a call's bytes | f             |
/// |---------------------------------|------------------------------|---------------|
/// | ncclAllReduce                   | bytes                        | 2 (n - 1) / n |
/// | ncclReduceScatter, ncclAllGather | bytes n                     | (n - 1) / n   |
/// | ncclBroadcast, ncclReduce       | bytes                        | 1             |
/// | ncclAlltoAll, ncclGather,       | bytes n                      | (n - 1) / n   |
/// | ncclScatter                     |                              |               |
/// | ncclSend, ncclRecv, ncclSendRecv | bytes                       | 1             |
///
/// The same for MPI_Allreduce, MPI_Reduce_scatter(_block), MPI_Allgather(v) and MPI_Alltoall(v, w),
/// their non-blocking and persistent forms.
///
/// "A call's bytes" are those of NcclOperation: what one rank sends, of ReduceScatter what it
/// receives. busbw does not depend on the algorithm; with NVLS or CollNet it may exceed the speed
/// of a link, which is why the algorithm stands beside it.
/// Thread: any.   Cost: none.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace aon::writers::nccl {

/// How an operation's bytes become the S and the f above.
struct Formula {
  bool is_times_ranks;  ///< S is n times a call's bytes
  uint32_t bus_factor;  ///< f is that many (n - 1) / n; 0: f is 1
};

/// Of the region "ncclAllReduce" and so on; nullopt: no such operation.
std::optional<Formula> formula_of(std::string_view region);

struct Bandwidth {
  double algorithm_bytes_per_s;
  double bus_bytes_per_s;
};

/// NaN both where they are not defined: an unknown operation, no time, a number of ranks that is
/// needed and not known (0).
Bandwidth bandwidth(std::string_view region, uint64_t bytes, uint64_t time_ns, uint32_t rank_count);

}  // namespace aon::writers::nccl
