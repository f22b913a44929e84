// Which work of a device is sorted where not all of it fits: the newest, as much as has room.
#include "writers/assemble/span_window.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "core/spool/files.h"
#include "tests/unit/writers/spool_fixture.h"
#include "writers/assemble/device_spans.h"
#include "writers/assemble/model.h"

namespace aon::writers {
namespace {

using test::NodeSpool;
using test::TemporaryFolder;

constexpr uint32_t kStream = 3;
constexpr uint32_t kCommunicator = 0x10005;
constexpr size_t kMemoryBytes = 1024 * DeviceSpans::kSpanBytes;

Record kernel(uint64_t start, uint64_t end) {
  Record record{};
  record.head.start_ticks = start;
  record.head.duration_ticks = static_cast<uint32_t>(end - start);
  record.head.kind = RecordKind::kDeviceSpan;
  record.head.slot_count = 2;
  record.head.id = 1;
  record.head.a32 = kStream;
  return record;
}

/// A process whose spans two threads tell, half each; they come in no order within 64.
class SpanWindowTest : public testing::Test {
 protected:
  void make(uint64_t count) {
    job_.emplace();
    records_.clear();
    NodeSpool node(job_->path(), "n1");
    node.add_process(0, 0, 1, {{"MPI_Send", RegionRole::kPointToPoint}});
    node.define(0, DefinitionType::kDeviceStream, DeviceStreamDefinition{kStream, 1, 2, 7}, {""});
    node.define(0, DefinitionType::kDeviceStream, DeviceStreamDefinition{kCommunicator, 1, 2, 8},
                {""});
    for (uint16_t thread = 0; thread < 2; ++thread) {
      std::vector<Record> records;
      for (uint64_t i = thread * count / 2; i < (thread + 1) * count / 2; ++i) {
        const uint64_t place = i / 64 * 64 + (i * 37) % 64;
        const uint64_t at = 1000 + place * 20 + (i % 2) * 7;
        records.push_back(kernel(at, at + 5));
        if (i % 4 == 0) records.push_back(test::nccl_record(1, at, at + 5, 0, 64, kCommunicator));
      }
      node.add_records(0, static_cast<uint16_t>(1 + thread), records);
      records_.push_back(std::move(records));
    }
    node.finish();
    parts_ = std::move(build_model(job_->path(), kDefaultOtf2Locations).value());
  }

  const spool::Process& process() const { return parts_->job.nodes[0].processes.at(0); }

  SpanWindow window(const SpanRoom& room) const {
    const auto index =
        spool::ProcessIndex::build(parts_->job.nodes[0].folder, 0, parts_->segments[0].at(0));
    EXPECT_TRUE(index.has_value());
    const auto found = find_span_window(*index, process(), room, [] {});
    EXPECT_TRUE(found.has_value());
    return *found;
  }

  /// Times of the kernels that a file of `max_file_bytes` leaves.
  std::vector<uint64_t> kept(uint64_t max_file_bytes) {
    DeviceSpans spans(job_->path(), max_file_bytes, kMemoryBytes);
    spans.begin_window(window({spans.most_count(), UINT64_MAX}).device_ticks);
    uint64_t count = 0;
    for (const std::vector<Record>& records : records_) {
      for (const Record& record : records) {
        if (record.head.kind != RecordKind::kDeviceSpan) continue;
        EXPECT_TRUE(spans.add(record));
        ++count;
      }
    }
    std::vector<uint64_t> times;
    Outcome outcome;
    EXPECT_TRUE(spans.replay(kStream, {}, {{1, 0}}, &outcome, [&](auto events) {
      for (const Event& event : events)
        if (event.kind == EventKind::kDeviceWork) times.push_back(event.time_ns);
      return Status();
    }));
    EXPECT_EQ(times.size() + spans.left_out_work_count(), count);
    EXPECT_LE(times.size(), spans.most_count());
    return times;
  }

  std::optional<TemporaryFolder> job_;
  std::vector<std::vector<Record>> records_;
  std::unique_ptr<JobModel> parts_;
};

TEST_F(SpanWindowTest, keeps_nearly_all_that_there_is_room_for_and_more_with_more) {
  constexpr uint64_t kCount = 20'000;
  make(kCount);
  size_t before = 0;
  for (uint64_t room = 0; room <= 24'000; room += 400) {
    const std::vector<uint64_t> times = kept(room * DeviceSpans::kSpanBytes);
    const uint64_t most = std::min(kCount, std::max<uint64_t>(room, 1023));
    // Of each thread the run in which the window begins is left out whole.
    EXPECT_GE(times.size() + 2 * (kSpanRun + 64), most) << room;
    EXPECT_GE(times.size(), before) << room;
    before = times.size();
    // They are the newest ones, none of those in between is missing.
    ASSERT_FALSE(times.empty());
    EXPECT_GE(times.front() + 20 * (times.size() + 64), 1000 + 20 * kCount) << room;
  }
  EXPECT_EQ(before, kCount);
}

TEST_F(SpanWindowTest, whatever_their_number_as_many_are_kept) {
  for (const uint64_t count : {900, 1023, 1024, 1025, 1100, 1500, 2048, 2100, 3000, 5000, 9999}) {
    SCOPED_TRACE(count);
    make(count);
    EXPECT_GE(kept(0).size(), std::min<uint64_t>(count, 1023 - 2 * (kSpanRun / 2 + 64)));
  }
}

TEST_F(SpanWindowTest, of_operations_of_nccl_is_their_own) {
  make(8000);
  const SpanWindow both = window({4000, 1000});
  EXPECT_GT(both.device_ticks, 1000u + 20 * 4000);
  EXPECT_GT(both.nccl_ticks, 1000u + 20 * 4000);
  EXPECT_LT(both.nccl_ticks, 1000u + 20 * 6100);
  const SpanWindow all = window({8000, 2000});
  EXPECT_EQ(all.device_ticks, 0u);
  EXPECT_EQ(all.nccl_ticks, 0u);
}

TEST(LeftOutSpans, are_told_by_what_they_are) {
  EXPECT_TRUE(left_out_lines({}).empty());
  EXPECT_THAT(left_out_lines({74'887, 74'908, 0}),
              testing::ElementsAre(testing::StartsWith(
                  "74 887 kernels, copies, sets and graphs, the oldest, are left out, and "
                  "74 908 calls and waits for devices: sorting them would not fit below --disk")));
  EXPECT_THAT(left_out_lines({0, 12, 3}),
              testing::ElementsAre(testing::StartsWith("12 calls and waits for devices"),
                                   testing::StartsWith("3 operations of NCCL")));
  EXPECT_THAT(left_out_lines({0, 0, 0, 7}),
              testing::ElementsAre(testing::AllOf(testing::StartsWith("7 records of work"),
                                                  testing::HasSubstr("the disk is full"))));
}

}  // namespace
}  // namespace aon::writers
