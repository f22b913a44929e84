// What the analysis of devices makes of times in which nothing was recorded.
#include <gtest/gtest.h>

#include "tests/unit/writers/spool_fixture.h"
#include "writers/assemble/model.h"
#include "writers/devices/blind_times.h"
#include "writers/devices/devices.h"

namespace aon::writers {
namespace {

using devices::BlindTimes;

constexpr uint32_t kKernel = 40;
constexpr uint64_t kTid = 1002;

TEST(BlindTimesTest, are_one_where_they_touch) {
  BlindTimes blind;
  blind.add(300, 400);
  blind.add(100, 200);
  blind.add(150, 250);
  blind.add(400, 450);
  blind.add(600, 600);
  blind.merge();
  ASSERT_EQ(blind.all().size(), 2u);
  EXPECT_EQ(blind.all()[0].begin_ns, 100u);
  EXPECT_EQ(blind.all()[0].end_ns, 250u);
  EXPECT_EQ(blind.overlap_ns(200, 350), 100u);
  EXPECT_EQ(blind.overlap_ns(0, 1000), 300u);
  EXPECT_EQ(blind.overlap_ns(350, 200), 0u);
}

TEST(BlindTimesTest, more_than_are_kept_count_as_one_with_what_is_between) {
  BlindTimes blind;
  constexpr uint64_t kCount = 3 * BlindTimes::kMaxCount;
  for (uint64_t i = 0; i < kCount; ++i) blind.add(10 * i, 10 * i + 5);
  blind.merge();
  EXPECT_LE(blind.all().size(), BlindTimes::kMaxCount);
  EXPECT_GE(blind.overlap_ns(0, 10 * kCount), 5 * kCount) << "never less";
}

/// A rank with a device; thread 2 is the one whose records are the device's.
class Analysis : public testing::Test {
 protected:
  Analysis() {
    test::NodeSpool node(job_.path(), "n1");
    node.add_process(0, 0, 1, {{"MPI_Send", RegionRole::kPointToPoint}});
    node.define(0, DefinitionType::kRegion,
                RegionDefinition{kKernel, RegionRole::kFunction, Paradigm::kCuda, 0}, {"gemm"});
    node.define(0, DefinitionType::kDeviceStream, DeviceStreamDefinition{1, 1, 2, 7}, {""});
    node.add_records(0, 1, {test::span_record(1, 1000, 2000)});
    node.add_records(0, 2, {test::span_record(1, 1000, 2000)});
    node.finish();
    auto parts = build_model(job_.path(), kDefaultOtf2Locations);
    EXPECT_TRUE(parts.has_value());
    parts_ = std::move(parts).value();
    Model& model = parts_->model;
    // The thread's id in the spool is of no interest here: it has the name that tells.
    auto& process = const_cast<spool::Process&>(*model.groups[0].process);
    process.streams[{2, 0}].tid = kTid;
    process.thread_names[kTid] = kDeviceRecordsThread;
    analysis_ = make_device_analysis(job_.path(), nullptr);
    EXPECT_TRUE(analysis_->begin(model));
  }
  void give(size_t location, const std::vector<Event>& events) {
    EXPECT_TRUE(analysis_->begin_location(parts_->model.locations[location]));
    EXPECT_TRUE(analysis_->events(events));
    EXPECT_TRUE(analysis_->end_location());
  }
  Event event(EventKind kind, uint64_t time_ns) const {
    Event e{};
    e.kind = kind;
    e.time_ns = time_ns;
    e.region = kKernel;
    e.peer = -1;
    e.weight = 1;
    return e;
  }
  Event kernel(uint64_t start_ns, uint64_t end_ns) const {
    Event e = event(EventKind::kDeviceWork, start_ns);
    e.peer = static_cast<int32_t>(DeviceOperation::kKernel);
    e.bytes_received = end_ns - start_ns;
    return e;
  }
  const DeviceTimes& times() {
    EXPECT_TRUE(analysis_->finish({}));
    EXPECT_EQ(analysis_->summary().uses.size(), 1u);
    return analysis_->summary().uses.at(0).times;
  }
  static uint64_t idle(const DeviceTimes& times, IdleReason reason) {
    return times.idle_ns[static_cast<size_t>(reason)];
  }

  static constexpr size_t kMaster = 0, kRecords = 1, kStream = 2;
  test::TemporaryFolder job_;
  std::unique_ptr<JobModel> parts_;
  std::unique_ptr<DeviceAnalysis> analysis_;
};

TEST_F(Analysis, what_the_thread_of_records_lost_is_no_idle_time) {
  give(kMaster, {event(EventKind::kLostBegin, 6000), event(EventKind::kLostEnd, 7000)});
  give(kRecords, {event(EventKind::kLostBegin, 2100), event(EventKind::kLostEnd, 2200)});
  give(kStream, {kernel(1000, 2000), kernel(3000, 4000), kernel(8000, 9000)});
  EXPECT_EQ(idle(times(), IdleReason::kUnrecorded), 1000u);
  EXPECT_EQ(idle(times(), IdleReason::kUnknown), 4000u) << "others lose nothing of the device";
}

TEST_F(Analysis, work_that_was_left_out_is_no_idle_time) {
  Event gap = event(EventKind::kDeviceGap, 500);
  gap.request = 2500;
  give(kMaster, {});
  give(kRecords, {});
  give(kStream, {gap, kernel(1000, 2000), kernel(3000, 4000), kernel(8000, 9000)});
  EXPECT_EQ(idle(times(), IdleReason::kUnrecorded), 1000u);
  EXPECT_EQ(idle(times(), IdleReason::kUnknown), 4000u);
}

}  // namespace
}  // namespace aon::writers
