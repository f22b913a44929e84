// Bandwidths against nccl-tests' formulas, on numbers worked out by hand.

#include "writers/nccl/bandwidth.h"

#include <gtest/gtest.h>

#include <cmath>

namespace aon::writers::nccl {
namespace {

struct Example {
  const char* region;
  uint32_t ranks;
  uint64_t bytes;  ///< as the call has them
  uint64_t time_ns;
  double algorithm_gb_per_s;
  double bus_gb_per_s;
};

// What nccl-tests prints for these sizes: its "size" column is S.
constexpr Example kExamples[] = {
    {"ncclAllReduce", 8, 1'000'000'000, 10'000'000, 100.0, 175.0},
    {"ncclAllReduce", 2, 4'194'304, 100'000, 41.94304, 41.94304},
    {"ncclAllReduce", 4, 1'048'576, 50'000, 20.97152, 31.45728},
    {"ncclReduceScatter", 8, 125'000'000, 10'000'000, 100.0, 87.5},
    {"ncclAllGather", 8, 125'000'000, 10'000'000, 100.0, 87.5},
    {"ncclAllGather", 2, 1'000'000, 100'000, 20.0, 10.0},
    {"ncclBroadcast", 8, 1'000'000'000, 10'000'000, 100.0, 100.0},
    {"ncclReduce", 8, 1'000'000'000, 10'000'000, 100.0, 100.0},
    {"ncclAlltoAll", 4, 250'000'000, 10'000'000, 100.0, 75.0},
    {"ncclGather", 4, 250'000'000, 10'000'000, 100.0, 75.0},
    {"ncclScatter", 4, 250'000'000, 10'000'000, 100.0, 75.0},
    {"ncclSend", 8, 1'000'000'000, 10'000'000, 100.0, 100.0},
    {"ncclRecv", 8, 1'000'000'000, 10'000'000, 100.0, 100.0},
    {"ncclSendRecv", 8, 1'000'000'000, 10'000'000, 100.0, 100.0},
    {"MPI_Allreduce", 8, 1'000'000'000, 10'000'000, 100.0, 175.0},
    {"MPI_Reduce_scatter_block", 8, 125'000'000, 10'000'000, 100.0, 87.5},
    {"MPI_Reduce_scatter", 8, 125'000'000, 10'000'000, 100.0, 87.5},
    {"MPI_Allgatherv", 8, 125'000'000, 10'000'000, 100.0, 87.5},
    {"MPI_Allgather", 8, 125'000'000, 10'000'000, 100.0, 87.5},
    {"MPI_Alltoall", 4, 250'000'000, 10'000'000, 100.0, 75.0},
    {"ncclAllReduce", 1, 1'000'000'000, 10'000'000, 100.0, 0.0},
};

TEST(Bandwidth, is_that_of_nccl_tests_for_every_operation) {
  for (const Example& example : kExamples) {
    const Bandwidth told = bandwidth(example.region, example.bytes, example.time_ns, example.ranks);
    EXPECT_DOUBLE_EQ(told.algorithm_bytes_per_s, example.algorithm_gb_per_s * 1e9)
        << example.region;
    EXPECT_DOUBLE_EQ(told.bus_bytes_per_s, example.bus_gb_per_s * 1e9) << example.region;
  }
}

TEST(Bandwidth, is_not_a_number_where_it_is_not_known) {
  EXPECT_TRUE(std::isnan(bandwidth("ncclAllReduce", 8, 0, 2).algorithm_bytes_per_s));
  EXPECT_TRUE(std::isnan(bandwidth("ncclOther", 8, 8, 2).algorithm_bytes_per_s));
  EXPECT_TRUE(std::isnan(bandwidth("", 8, 8, 2).bus_bytes_per_s));
  EXPECT_TRUE(std::isnan(bandwidth("ncclAllGather", 8, 8, 0).algorithm_bytes_per_s));
}

TEST(Bandwidth, without_a_number_of_ranks_is_what_needs_none) {
  EXPECT_DOUBLE_EQ(bandwidth("ncclBroadcast", 8, 8, 0).bus_bytes_per_s, 1e9);
  EXPECT_DOUBLE_EQ(bandwidth("ncclAllReduce", 8, 8, 0).algorithm_bytes_per_s, 1e9);
  EXPECT_TRUE(std::isnan(bandwidth("ncclAllReduce", 8, 8, 0).bus_bytes_per_s));
}

}  // namespace
}  // namespace aon::writers::nccl
