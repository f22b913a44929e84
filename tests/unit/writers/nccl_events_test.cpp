// Operations of NCCL on their way from records to events.

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/writers/spool_fixture.h"
#include "writers/assemble/event_order.h"

namespace aon::writers {
namespace {

using test::begin_record;
using test::completion_record;
using test::end_record;
using test::nccl_record;
using test::span_record;

/// Runs records through an EventOrder with a clock of 1 tick = 1 ns.
class NcclEvents : public testing::Test {
 protected:
  NcclEvents() {
    for (uint32_t id = 1; id < 4; ++id) regions_[id] = id - 1;
    global_regions_.resize(3, {"region", RegionRole::kFunction, Paradigm::kNccl});
  }

  /// "TIME:enterREGION", ... of all events; operations are kept.
  std::string run(const std::vector<Record>& records) {
    std::string text;
    const std::unordered_map<uint32_t, uint32_t> none;
    EventOrder order(
        clock_, {&regions_, &global_regions_, &none, &none, &none, &none, &none, &none, nullptr},
        &requests_, &open_io_, &outcome_, &tally_, [&](std::span<const Event> events) {
          for (const Event& event : events) text += add(event);
          return Status();
        });
    EXPECT_TRUE(order.add({.records = records, .is_resync = false, .open = {}}).has_value());
    EXPECT_TRUE(order.finish(0).has_value());
    return text;
  }

  std::string add(const Event& event) {
    const std::string time = ' ' + std::to_string(event.time_ns);
    if (event.kind == EventKind::kEnter) return time + ":enter" + std::to_string(event.region);
    if (event.kind == EventKind::kLeave) return time + ":leave" + std::to_string(event.region);
    if (event.kind != EventKind::kNcclCall) return time + ":other";
    operations_.push_back(event.nccl());
    return time + ":nccl";
  }

  clock::ClockMap clock_;
  std::unordered_map<uint32_t, uint32_t> regions_;
  std::vector<GlobalRegion> global_regions_;
  OpenIo open_io_;
  GroupRequests requests_;
  Outcome outcome_;
  LocationTally tally_;
  std::vector<NcclOperation> operations_;
};

TEST_F(NcclEvents, move_and_close_nothing) {
  EXPECT_EQ(
      run({begin_record(1, 5), nccl_record(2, 1, 4, 0, 64), span_record(2, 12, 15, kInsideSpan),
           nccl_record(2, 2, 60, 0, 64), span_record(3, 10, 20), end_record(1, 30)}),
      " 5:enter1 5:nccl 5:nccl 10:enter3 12:enter2 15:leave2 20:leave3 30:leave1");
  EXPECT_EQ(outcome_.clamped_count, 0u);
  EXPECT_EQ(tally_.decoded, 6u);
  EXPECT_EQ(tally_.by_paradigm[static_cast<size_t>(Paradigm::kNccl)], 6u);
}

TEST_F(NcclEvents, have_times_of_their_own) {
  run({nccl_record(2, 100, 160, kNcclGpuTimed, 4096)});
  ASSERT_EQ(operations_.size(), 1u);
  const NcclOperation& told = operations_[0];
  EXPECT_EQ(told.start_ns, 100u);
  EXPECT_EQ(told.end_ns, 160u);
  EXPECT_EQ(told.launch_ns, 101u);
  EXPECT_EQ(told.gpu_begin_ns, 102u);
  EXPECT_EQ(told.gpu_ns, 6u);
  EXPECT_EQ(told.skew_ns, 1u);
  EXPECT_EQ(told.bytes, 4096u);
  EXPECT_EQ(told.sequence, 17u);
  EXPECT_EQ(told.call, 5u);
  EXPECT_EQ(told.region, 2u);
  EXPECT_EQ(told.peer, kNoPeer);
  EXPECT_EQ(told.channels, 2);
  EXPECT_EQ(told.algorithm, NcclAlgorithm::kRing);
  EXPECT_EQ(told.protocol, NcclProtocol::kLl);
  EXPECT_EQ(told.type, NcclType::kFloat32);
}

TEST_F(NcclEvents, without_gpu_times_have_none) {
  run({nccl_record(2, 100, 160, 0, 4096)});
  ASSERT_EQ(operations_.size(), 1u);
  EXPECT_EQ(operations_[0].gpu_begin_ns + operations_[0].gpu_ns + operations_[0].skew_ns, 0u);
}

TEST_F(NcclEvents, of_damaged_records_are_unknown_or_left_out) {
  Record damaged = nccl_record(2, 1, 4, 0, 64);
  damaged.words[1] = UINT64_MAX;
  EXPECT_EQ(run({damaged}), " 0:nccl");
  EXPECT_EQ(operations_[0].algorithm, NcclAlgorithm::kUnknown);
  EXPECT_EQ(operations_[0].protocol, NcclProtocol::kUnknown);
  EXPECT_EQ(operations_[0].type, NcclType::kUnknown);
  Record cut = nccl_record(2, 1, 4, 0, 64);
  cut.head.slot_count = 1;
  EXPECT_EQ(run({cut}), "");
  EXPECT_EQ(outcome_.unmatched_count, 1u);
}

TEST_F(NcclEvents, in_flight_have_what_was_known_when_they_were_enqueued) {
  Record record = nccl_record(2, 100, 160, kNcclGpuTimed, 4096);
  record.head.slot_count = kNcclInFlightSlots;
  record.words[3] = pack_pair(3, kNcclInFlight | kNcclReplayed);
  EXPECT_EQ(run({record}), " 0:nccl");
  const NcclOperation& told = operations_.at(0);
  EXPECT_EQ(told.flags, uint32_t{kNcclInFlight | kNcclReplayed});
  EXPECT_EQ(told.peer, 3);
  EXPECT_EQ(told.sequence, 17u);
  EXPECT_EQ(told.call, 5u);
  EXPECT_EQ(told.gpu_begin_ns + told.gpu_ns, 0u);
}

TEST_F(NcclEvents, of_many_batches_keep_their_operations) {
  std::vector<Record> records;
  for (uint64_t i = 0; i < 3 * kEventBatch; ++i) records.push_back(nccl_record(2, i, i + 1, 0, i));
  run(records);
  ASSERT_EQ(operations_.size(), records.size());
  for (uint64_t i = 0; i < operations_.size(); ++i) ASSERT_EQ(operations_[i].bytes, i);
}

}  // namespace
}  // namespace aon::writers
