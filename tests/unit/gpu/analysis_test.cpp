// What the analysis of devices makes of times in which nothing was recorded.
#include <gtest/gtest.h>

#include "tests/unit/writers/spool_fixture.h"
#include "writers/assemble/model.h"
#include "writers/devices/blind_times.h"
#include "writers/devices/devices.h"
#include "writers/devices/launched_work.h"
#include "writers/devices/nccl_kernels.h"

namespace aon::writers {
namespace {

using devices::BlindTimes;

constexpr uint32_t kKernel = 40;
constexpr uint32_t kNcclKernel = 41;
constexpr uint32_t kLaunch = 42;
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
    node.define(0, DefinitionType::kRegion,
                RegionDefinition{kNcclKernel, RegionRole::kFunction, Paradigm::kCuda, 0},
                {"ncclDevKernel_AllReduce_Sum_f32_RING_LL"});
    node.define(0, DefinitionType::kRegion,
                RegionDefinition{kLaunch, RegionRole::kFunction, Paradigm::kCuda, 0},
                {"cuGraphLaunch"});
    node.define(0, DefinitionType::kDeviceStream, DeviceStreamDefinition{1, kNoDevice, 0, 7},
                {"CUDA calls"});
    node.define(0, DefinitionType::kDeviceStream, DeviceStreamDefinition{2, 1, 2, 7}, {""});
    node.define(0, DefinitionType::kDeviceStream, DeviceStreamDefinition{3, kNoDevice, 0, 8},
                {"CUDA calls"});
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

  /// As it was told; it is shown at 50, between its neighbours.
  std::vector<Event> lost(uint64_t begin_ns, uint64_t end_ns) const {
    Event begin = event(EventKind::kLostBegin, 50);
    begin.request = begin_ns;
    begin.bytes_received = end_ns;
    return {begin, event(EventKind::kLostEnd, 50)};
  }

  static constexpr size_t kMaster = 0, kRecords = 1, kCalls = 2, kStream = 3, kMoreCalls = 4;
  test::TemporaryFolder job_;
  std::unique_ptr<JobModel> parts_;
  std::unique_ptr<DeviceAnalysis> analysis_;
};

TEST_F(Analysis, what_the_thread_of_records_lost_is_no_idle_time) {
  give(kMaster, lost(6000, 7000));
  give(kRecords, lost(2100, 2200));
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

TEST_F(Analysis, what_is_missing_is_told_by_cause) {
  Event gap = event(EventKind::kDeviceGap, 500);
  gap.request = 2500;
  Event rest = kernel(4000, 4700);
  rest.peer = static_cast<int32_t>(DeviceOperation::kOther);
  rest.region = kLaunch;
  const_cast<GlobalRegion&>(parts_->model.regions.back()).name = gap_name(GapCause::kBudget);
  analysis_ = make_device_analysis(job_.path(), nullptr);
  EXPECT_TRUE(analysis_->begin(parts_->model));
  std::vector<Event> refused = lost(2100, 2200);
  refused[0].region = static_cast<uint32_t>(LossReason::kPoolFull);
  give(kMaster, {});
  give(kRecords, refused);
  give(kCalls, {rest});
  give(kStream, {gap, kernel(1000, 2000), kernel(3000, 4000)});
  EXPECT_TRUE(analysis_->finish({}));
  const std::vector<UnrecordedTime>& rows = analysis_->summary().unrecorded;
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].cause, GapCause::kBudget);
  EXPECT_EQ(rows[0].total_ns, 700u);
  EXPECT_EQ(rows[1].cause, GapCause::kRing);
  EXPECT_EQ(rows[1].total_ns, 100u);
  EXPECT_EQ(rows[2].cause, GapCause::kLeftOut);
  EXPECT_EQ(rows[2].total_ns, 2000u);
  for (const UnrecordedTime& row : rows)
    EXPECT_EQ(row.process_ns, 2700u) << "what the ring lost was left out as well";
}

/// The timeline of what is not recorded comes behind those of the devices.
TEST_F(Analysis, what_is_missing_is_told_where_there_is_no_room_for_the_work) {
  Event rest = kernel(4000, 4700);
  rest.peer = static_cast<int32_t>(DeviceOperation::kOther);
  rest.region = kLaunch;
  const_cast<GlobalRegion&>(parts_->model.regions.back()).name = gap_name(GapCause::kBudget);
  analysis_ = make_device_analysis(job_.path(), nullptr, 0);
  EXPECT_TRUE(analysis_->begin(parts_->model));
  give(kMaster, {});
  give(kRecords, {});
  give(kCalls, {});
  const std::vector<Event> kernels(1000, kernel(1000, 2000));
  for (size_t count = 0; count <= DeviceAnalysis::kStoreBytes / sizeof(devices::Item);
       count += kernels.size())
    give(kStream, kernels);
  give(kMoreCalls, {rest});
  EXPECT_TRUE(analysis_->finish({}));
  EXPECT_EQ(analysis_->summary().left_out_count, 1u);
  EXPECT_TRUE(analysis_->summary().uses.empty());
  ASSERT_EQ(analysis_->summary().unrecorded.size(), 1u);
  EXPECT_EQ(analysis_->summary().unrecorded[0].total_ns, 700u);
}

/// Each timeline of the process shows the same.
TEST_F(Analysis, a_time_that_is_told_twice_counts_once) {
  Event gap = event(EventKind::kDeviceGap, 500);
  gap.request = 2500;
  give(kMaster, {});
  give(kRecords, {});
  give(kCalls, {gap});
  give(kStream, {gap, kernel(3000, 4000)});
  EXPECT_TRUE(analysis_->finish({}));
  ASSERT_EQ(analysis_->summary().unrecorded.size(), 1u);
  EXPECT_EQ(analysis_->summary().unrecorded[0].count, 1u);
  EXPECT_EQ(analysis_->summary().unrecorded[0].total_ns, 2000u);
}

/// Ten launches, of which some have a kernel of 50 us each.
TEST_F(Analysis, launches_without_a_kernel_are_counted_and_leave_no_verdict) {
  for (const uint32_t kernel_count : {10, 7}) {
    analysis_ = make_device_analysis(job_.path(), nullptr);
    const_cast<GlobalRegion&>(parts_->model.regions.back()).name = "cuLaunchKernel";
    EXPECT_TRUE(analysis_->begin(parts_->model));
    std::vector<Event> calls;
    std::vector<Event> kernels;
    for (uint32_t i = 1; i <= 10; ++i) {
      calls.push_back(kernel(i * 100'000, i * 100'000 + 5'000));
      calls.back().peer = static_cast<int32_t>(DeviceOperation::kOther);
      calls.back().region = kLaunch;
      calls.back().request = i;
      if (i > kernel_count && i != 10) continue;
      kernels.push_back(kernel(i * 100'000 + 8'000, i * 100'000 + 58'000));
      kernels.back().request = i;
    }
    give(kMaster, {});
    give(kRecords, {});
    give(kCalls, calls);
    give(kStream, kernels);
    EXPECT_TRUE(analysis_->finish({}));
    const DeviceUse& use = analysis_->summary().uses.at(0);
    EXPECT_EQ(use.missing_launch_count, kernel_count == 10 ? 0u : 2u);
    const uint64_t unrecorded_ns = idle(use.times, IdleReason::kUnrecorded);
    EXPECT_EQ(unrecorded_ns, kernel_count == 10 ? 0u : 250'000u) << "from kernel 7 to 10";
    EXPECT_EQ(use.bound, kernel_count == 10 ? Bound::kLaunch : Bound::kUnrecorded);
  }
}

TEST_F(Analysis, launches_before_the_first_kernel_that_is_there_are_missing_as_well) {
  analysis_ = make_device_analysis(job_.path(), nullptr);
  const_cast<GlobalRegion&>(parts_->model.regions.back()).name = "cuLaunchKernel";
  EXPECT_TRUE(analysis_->begin(parts_->model));
  std::vector<Event> calls;
  for (uint32_t i = 1; i <= 10; ++i) {
    calls.push_back(kernel(i * 100'000, i * 100'000 + 5'000));
    calls.back().peer = static_cast<int32_t>(DeviceOperation::kOther);
    calls.back().region = kLaunch;
    calls.back().request = i;
  }
  Event last = kernel(1'008'000, 1'058'000);
  last.request = 10;
  give(kMaster, {});
  give(kRecords, {});
  give(kCalls, calls);
  give(kStream, {last});
  EXPECT_TRUE(analysis_->finish({}));
  EXPECT_EQ(analysis_->summary().uses.at(0).missing_launch_count, 9u);
  EXPECT_EQ(analysis_->summary().uses.at(0).bound, Bound::kUnrecorded);
}

/// Kernels of 3 us behind each other's backs, with the id of the call before them.
TEST_F(Analysis, kernels_of_a_graph_are_not_launched_one_by_one) {
  for (const bool is_of_graph : {true, false}) {
    analysis_ = make_device_analysis(job_.path(), nullptr);
    const_cast<GlobalRegion&>(parts_->model.regions.back()).name =
        is_of_graph ? "cuGraphLaunch" : "cuLaunchKernel";
    EXPECT_TRUE(analysis_->begin(parts_->model));
    give(kMaster, {});
    give(kRecords, {});
    std::vector<Event> calls;
    std::vector<Event> kernels;
    for (uint32_t graph = 1; graph <= 10; ++graph) {
      const uint64_t begin_ns = graph * 100'000;
      Event call = kernel(begin_ns, begin_ns + 20'000);
      call.peer = static_cast<int32_t>(DeviceOperation::kOther);
      call.region = kLaunch;
      call.request = graph;
      calls.push_back(call);
      for (uint64_t node = 0; node < 25; ++node) {
        const uint64_t start_ns = begin_ns + 10'000 + node * 3'300;
        kernels.push_back(kernel(start_ns, start_ns + 3'000));
        kernels.back().request = graph;
      }
    }
    give(kCalls, calls);
    give(kStream, kernels);
    EXPECT_TRUE(analysis_->finish({}));
    const DeviceUse& use = analysis_->summary().uses.at(0);
    EXPECT_EQ(use.kernel_count, 250u);
    EXPECT_EQ(use.unknown_launch_count, 0u);
    EXPECT_EQ(use.bound, is_of_graph ? Bound::kDevice : Bound::kLaunch);
  }
}

using devices::NcclKernels;
using devices::TimedOperation;

NcclOperation launched(uint64_t launch_ns, uint32_t call, uint32_t communicator = 1) {
  NcclOperation operation;
  operation.launch_ns = launch_ns;
  operation.call = call;
  operation.communicator = communicator;
  return operation;
}

std::vector<TimedOperation> join(NcclKernels* kernels) {
  std::vector<TimedOperation> joined;
  const Status status = kernels->join([&](const TimedOperation& one) -> Status {
    joined.push_back(one);
    return {};
  });
  EXPECT_TRUE(status.has_value());
  return joined;
}

TEST(NcclKernelsTest, a_kernel_is_that_of_the_launch_before_its_call) {
  constexpr uint64_t kUs = 1000;
  NcclKernels kernels;
  kernels.add_operation(launched(200 * kUs, 2));
  kernels.add_operation(launched(100 * kUs, 1));
  kernels.add_kernel({201 * kUs, 500 * kUs, 900 * kUs, 3});
  kernels.add_kernel({101 * kUs, 150 * kUs, 500 * kUs, 3});
  const std::vector<TimedOperation> joined = join(&kernels);
  ASSERT_EQ(joined.size(), 2u);
  EXPECT_EQ(joined[0].call, 1u);
  EXPECT_EQ(joined[0].start_ns, 150 * kUs);
  EXPECT_EQ(joined[0].gpu_ns, 350 * kUs);
  EXPECT_EQ(joined[1].call, 2u);
  EXPECT_EQ(joined[1].device, 3u);
  EXPECT_EQ(kernels.unmatched_count(), 0u);
}

TEST(NcclKernelsTest, clocks_that_differ_by_a_moment_shift_nothing) {
  NcclKernels kernels;
  for (uint32_t call = 0; call < 3; ++call)
    kernels.add_operation(launched(100'000 + call * 3000, call));
  for (uint64_t i = 0; i < 3; ++i)  // each call seems to be behind the next launch
    kernels.add_kernel({103'500 + i * 3000, 150'000 + i * 1000, 151'000 + i * 1000, 0});
  const std::vector<TimedOperation> joined = join(&kernels);
  ASSERT_EQ(joined.size(), 3u);
  for (uint32_t i = 0; i < 3; ++i) EXPECT_EQ(joined[i].start_ns, 150'000u + i * 1000) << i;
}

TEST(NcclKernelsTest, operations_of_one_launch_share_the_kernel) {
  NcclKernels kernels;
  for (uint32_t call = 0; call < 4; ++call) kernels.add_operation(launched(100'000, call));
  kernels.add_operation(launched(100'000, 0, 2));  // of another communicator: its own launch
  kernels.add_kernel({101'000, 150'000, 250'000, 0});
  kernels.add_kernel({104'000, 250'000, 290'000, 0});
  const std::vector<TimedOperation> joined = join(&kernels);
  ASSERT_EQ(joined.size(), 5u);
  EXPECT_EQ(joined[3].shared_by, 4u);
  EXPECT_EQ(joined[3].gpu_ns, 100'000u);
  EXPECT_EQ(joined[4].shared_by, 1u);
  EXPECT_EQ(joined[4].gpu_ns, 40'000u);
}

TEST(NcclKernelsTest, a_kernel_that_is_not_recorded_leaves_its_operation_alone) {
  constexpr uint64_t kMs = 1'000'000;
  NcclKernels kernels;
  for (uint32_t call = 0; call < 3; ++call)
    kernels.add_operation(launched(call * 10 * kMs + 1, call));
  kernels.add_kernel({1000, 2000, 3000, 0});
  kernels.add_kernel({20 * kMs + 1000, 21 * kMs, 22 * kMs, 0});
  kernels.add_kernel({70 * kMs, 71 * kMs, 72 * kMs, 0});
  const std::vector<TimedOperation> joined = join(&kernels);
  ASSERT_EQ(joined.size(), 2u);
  EXPECT_EQ(joined[1].call, 2u);
  EXPECT_EQ(kernels.unmatched_count(), 1u);
}

TEST(NcclKernelsTest, devices_that_are_launched_for_at_the_same_time_are_told_apart) {
  NcclKernels kernels;
  kernels.add_operation(launched(10'000, 1, 1), 0);  // A
  kernels.add_operation(launched(11'000, 2, 2), 1);  // B, 1 us later, by another thread
  kernels.add_operation(launched(40'000, 3, 3));     // of a device that is not known
  kernels.add_kernel({18'000, 100'000, 101'000, 0});
  kernels.add_kernel({19'000, 200'000, 202'000, 1});
  kernels.add_kernel({42'000, 300'000, 303'000, 2});
  const std::vector<TimedOperation> joined = join(&kernels);
  ASSERT_EQ(joined.size(), 3u);
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(joined[i].call, i + 1);
    EXPECT_EQ(joined[i].device, i);
    EXPECT_EQ(joined[i].start_ns, (i + 1) * 100'000u);
  }
  EXPECT_EQ(kernels.unmatched_count(), 0u);
}

TEST(NcclKernelsTest, what_is_too_much_is_counted) {
  NcclKernels kernels;
  for (size_t i = 0; i < NcclKernels::kMaxOperations + 5; ++i)
    kernels.add_operation(launched(1000 + i, 1));
  EXPECT_EQ(kernels.left_out_count(), 5u);
  kernels.clear();
  EXPECT_EQ(kernels.left_out_count(), 0u);
}

TEST(NcclKernelsTest, what_runs_on_copy_engines_or_is_in_flight_has_no_kernel) {
  NcclKernels kernels;
  NcclOperation operation = launched(1000, 1);
  operation.flags = kNcclCopyEngines;
  kernels.add_operation(operation);
  operation.flags = kNcclInFlight;
  kernels.add_operation(operation);
  kernels.add_operation(launched(0, 1));
  EXPECT_TRUE(kernels.is_empty());
}

TEST(NcclKernelsTest, times_of_any_size_are_harmless) {
  NcclKernels kernels;
  for (const uint64_t ns : {uint64_t{1}, UINT64_MAX, UINT64_MAX - 1, UINT64_MAX / 2})
    kernels.add_operation(launched(ns, 1));
  for (const uint64_t ns : {uint64_t{0}, UINT64_MAX, UINT64_MAX / 2})
    kernels.add_kernel({ns, ns, ns, 0});
  EXPECT_LE(join(&kernels).size(), 4u);
}

class NcclAnalysis : public Analysis {
 protected:
  /// An operation of a communicator of `device`, and the kernel that it launched on device 1,
  /// behind the calls of another thread.
  void run(uint8_t device, uint32_t other_calls = 0) {
    NcclOperation operation = launched(1500, 7);
    operation.sequence = 12;
    operation.bytes = 4096;
    operation.region = kKernel;
    auto& process = const_cast<spool::Process&>(*parts_->model.groups[0].process);
    process.communicators[1].definition.reserved[kNcclDevice] = static_cast<uint8_t>(device + 1);
    Event call = event(EventKind::kNcclCall, 1500);
    call.request = reinterpret_cast<uint64_t>(&operation);
    give(kMaster, {call});
    give(kRecords, {});
    Event launch = event(EventKind::kDeviceWork, 1600);
    launch.peer = static_cast<int32_t>(DeviceOperation::kOther);
    launch.bytes_received = 100;
    launch.request = 99;
    std::vector<Event> calls(other_calls, launch);
    for (uint32_t i = 0; i < other_calls; ++i) calls[i].request = 1000 + i;
    give(kCalls, calls);
    give(kMoreCalls, {launch});
    Event kernel_event = kernel(3000, 4000);
    kernel_event.request = 99;
    kernel_event.region = kNcclKernel;
    give(kStream, {kernel_event});
    ASSERT_TRUE(analysis_->finish({}));
  }
};

TEST_F(NcclAnalysis, operations_have_the_times_of_their_kernel) {
  run(1);
  const std::vector<NcclTime>& rows = analysis_->summary().nccl;
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].call, 7u);
  EXPECT_EQ(rows[0].sequence, 12u);
  EXPECT_EQ(rows[0].bytes, 4096u);
  EXPECT_EQ(rows[0].start_ns, 3000u);
  EXPECT_EQ(rows[0].gpu_ns, 1000u);
}

TEST_F(NcclAnalysis, operations_have_the_times_of_their_kernel_behind_millions_of_calls) {
  run(1, (2u << 20) + 1);
  ASSERT_EQ(analysis_->summary().nccl.size(), 1u);
  EXPECT_EQ(analysis_->summary().nccl[0].gpu_ns, 1000u);
  EXPECT_EQ(analysis_->summary().uses.at(0).unknown_launch_count, 0u);
}

TEST_F(NcclAnalysis, a_kernel_of_another_device_is_none_of_theirs) {
  run(0);
  EXPECT_TRUE(analysis_->summary().nccl.empty());
  EXPECT_EQ(analysis_->summary().unmatched_nccl_count, 1u);
}

}  // namespace
}  // namespace aon::writers
