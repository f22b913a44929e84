// Several ranks of a communicator in one process, as programs have them that use all GPUs of a node
// from one.

#include <gtest/gtest.h>

#include <map>

#include "tests/unit/profile/one_rank.h"
#include "writers/nccl/operations.h"

namespace aon::writers::nccl {
namespace {

constexpr uint32_t kLocals[] = {7, 9};  ///< of ranks 0 and 1, the same communicator

class NcclProcessRanks : public testing::Test {
 protected:
  NcclProcessRanks() : model_(test::make_model(1)) {
    model_.regions[7].name = "ncclSend";  // local 3
    model_.regions[6].name = "ncclRecv";  // local 4
    for (const uint32_t rank : {0u, 1u}) {
      process_.communicators[kLocals[rank]].definition.rank = rank;
      model_.groups[0].communicator_map[kLocals[rank]] = 0;
    }
    model_.groups[0].process = &process_;
  }
  static NcclOperation operation(uint32_t rank, uint32_t call) {
    NcclOperation made;
    made.communicator = kLocals[rank];
    made.call = call;
    made.sequence = call;
    made.bytes = 64;
    made.region = 2;
    return made;
  }

  spool::Process process_;
  Model model_;
};

TEST_F(NcclProcessRanks, have_the_times_of_their_own_kernels) {
  constexpr uint32_t kCalls = 3;
  OperationTable table(&model_);
  table.begin(model_.groups[0]);
  for (const uint32_t rank : {0u, 1u}) {
    for (uint32_t call = 0; call < kCalls; ++call) table.add(operation(rank, call));
  }
  for (uint32_t call = 0; call < kCalls; ++call) {
    for (const uint32_t rank : {0u, 1u}) {
      devices::TimedOperation timed{};
      timed.communicator = kLocals[rank];
      timed.region = 2;
      timed.call = call;
      timed.bytes = 64;
      timed.gpu_ns = 100 * (rank + 1) + call;
      timed.shared_by = 1;
      table.add_time(timed);
    }
  }
  table.finish();
  ASSERT_EQ(table.rows().size(), 2 * kCalls);
  for (size_t row = 0; row < table.rows().size(); ++row) {
    const NcclOperation& one = table.rows()[row].operation;
    EXPECT_EQ(one.gpu_ns, 100 * (row / kCalls + 1) + one.call);
    EXPECT_EQ(one.communicator, 0u) << "the same";
  }
}

/// Rank 0 sends, rank 1 receives, and so on in turn.
TEST_F(NcclProcessRanks, have_rows_of_both_ends_of_a_transfer_or_none) {
  OperationTable table(&model_);
  table.begin(model_.groups[0]);
  for (const uint32_t rank : {0u, 1u}) {
    for (uint32_t call = 0; call < kMaxOperationRows; ++call) {
      NcclOperation one = operation(rank, call);
      one.region = call % 2 == rank ? 3 : 4;
      one.sequence = call / 2;
      one.peer = static_cast<int32_t>(1 - rank);
      table.add(one);
    }
  }
  table.finish();
  ASSERT_NE(table.thinning(), 0u);
  std::map<uint32_t, size_t> ends;
  for (const OperationRow& row : table.rows()) ++ends[row.operation.call];
  EXPECT_GT(ends.size(), kMaxOperationRows / 5);
  for (const auto& [call, count] : ends) ASSERT_EQ(count, 2u) << call;
}

}  // namespace
}  // namespace aon::writers::nccl
