#include "writers/assemble/nccl_spans.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/writers/spool_fixture.h"

namespace aon::writers {
namespace {

constexpr uint32_t kComm = kFirstNcclCommunicator;
constexpr uint32_t kReduce = 1;  // local regions
constexpr uint32_t kSend = 2;
const std::unordered_map<uint32_t, uint32_t> kRegions = {{kReduce, 0}, {kSend, 1}};

/// An operation from `start` to `end` of the host, and of the GPU where it is timed.
Record operation(uint32_t region, uint64_t start, uint64_t end, uint32_t flags,
                 uint32_t communicator = kComm) {
  Record record = test::nccl_record(region, start, end, 0, 64, communicator);
  record.words[0] = start;  // its sequence
  record.words[1] = uint64_t{2} << 32 | 5;
  record.words[3] = start;
  record.words[4] = end - start;
  record.words[5] = pack_pair(3, static_cast<int32_t>(flags));
  return record;
}

class NcclSpansTest : public testing::Test {
 protected:
  /// "B1@10" kNcclBegin, "E1@20" kNcclEnd of the timeline; kEnter and kLeave as "(" and ")".
  std::string replay(uint32_t communicator = kComm) {
    std::string text;
    const auto is_transfer = [](uint32_t region) { return region == kSend; };
    EXPECT_TRUE(spans_.replay(communicator, clock_, kRegions, is_transfer, &outcome_,
                              [&](std::span<const Event> events) {
                                for (const Event& event : events) text += add(event);
                                return Status();
                              }));
    return text;
  }
  std::string add(const Event& event) {
    if (event.kind == EventKind::kEnter) return "(";
    if (event.kind == EventKind::kLeave) return ")";
    if (event.kind == EventKind::kDeviceWork) return " ";
    told_.push_back(event.nccl());
    return (event.kind == EventKind::kNcclBegin ? "B" : "E") + std::to_string(event.region) + "@" +
           std::to_string(event.time_ns);
  }

  test::TemporaryFolder folder_;
  clock::ClockMap clock_;  // one tick per ns
  NcclSpans spans_{folder_.path()};
  Outcome outcome_;
  std::vector<NcclOperation> told_;
};

TEST_F(NcclSpansTest, show_the_times_of_the_gpu_which_the_hosts_push_nowhere) {
  ASSERT_TRUE(spans_.add(operation(kReduce, 300, 400, kNcclGpuTimed)));
  ASSERT_TRUE(spans_.add(operation(kReduce, 100, 200, kNcclGpuTimed)));
  ASSERT_TRUE(spans_.add(operation(kReduce, 150, 350, 0)));  // the host's would push them
  EXPECT_EQ(replay(), " B1@100(E1@200)B1@200E1@300 B1@300(E1@400)");
  EXPECT_EQ(outcome_.device_overlap_count, 0u);
  EXPECT_EQ(told_[0].sequence, 100u);
  EXPECT_EQ(told_[0].call, 5u);
  EXPECT_EQ(told_[0].channels, 2u);
  EXPECT_EQ(told_[0].peer, 3);
  EXPECT_EQ(told_[0].gpu_ns, 100u);
}

TEST_F(NcclSpansTest, without_any_show_the_hosts_which_are_no_regions_of_a_profile) {
  ASSERT_TRUE(spans_.add(operation(kReduce, 100, 200, 0)));
  ASSERT_TRUE(spans_.add(operation(kReduce, 150, 250, 0)));
  EXPECT_EQ(replay(), "B1@100E1@200B1@200E1@250");
  EXPECT_EQ(outcome_.device_overlap_count, 0u);
  EXPECT_EQ(outcome_.event_count, 4u);
}

/// Of a count of calls the bits above 32 are those above the flags.
TEST_F(NcclSpansTest, collectives_come_in_the_order_of_more_calls_than_32_bits_count) {
  Record second = operation(kReduce, 300, 400, kNcclGpuTimed);
  second.words[1] = uint64_t{2} << 32;
  second.words[5] |= uint64_t{1} << kNcclHighCallShift;
  Record first = operation(kReduce, 100, 200, kNcclGpuTimed);
  first.words[1] |= UINT32_MAX;
  ASSERT_TRUE(spans_.add(second));
  ASSERT_TRUE(spans_.add(first));
  EXPECT_EQ(replay(), " B1@100(E1@200) B1@300(E1@400)");
  EXPECT_EQ(outcome_.device_overlap_count, 0u);
  ASSERT_EQ(told_.size(), 4u);
  EXPECT_EQ(told_[0].call, UINT32_MAX);
  EXPECT_EQ(told_[2].call, uint64_t{1} << 32);
  EXPECT_EQ(told_[2].flags, uint32_t{kNcclGpuTimed});
  EXPECT_EQ(told_[2].channels, 2u);
}

/// The host is ahead of the GPU, and the budget lowers and raises the level.
TEST_F(NcclSpansTest, collectives_come_in_the_order_of_their_calls) {
  const auto called = [](uint32_t call, uint64_t start, uint64_t end, uint32_t flags) {
    Record record = operation(kReduce, start, end, flags);
    record.words[1] = uint64_t{2} << 32 | call;
    return record;
  };
  ASSERT_TRUE(spans_.add(called(3, 30, 40, 0)));
  ASSERT_TRUE(spans_.add(called(4, 500, 600, kNcclGpuTimed)));
  ASSERT_TRUE(spans_.add(called(2, 20, 30, 0)));
  ASSERT_TRUE(spans_.add(called(1, 300, 400, kNcclGpuTimed)));
  EXPECT_EQ(replay(), " B1@300(E1@400)B1@400E1@400B1@400E1@400 B1@500(E1@600)");
  std::vector<uint32_t> calls;
  for (size_t i = 0; i < told_.size(); i += 2) calls.push_back(told_[i].call);
  EXPECT_EQ(calls, (std::vector<uint32_t>{1, 2, 3, 4}));
  EXPECT_EQ(told_[2].flags & kNcclGpuTimed, 0u);
  EXPECT_EQ(outcome_.device_overlap_count, 0u);
  EXPECT_EQ(spans_.left_out_count(), 0u);
}

TEST_F(NcclSpansTest, of_a_store_that_failed_are_counted) {
  ASSERT_TRUE(spans_.add(operation(kReduce, 300, 400, kNcclGpuTimed)));
  ASSERT_TRUE(spans_.add(operation(kReduce, 100, 200, 0)));
  spans_.drop();
  ASSERT_TRUE(spans_.add(operation(kReduce, 500, 600, 0)));
  EXPECT_EQ(spans_.unsorted_count(), 3u);
  EXPECT_EQ(replay(), "");
  spans_.restart();
  EXPECT_EQ(spans_.unsorted_count(), 3u);
  EXPECT_EQ(spans_.left_out_count(), 0u) << "for want of room below --disk";
}

TEST_F(NcclSpansTest, transfers_lie_in_each_other_and_collectives_in_nothing) {
  ASSERT_TRUE(spans_.add(operation(kSend, 100, 400, kNcclGpuTimed)));
  ASSERT_TRUE(spans_.add(operation(kSend, 150, 300, kNcclGpuTimed)));
  ASSERT_TRUE(spans_.add(operation(kReduce, 350, 380, kNcclGpuTimed)));
  EXPECT_EQ(replay(), " B2@100( B2@150(E2@300)E2@400) B1@400(E1@400)");
  EXPECT_EQ(outcome_.device_overlap_count, 1u);
}

TEST_F(NcclSpansTest, what_did_not_run_or_never_ended_is_not_shown) {
  ASSERT_TRUE(spans_.add(operation(kReduce, 100, 200, kNcclGraphCaptured)));
  ASSERT_TRUE(spans_.add(operation(kReduce, 100, 200, kNcclInFlight | kNcclAbandoned)));
  EXPECT_EQ(replay(), "");
}

/// Others may not be told of it, and their collectives would be matched with others of theirs.
TEST_F(NcclSpansTest, what_nccl_does_not_count_is_not_shown) {
  ASSERT_TRUE(spans_.add(operation(kReduce, 100, 200, kNcclReplayed | kNcclUncounted)));
  ASSERT_TRUE(spans_.add(operation(kReduce, 300, 400, kNcclReplayed | kNcclGpuTimed)));
  EXPECT_EQ(replay(), " B1@300(E1@400)");
  EXPECT_EQ(spans_.restart(), 1u);
  EXPECT_EQ(spans_.restart(), 0u);
}

TEST_F(NcclSpansTest, communicators_are_told_apart_and_wild_numbers_do_no_harm) {
  Record wild = operation(kReduce, 500, 600, kNcclGpuTimed, kComm + 1);
  wild.words[4] = UINT64_MAX;
  wild.words[1] = UINT64_MAX;
  wild.head.id = 77;
  ASSERT_TRUE(spans_.add(wild));
  ASSERT_TRUE(spans_.add(operation(kReduce, 100, 200, 0)));
  EXPECT_EQ(replay(), "B1@100E1@200");
  EXPECT_NE(replay(kComm + 1).find("B4294967295@500"), std::string::npos);
  EXPECT_EQ(told_.back().algorithm, NcclAlgorithm::kUnknown);
  EXPECT_EQ(replay(kComm + 2), "");
}

TEST_F(NcclSpansTest, leave_out_what_ends_before_their_window) {
  spans_.begin_window(75);
  for (const uint64_t i : {8u, 0u, 7u, 1u, 2u, 6u})
    ASSERT_TRUE(spans_.add(operation(kReduce, 10 * i, 10 * i + 5, 0)));
  EXPECT_EQ(spans_.left_out_count(), 4u);
  replay();
  ASSERT_EQ(told_.size(), 4u);
  EXPECT_EQ(told_[0].start_ns, 70u);
  EXPECT_EQ(told_[2].start_ns, 80u);
}

TEST_F(NcclSpansTest, have_no_larger_file_than_they_may_whatever_comes) {
  NcclSpans small(folder_.path(), 0, 3 * sizeof(NcclSpan));
  EXPECT_EQ(small.most_count(), 2u);
  for (uint64_t i = 0; i < 9; ++i)
    ASSERT_TRUE(small.add(operation(kReduce, 10 * i, 10 * i + 5, 0)));
  EXPECT_EQ(small.left_out_count(), 7u);
}

}  // namespace
}  // namespace aon::writers
