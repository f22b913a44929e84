// Sends and receives of NCCL at level api, of which one end was not called.

#include "tests/unit/hang/nccl_hang_fixture.h"

namespace aon::writers {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class NcclTransfers : public NcclHangs {
 protected:
  explicit NcclTransfers(uint32_t ranks = 4) : NcclHangs(ranks) {}
  void sends(uint32_t from, uint32_t to, uint64_t sequence, uint32_t call) {
    enqueued(
        from,
        {.region = kSend, .sequence = sequence, .call = call, .peer = static_cast<int32_t>(to)});
  }
  void receives(uint32_t to, uint32_t from, uint64_t sequence, uint32_t call) {
    enqueued(to, {.region = kReceive,
                  .sequence = sequence,
                  .call = call,
                  .peer = static_cast<int32_t>(from)});
  }
};

TEST_F(NcclTransfers, a_receive_without_its_send_names_the_pair) {
  receives(0, 1, 0, 0);
  sends(1, 0, 0, 0);
  receives(0, 1, 1, 1);
  quiet(0, {"cudaStreamSynchronize", "main"});
  quiet(1, {"compute", "main"});
  ASSERT_EQ(run().size(), 1u);
  EXPECT_THAT(
      lines(),
      ElementsAre(
          "ncclRecv 2 of world from rank 1 of it: it has not come to the other end, and who "
          "waits is quiet for 5 s; at level api NCCL does not tell what has ended "
          "(AON_NCCL_LEVEL=gpu does)",
          "  have enqueued it: 0", "    0 stands in cudaStreamSynchronize < main (runs)",
          "  rank 1 on n1 (pid 101) has not enqueued ncclSend to it: its last call was "
          "over 5 s ago",
          "    1 stands in compute < main (runs)"));
  EXPECT_EQ(finding(),
            "rank 0 is quiet behind ncclRecv 2 of world from rank 1 of it, rank 1 on n1 (pid 101) "
            "has not enqueued ncclSend to it");
}

TEST_F(NcclTransfers, a_send_without_its_receive_names_the_pair) {
  sends(2, 3, 0, 0);
  quiet(2);
  run();
  EXPECT_EQ(finding(),
            "rank 2 is quiet behind ncclSend 1 of world to rank 3 of it, rank 3 on n1 (pid 103) "
            "has not enqueued ncclRecv from it");
}

TEST_F(NcclTransfers, of_a_chain_the_one_that_does_not_wait_is_in_the_finding) {
  receives(0, 1, 0, 0);
  receives(1, 2, 0, 0);
  receives(2, 3, 0, 0);
  for (uint32_t rank : {0, 1, 2}) quiet(rank);
  EXPECT_EQ(run().size(), 3u);
  EXPECT_EQ(finding(),
            "rank 2 is quiet behind ncclRecv 1 of world from rank 3 of it, rank 3 on n1 (pid 103) "
            "has not enqueued ncclSend to it");
}

TEST_F(NcclTransfers, a_receive_is_surer_than_an_earlier_send) {
  enqueued(0, {.region = kSend, .peer = 1, .time_ns = kEnd - 9 * kSecond});
  receives(2, 3, 0, 0);
  for (uint32_t rank : {0, 2}) quiet(rank);
  ASSERT_EQ(run().size(), 2u);
  EXPECT_EQ(finder_.report().nccl[0].region, kSend);
  EXPECT_THAT(finding(), testing::HasSubstr("ncclRecv 1 of world from rank 3 of it"));
}

TEST_F(NcclTransfers, of_other_bytes_are_told) {
  enqueued(0, {.region = kSend, .peer = 1, .bytes = 64});
  enqueued(1, {.region = kReceive, .peer = 0, .bytes = 128});
  for (uint32_t rank : {0, 1}) quiet(rank);
  ASSERT_EQ(run().size(), 1u);
  EXPECT_EQ(
      finding(),
      "rank 0 is quiet behind ncclSend 1 of world to rank 1 of it, rank 1 on n1 (pid 101) has "
      "called ncclRecv with 128 bytes, not 64");
  EXPECT_THAT(lines(), testing::Contains("  rank 1 on n1 (pid 101) has called ncclRecv with 128 "
                                         "bytes, not 64: one of them is wrong"));
  finder_ = HangFinder();
  expect_same_of_shares();
}

TEST_F(NcclTransfers, of_other_bytes_are_told_by_the_one_that_is_quiet) {
  enqueued(0, {.region = kSend, .peer = 1, .bytes = 64});
  enqueued(1, {.region = kReceive, .peer = 0, .bytes = 128});
  quiet(1);
  ASSERT_EQ(run().size(), 1u);
  EXPECT_THAT(finding(), testing::HasSubstr("has called ncclSend with 64 bytes, not 128"));
}

TEST_F(NcclTransfers, in_flight_of_other_bytes_are_told) {
  in_flight(0, {.region = kSend, .peer = 1, .bytes = 64});
  in_flight(1, {.region = kReceive, .peer = 0, .bytes = 128});
  quiet(0);
  run();
  EXPECT_EQ(finding(),
            "ncclSend 1 of world never ended: rank 0 is in it, rank 1 on n1 (pid 101) has called "
            "ncclRecv with 128 bytes, not 64");
}

TEST_F(NcclTransfers, of_other_bytes_in_another_one_tell_nothing) {
  enqueued(0, {.region = kSend, .peer = 1, .bytes = 64});
  enqueued(1, {.region = kReceive, .peer = 0, .bytes = 64});
  enqueued(1, {.region = kReceive, .sequence = 1, .call = 1, .peer = 0, .bytes = 128});
  quiet(0);
  EXPECT_THAT(run(), IsEmpty());
}

TEST_F(NcclTransfers, all_who_wait_for_one_are_told_together) {
  for (uint32_t rank : {0, 2, 3}) {
    receives(rank, 1, 0, 0);
    quiet(rank);
  }
  ASSERT_EQ(run().size(), 1u);
  EXPECT_THAT(finder_.report().nccl[0].absent, ElementsAre(member(1)));
  EXPECT_EQ(finding(),
            "ranks 0, 2-3 are quiet behind ncclRecv of world from rank 1 of it, rank 1 on n1 (pid "
            "101) has not enqueued ncclSend to it");
}

TEST_F(NcclTransfers, whose_other_end_was_called_accuse_nobody) {
  receives(0, 1, 0, 0);
  sends(1, 0, 0, 0);
  for (uint32_t rank : {0, 1}) quiet(rank);
  EXPECT_THAT(run(), IsEmpty());
}

TEST_F(NcclTransfers, of_who_goes_on_accuse_nobody) {
  receives(0, 1, 0, 0);
  quiet(1);
  EXPECT_THAT(run(), IsEmpty());
}

TEST_F(NcclTransfers, behind_a_hole_accuse_nobody) {
  receives(0, 1, 0, 0);
  quiet(0);
  lose(1, kEnd - 8 * kSecond);
  EXPECT_THAT(run(), IsEmpty());
}

TEST_F(NcclTransfers, that_a_graph_may_make_accuse_nobody) {
  receives(0, 1, 0, 0);
  quiet(0);
  add(1, kNcclGraphCaptured | kNcclNoWork, {.region = kSend, .peer = 0});
  EXPECT_THAT(run(), IsEmpty());
}

TEST_F(NcclTransfers, to_itself_accuse_nobody) {
  sends(0, 0, 0, 0);
  quiet(0);
  EXPECT_THAT(run(), IsEmpty());
}

TEST_F(NcclTransfers, are_told_alike_by_shares) {
  receives(0, 1, 0, 0);
  receives(2, 1, 0, 0);
  sends(3, 0, 0, 0);
  for (uint32_t rank : {0, 2, 3}) quiet(rank);
  expect_same_of_shares();
}

}  // namespace
}  // namespace aon::writers
