// plugins/mpi/collectives.h: bytes between two groups, where a buffer says nothing of them. And
// plugins/mpi/fortran.h: what a buffer is that a program has not got.
#include <gtest/gtest.h>

#include <vector>

#include "plugins/mpi/collectives.h"
#include "plugins/mpi/fortran.h"

namespace aon::mpi {
namespace {

constexpr Handle kByte = 0x2100;
constexpr uint32_t kPeers = 2;
constexpr uint32_t kOwn = 3;
/// Of two peers; what lies behind them is no count of theirs.
constexpr int kCounts[kPeers + kOwn] = {3, 4, 1000, 1000, 1000};

/// The third of three processes that talk to two, who come first in the union.
class Traffic : public testing::Test {
 protected:
  void SetUp() override {
    before_ = abi;
    queries_before_ = queries;
    abi.in_place = this;
    abi.root = -4;
    abi.proc_null = -2;
    abi.handle_mask = ~Handle{0};
    queries.type_size = [](Handle, int* byte_count) {
      *byte_count = 1;
      return kSuccess;
    };
    c_.kind = CommunicatorKind::kInter;
    c_.local_size = kOwn;
    c_.peer_count = kPeers;
    c_.own_offset = kPeers;
    c_.rank = kPeers + 2;
  }
  void TearDown() override {
    abi = before_;
    queries = queries_before_;
  }

  Communicator c_{};
  Abi before_;
  Queries queries_before_;
};

TEST_F(Traffic, of_a_root_between_groups_is_all_that_the_others_have_whatever_its_own_buffer_is) {
  const mpi::Traffic traffic(&c_);
  const void* place = abi.in_place;
  EXPECT_EQ(traffic.gatherv(place, 0, kByte, kCounts, kByte, abi.root).received, 7u);
  EXPECT_EQ(traffic.scatterv(kCounts, kByte, place, 0, kByte, abi.root).sent, 7u);
  EXPECT_EQ(traffic.gather(place, 0, kByte, 5, kByte, abi.root).received, 10u);
  EXPECT_EQ(traffic.scatter(5, kByte, place, 0, kByte, abi.root).sent, 10u);
  EXPECT_EQ(traffic.reduce(place, 5, kByte, abi.root).received, 10u);
}

TEST_F(Traffic, of_all_between_groups_leaves_nobody_out) {
  const mpi::Traffic traffic(&c_);
  const void* place = abi.in_place;
  const Handle types[] = {kByte, kByte};
  abi.handle_bytes = 8;
  EXPECT_EQ(traffic.allgatherv(place, 5, kByte, kCounts, kByte).received, 7u);
  EXPECT_EQ(traffic.allgatherv(place, 5, kByte, kCounts, kByte).sent, 10u);
  EXPECT_EQ(traffic.alltoallv(place, kCounts, kByte, kCounts, kByte).received, 7u);
  EXPECT_EQ(traffic.alltoallw(place, kCounts, types, kCounts, types).received, 7u);
  EXPECT_EQ(traffic.alltoall(place, 2, kByte, 5, kByte).sent, 4u);
}

/// Its own part may be empty; of two groups nobody needs its own.
TEST_F(Traffic, tells_who_gets_something_from_every_other_process) {
  const auto is_from_all = [&](std::vector<int> counts, Handle type = kByte,
                               bool is_in_place = false) {
    const mpi::Traffic traffic(&c_);
    const std::vector<Handle> types(counts.size(), type);
    const void* send = is_in_place ? abi.in_place : nullptr;
    const int* in = counts.data();
    const bool is_told = traffic.alltoallv(send, in, type, in, type).is_from_all;
    EXPECT_EQ(traffic.alltoallw(send, in, types.data(), in, types.data()).is_from_all, is_told);
    return is_told;
  };
  abi.handle_bytes = 8;
  queries.type_size = [](Handle type, int* byte_count) {
    *byte_count = type == kByte ? 1 : 0;
    return kSuccess;
  };
  EXPECT_FALSE(is_from_all({3, 4}));
  c_.kind = CommunicatorKind::kIntra;
  c_.peer_count = 3;
  c_.rank = 1;
  EXPECT_TRUE(is_from_all({3, 4, 1}));
  EXPECT_TRUE(is_from_all({3, 0, 1}));
  EXPECT_TRUE(is_from_all({3, 7, 1}, kByte, true));
  EXPECT_FALSE(is_from_all({3, 4, 0}));
  EXPECT_FALSE(is_from_all({0, 0, 0}));
  EXPECT_FALSE(is_from_all({3, 4, 1}, kByte + 1)) << "of nothing";
}

/// MPI did not say who its members are, or there was no memory to note it.
TEST_F(Traffic, of_a_communicator_that_is_not_known_is_nothing_or_ones_own) {
  Communicator unknown{};
  const mpi::Traffic traffic(&unknown);
  for (const void* send : {static_cast<const void*>(abi.in_place), static_cast<const void*>(&c_)}) {
    const Bytes all[] = {traffic.allreduce(send, 5, kByte),
                         traffic.reduce(send, 5, kByte, 0),
                         traffic.reduce_scatter(send, kCounts, kByte),
                         traffic.reduce_scatter_block(send, 5, kByte),
                         traffic.scan(send, 5, kByte),
                         traffic.exscan(send, 5, kByte),
                         traffic.gather(send, 5, kByte, 5, kByte, 0),
                         traffic.scatter(5, kByte, send, 5, kByte, 0),
                         traffic.gatherv(send, 5, kByte, kCounts, kByte, 0),
                         traffic.allgather(send, 5, kByte, 5, kByte),
                         traffic.allgatherv(send, 5, kByte, kCounts, kByte),
                         traffic.alltoall(send, 5, kByte, 5, kByte),
                         traffic.alltoallv(send, kCounts, kByte, kCounts, kByte)};
    for (const Bytes& bytes : all) {
      EXPECT_LE(bytes.sent, 5u) << &bytes - all;
      EXPECT_LE(bytes.received, 5u) << &bytes - all;
    }
  }
}

TEST_F(Traffic, of_an_array_that_is_not_allocated_is_not_in_place) {
  const int in_place = 0;
  const int beside[2] = {};
  abi.fortran = {};  // the common block has one spelling in a program
  abi.fortran.in_place = {{nullptr, &in_place}, reinterpret_cast<uint64_t>(&in_place), 0};
  EXPECT_EQ(buffer_at(&in_place), abi.in_place);
  EXPECT_EQ(buffer_at(beside), beside);
  EXPECT_EQ(buffer_at(nullptr), nullptr);
  Status* const none = nullptr;
  abi.status_ignore = abi.statuses_ignore = reinterpret_cast<Status*>(1);
  EXPECT_EQ(status_at(Word{nullptr}), none);
  EXPECT_EQ(statuses_at(nullptr), none);
}

}  // namespace
}  // namespace aon::mpi
