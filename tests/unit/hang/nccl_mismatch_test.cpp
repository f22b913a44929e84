// Members of a communicator of NCCL that call different things: who, what, and that nobody else is
// accused.

#include "tests/unit/hang/nccl_hang_fixture.h"

namespace aon::writers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class NcclMismatch : public NcclHangs {
 protected:
  explicit NcclMismatch(uint32_t ranks = 4) : NcclHangs(ranks) {}

  const std::vector<NcclDisagreement>& disagreements() {
    run();
    return finder_.report().nccl_disagreements;
  }
  /// All have called one AllReduce, and all are quiet.
  void begin() {
    for (uint32_t rank = 0; rank < 4; ++rank) {
      enqueued(rank, {});
      quiet(rank);
    }
  }
};

TEST_F(NcclMismatch, of_two_operations_in_another_order_is_told_without_times) {
  begin();
  for (const uint32_t rank : {0, 1, 3}) {
    enqueued(rank, {.sequence = 1, .call = 1});
    enqueued(rank, {.region = kAllGather, .call = 2, .bytes = 4096});
  }
  enqueued(2, {.region = kAllGather, .call = 1, .bytes = 4096});
  enqueued(2, {.sequence = 1, .call = 2});
  const auto& found = disagreements();
  EXPECT_THAT(finder_.report().nccl, IsEmpty());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].number, 1u);
  EXPECT_THAT(found[0].camps.at(0).members, ElementsAre(member(0), member(1), member(3)));
  EXPECT_EQ(finding(),
            "collective 2 of world is not the same everywhere: rank 0-1, 3 called ncclAllReduce of "
            "64 bytes, rank 2 called ncclAllGather of 4 096 bytes");
  EXPECT_EQ(lines()[0],
            "collective 2 of world: its members called it differently, one of them is wrong");
  EXPECT_THAT(lines()[1], HasSubstr("  ncclAllReduce of 64 bytes"));
  expect_same_of_shares();
}

TEST_F(NcclMismatch, of_bytes_is_told_without_times) {
  begin();
  for (const uint32_t rank : {0, 1, 2, 3})
    enqueued(rank, {.sequence = 1, .call = 1, .bytes = rank == 3 ? 128u : 64u});
  const auto& found = disagreements();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].camps.at(1).members, ElementsAre(member(3)));
  EXPECT_EQ(found[0].camps[1].shape.bytes, 128u);
}

TEST_F(NcclMismatch, of_roots_is_told_without_times) {
  begin();
  for (const uint32_t rank : {0, 1, 2, 3})
    enqueued(rank, {.region = kAllGather, .call = 1, .peer = rank == 1 ? 3 : 0});
  ASSERT_EQ(disagreements().size(), 1u);
  EXPECT_THAT(finding(), HasSubstr("rank 1 called ncclAllGather with root 3 of 64 bytes"));
}

TEST_F(NcclMismatch, of_roots_is_told_of_what_is_in_flight) {
  for (const uint32_t rank : {0, 1, 2, 3})
    in_flight(rank, {.region = kAllGather, .peer = rank == 1 ? 3 : 0});
  quiet(0);
  ASSERT_EQ(run().size(), 1u);
  EXPECT_TRUE(finder_.report().nccl[0].differs);
  EXPECT_THAT(lines(), testing::Contains("    64 bytes with root 3: 1"));
  EXPECT_THAT(disagreements(), IsEmpty()) << "the hang tells it";
}

TEST_F(NcclMismatch, is_told_though_some_ran_ahead) {
  begin();
  for (uint32_t i = 1; i < 10; ++i) {
    for (const uint32_t rank : {0, 1, 2, 3}) {
      if (rank == 0 && i > 7) continue;
      enqueued(rank, {.sequence = i, .call = i, .bytes = rank == 0 && i == 5 ? 8u : 64u});
    }
  }
  const auto& found = disagreements();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].number, 5u);
}

TEST_F(NcclMismatch, is_none_where_all_called_the_same) {
  begin();
  for (const uint32_t rank : {0, 1, 2, 3}) enqueued(rank, {.sequence = 1, .call = 1});
  EXPECT_THAT(disagreements(), IsEmpty());
  EXPECT_THAT(finding(), IsEmpty());
}

TEST_F(NcclMismatch, is_none_where_nobody_is_quiet) {
  for (const uint32_t rank : {0, 1, 2, 3}) enqueued(rank, {.bytes = rank == 3 ? 128u : 64u});
  EXPECT_THAT(disagreements(), IsEmpty());
}

TEST_F(NcclMismatch, of_transfers_between_the_collectives_is_none) {
  begin();
  enqueued(0, {.region = kSend, .call = 1, .peer = 1});
  enqueued(1, {.region = kReceive, .call = 1, .peer = 0, .bytes = 32});
  for (const uint32_t rank : {0, 1, 2, 3})
    enqueued(rank, {.sequence = 1, .call = rank < 2 ? 2u : 1u});
  EXPECT_THAT(disagreements(), IsEmpty());
}

TEST_F(NcclMismatch, is_not_claimed_of_a_function_with_two_counts) {
  begin();
  for (const uint32_t rank : {0, 1, 2, 3}) {
    for (uint32_t i = 0; i < 3; ++i)
      add(rank, kNcclCopyEngines, {.region = kAllGather, .sequence = i, .call = i + 1});
    enqueued(rank, {.region = kAllGather, .call = 4, .bytes = 32});
    if (rank != 3) enqueued(rank, {.region = kAllGather, .sequence = 1, .call = 5, .bytes = 128});
  }
  EXPECT_THAT(disagreements(), IsEmpty()) << "rank 3 may be one behind";
  EXPECT_THAT(finding(), IsEmpty());
}

TEST_F(NcclMismatch, of_what_copy_engines_do_is_told) {
  begin();
  for (const uint32_t rank : {0, 1, 2, 3})
    add(rank, kNcclCopyEngines, {.region = kAllGather, .call = 1, .bytes = rank == 1 ? 8u : 4u});
  ASSERT_EQ(disagreements().size(), 1u);
  EXPECT_THAT(finder_.report().nccl_disagreements[0].camps.at(1).members, ElementsAre(member(1)));
}

TEST_F(NcclMismatch, is_not_claimed_of_who_has_holes) {
  begin();
  lose(3, kEnd - 4 * kSecond);
  enqueued(3, {.region = kAllGather, .call = 5, .time_ns = kEnd - 3 * kSecond});
  for (const uint32_t rank : {0, 1, 2}) {
    enqueued(rank, {.sequence = 1, .call = 1});
    enqueued(rank, {.region = kAllGather, .call = 2});
  }
  EXPECT_THAT(disagreements(), IsEmpty()) << "the AllReduce may lie in the hole";
}

TEST_F(NcclMismatch, who_went_on_is_told_from_who_did_not_arrive) {
  for (const uint32_t rank : {0, 1, 2, 3}) enqueued(rank, {});
  // One too many of rank 0; 1 and 2 went on without it, 3 has come to nothing since.
  enqueued(0, {.region = kAllGather, .call = 1});
  enqueued(0, {.sequence = 1, .call = 2});
  for (const uint32_t rank : {1, 2}) enqueued(rank, {.sequence = 1, .call = 1});
  for (const uint32_t rank : {0, 1, 2, 3}) quiet(rank);
  run();
  const auto& hangs = finder_.report().nccl;
  const auto extra = std::find_if(hangs.begin(), hangs.end(),
                                  [](const NcclHang& hang) { return hang.region == kAllGather; });
  ASSERT_NE(extra, hangs.end());
  EXPECT_TRUE(extra->is_extra);
  EXPECT_THAT(extra->went_on, ElementsAre(member(1), member(2)));
  HangReport report;
  report.nccl = {*extra};
  report.last_ns.resize(4);
  EXPECT_THAT(nccl_hang_finding(model_, report),
              HasSubstr(", 2 others went on without it, 1 did not arrive"));
  const std::vector<std::string> text = nccl_hang_lines(model_, report, kEnd);
  EXPECT_THAT(text, testing::Contains(HasSubstr("rank 1 on n1 (pid 101) went on without it")));
  EXPECT_THAT(text, testing::Contains(HasSubstr("rank 3 on n1 (pid 103) has not enqueued it")));
}

TEST_F(NcclMismatch, two_wrong_ones_are_not_counted_as_missing) {
  for (const uint32_t rank : {0, 1, 2, 3}) finished(rank, {});
  for (const uint32_t rank : {0, 1}) in_flight(rank, {.sequence = 1, .call = 1});
  for (const uint32_t rank : {2, 3}) in_flight(rank, {.region = kAllGather, .call = 1});
  quiet(0);
  run();
  EXPECT_THAT(finding(), HasSubstr("rank 2 on n1 (pid 102) is in ncclAllGather instead, and 1 more "
                                   "is in another one"));
  EXPECT_THAT(finding(), Not(HasSubstr("did not arrive")));
}

TEST_F(NcclMismatch, of_a_process_with_two_members_is_told_of_the_one) {
  // Rank 3 is the second GPU of the process of rank 2.
  CommunicatorDefinition definition{};
  definition.kind = CommunicatorKind::kNccl;
  definition.rank = 3;
  processes_[3].communicators.clear();
  processes_[2].communicators[6].definition = definition;
  model_.groups[2].communicator_map[6] = 0;
  for (const uint32_t rank : {0, 1}) in_flight(rank, {});
  in_flight(2, {});
  quiet(0);
  ASSERT_EQ(run().size(), 1u);
  EXPECT_THAT(finder_.report().nccl[0].absent, ElementsAre(NcclMember{2, 3}));
  EXPECT_THAT(finder_.report().nccl[0].wrong, IsEmpty());
}

}  // namespace
}  // namespace aon::writers
