// Use of devices in a job whose events are gone through by two processes.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "tests/unit/writers/shares.h"
#include "tests/unit/writers/spool_fixture.h"
#include "writers/assemble/model.h"
#include "writers/devices/devices.h"
#include "writers/devices/summary.h"

namespace aon::writers {
namespace {

constexpr uint32_t kProcesses = 4;
constexpr uint32_t kFirstStep = 2;  // local regions
constexpr uint32_t kSecondStep = 3;
constexpr uint32_t kKernel = 40;
constexpr uint32_t kNcclKernel = 41;

/// Ranks with a device each, and steps of two annotations. Each begins with another one, and the
/// one that takes more time is not that of the lower number.
class DeviceShares : public testing::Test {
 protected:
  DeviceShares() {
    aon::test::NodeSpool node(job_.path(), "n1");
    for (uint32_t process = 0; process < kProcesses; ++process) {
      node.add_process(process, static_cast<int32_t>(process), kProcesses,
                       {{"MPI_Send", RegionRole::kPointToPoint},
                        {"first step", RegionRole::kStep},
                        {"second step", RegionRole::kStep}});
      node.define(process, DefinitionType::kRegion,
                  RegionDefinition{kKernel, RegionRole::kFunction, Paradigm::kCuda, 0}, {"gemm"});
      node.define(process, DefinitionType::kRegion,
                  RegionDefinition{kNcclKernel, RegionRole::kFunction, Paradigm::kCuda, 0},
                  {"ncclDevKernel_AllReduce"});
      node.define(process, DefinitionType::kDeviceStream,
                  DeviceStreamDefinition{1, kNoDevice, 0, 7}, {"CUDA calls"});
      node.define(process, DefinitionType::kDeviceStream, DeviceStreamDefinition{2, 1, 2, 7}, {""});
      node.add_records(process, 1, {aon::test::span_record(1, 1000, 2000)});
    }
    node.finish();
    auto parts = build_model(job_.path(), kDefaultOtf2Locations);
    EXPECT_TRUE(parts.has_value());
    parts_ = std::move(parts).value();
    operation_.launch_ns = 1500;
    operation_.region = kKernel;
    plan_.is_annotated = true;
    plan_.loops.resize(kProcesses);
  }

  static Event event(EventKind kind, uint64_t time_ns, uint32_t region) {
    Event e{};
    e.kind = kind;
    e.time_ns = time_ns;
    e.region = region;
    e.peer = -1;
    e.weight = 1;
    return e;
  }
  static Event work(DeviceOperation operation, uint64_t start_ns, uint64_t end_ns,
                    uint32_t region = kKernel) {
    Event e = event(EventKind::kDeviceWork, start_ns, region);
    e.peer = static_cast<int32_t>(operation);
    e.bytes_received = end_ns - start_ns;
    return e;
  }

  std::vector<Event> events_of(const Location& location) const {
    const uint64_t group = location.group;
    if (location.type == LocationType::kThread) return thread_events(group);
    if (location.type != LocationType::kAcceleratorStream) return {};
    if (location.device == kNoDevice) {
      Event launch = work(DeviceOperation::kOther, 1600, 1700);
      launch.request = 99;
      Event id = work(DeviceOperation::kOther, 1600, 1600);
      set_external_id({ExternalKind::kCustom0, 5 + group}, &id);
      return {id, launch};
    }
    Event nccl = work(DeviceOperation::kKernel, 3000, 4000 + group, kNcclKernel);
    nccl.request = 99;
    return {work(DeviceOperation::kKernel, 1000, 2000 + 100 * group), nccl,
            work(DeviceOperation::kCopy, 8000, 9000)};
  }
  std::vector<Event> thread_events(uint64_t group) const {
    std::vector<Event> events;
    Event call = event(EventKind::kNcclCall, 500, kKernel);
    call.request = reinterpret_cast<uint64_t>(&operation_);
    events.push_back(call);
    for (uint64_t i = 0; i < 8; ++i) {
      const uint32_t step = (i + group) % 2 == 0 ? kFirstStep : kSecondStep;
      const uint64_t begin_ns = 1000 + 1000 * i;
      events.push_back(event(EventKind::kEnter, begin_ns, step));
      events.back().set_value(static_cast<uint32_t>(ValueType::kStep), i);
      events.push_back(event(EventKind::kLeave, begin_ns + (step == kFirstStep ? 200 : 900), step));
    }
    return events;
  }

  /// A meter and the analysis that looks at its rows.
  struct Pair {
    explicit Pair(const DeviceShares& of)
        : meter(make_step_meter(of.plan_, nullptr)),
          analysis(make_device_analysis(of.job_.path(), meter.get())) {}
    test::Line line() const { return {meter.get(), analysis.get()}; }
    std::unique_ptr<StepMeter> meter;
    std::unique_ptr<DeviceAnalysis> analysis;
  };
  test::EventsOf source() const {
    return [this](const Location& location) { return events_of(location); };
  }
  std::vector<std::string> states() const {
    const Pair even(*this);
    const Pair odd(*this);
    return test::run_shares(even.line(), odd.line(), parts_->model, source());
  }

  aon::test::TemporaryFolder job_;
  std::unique_ptr<JobModel> parts_;
  NcclOperation operation_;
  StepPlan plan_;
};

auto fields(const DeviceTimes& t) {
  return std::tie(t.span_ns, t.busy_ns, t.class_ns[0], t.class_ns[1], t.class_ns[2], t.overlap_ns,
                  t.exposed_ns, t.only_copying_ns, t.idle_ns[0], t.idle_ns[1], t.idle_ns[2],
                  t.idle_ns[3], t.idle_ns[4]);
}
void expect_same(const DeviceUse& a, const DeviceUse& b) {
  EXPECT_EQ(std::tie(a.group, a.device, a.kernel_count, a.median_kernel_ns, a.bound),
            std::tie(b.group, b.device, b.kernel_count, b.median_kernel_ns, b.bound));
  EXPECT_EQ(fields(a.times), fields(b.times));
}
void expect_same(const DeviceStep& a, const DeviceStep& b) {
  EXPECT_EQ(std::tie(a.group, a.device, a.loop, a.number, a.begin_ns, a.bound),
            std::tie(b.group, b.device, b.loop, b.number, b.begin_ns, b.bound));
  EXPECT_EQ(fields(a.times), fields(b.times));
}
void expect_same(const LaunchRow& a, const LaunchRow& b) {
  EXPECT_EQ(std::tie(a.group, a.region, a.from, a.count, a.total_ns, a.known_count, a.delay_ns),
            std::tie(b.group, b.region, b.from, b.count, b.total_ns, b.known_count, b.delay_ns));
}
void expect_same(const NcclTime& a, const NcclTime& b) {
  EXPECT_EQ(std::tie(a.group, a.device, a.communicator, a.region, a.start_ns, a.gpu_ns),
            std::tie(b.group, b.device, b.communicator, b.region, b.start_ns, b.gpu_ns));
}
void expect_same(const ExternalIdRow& a, const ExternalIdRow& b) {
  EXPECT_EQ(std::tie(a.group, a.kind, a.id, a.call_count, a.count, a.total_ns),
            std::tie(b.group, b.kind, b.id, b.call_count, b.count, b.total_ns));
}
template <class Row>
void expect_same(const std::vector<Row>& a, const std::vector<Row>& b) {
  EXPECT_FALSE(b.empty());
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) expect_same(a[i], b[i]);
}

TEST_F(DeviceShares, two_find_what_one_process_finds) {
  const Pair whole(*this);
  test::run_whole(whole.line(), parts_->model, source());
  const Pair combiner(*this);
  test::combine(combiner.line(), parts_->model, states());
  const DeviceSummary& a = combiner.analysis->summary();
  const DeviceSummary& b = whole.analysis->summary();
  EXPECT_EQ(b.uses.size(), kProcesses);
  EXPECT_EQ(b.steps.size(), 8 * kProcesses);
  expect_same(a.uses, b.uses);
  expect_same(a.steps, b.steps);
  expect_same(a.launches, b.launches);
  expect_same(a.nccl, b.nccl);
  EXPECT_EQ(b.external_ids.size(), kProcesses);
  expect_same(a.external_ids, b.external_ids);
  EXPECT_EQ(a.unmatched_nccl_count, b.unmatched_nccl_count);
  EXPECT_EQ(a.left_out_step_count, 0u);
}

/// The series of the node are below its first process, whose share is not that of all others.
TEST_F(DeviceShares, counters_of_the_node_reach_the_processes_of_both) {
  constexpr uint64_t kSecond = 1'000'000'000;
  Model& model = parts_->model;
  for (const char* name : {"tensor-active", "dram-active"})
    model.metrics.push_back({.name = std::string("nvml::gpu_GPU-0/gpm/") + name,
                             .unit = "1",
                             .description = "",
                             .provider = "nvml",
                             .mode = MetricMode::kAbsolute,
                             .node_wide = true});
  const auto tensor = static_cast<uint32_t>(model.metrics.size() - 2);
  for (Group& group : model.groups) {
    auto& process = const_cast<spool::Process&>(*group.process);
    process.devices[1];  // its UUID is 32 zeros
  }
  model.metrics[tensor].name = "nvml::gpu_GPU-" + std::string(32, '0') + "/gpm/tensor-active";
  model.metrics[tensor + 1].name = "nvml::gpu_GPU-" + std::string(32, '0') + "/gpm/dram-active";
  Location series = model.locations[0];
  series.type = LocationType::kMetric;
  model.locations.insert(model.locations.begin() + 1, series);

  const test::EventsOf events = [&](const Location& location) -> std::vector<Event> {
    std::vector<Event> made;
    if (location.type == LocationType::kAcceleratorStream && location.device != kNoDevice)
      return {work(DeviceOperation::kKernel, kSecond, 2 * kSecond)};
    for (uint64_t i = 0; location.type == LocationType::kMetric && i <= 30; ++i) {
      for (const uint32_t metric : {tensor, tensor + 1}) {
        made.push_back(event(EventKind::kSample, i * kSecond / 10, metric));
        made.back().bytes = std::bit_cast<uint64_t>(metric == tensor ? 0.2 : 0.8);
      }
    }
    return made;
  };
  for (const bool is_late : {false, true}) {
    if (is_late) {  // the first rank has a file of its own, and the series are below the second
      spool::Node& own = parts_->job.nodes.emplace_back();
      own.host = parts_->job.nodes[0].host;
      own.processes[0].start.fallback = 1;
      model.groups[0].node = 1;
      const auto second = std::find_if(model.locations.begin(), model.locations.end(),
                                       [](const Location& one) { return one.group == 1; });
      std::rotate(model.locations.begin() + 1, model.locations.begin() + 2, second);
      (second - 1)->group = 1;
    }
    const Pair whole(*this);
    test::run_whole(whole.line(), model, events);
    const Pair combiner(*this);
    const Pair even(*this);
    const Pair odd(*this);
    test::combine(combiner.line(), model, test::run_shares(even.line(), odd.line(), model, events));
    for (const Pair* pair : {&whole, &combiner}) {
      ASSERT_EQ(pair->analysis->summary().uses.size(), kProcesses);
      for (const DeviceUse& use : pair->analysis->summary().uses) {
        EXPECT_NEAR(use.units.memory, 0.8, 1e-3) << use.group;
        EXPECT_NEAR(static_cast<double>(use.units.counted_ns), 1e9, 1e6);
      }
    }
  }
}

TEST_F(DeviceShares, steps_have_the_loops_of_the_table_of_steps) {
  const Pair whole(*this);
  test::run_whole(whole.line(), parts_->model, source());
  const StepSummary& steps = *whole.meter->summary();
  ASSERT_EQ(steps.loops.size(), 2u);
  EXPECT_EQ(steps.loops[0].name, "second step") << "of most time";
  for (const DeviceStep& step : whole.analysis->summary().steps) {
    const bool is_first = (step.number + step.group) % 2 == 0;
    EXPECT_EQ(steps.loops[step.loop].name, is_first ? "first step" : "second step");
  }
}

TEST_F(DeviceShares, rows_beyond_the_limits_are_counted) {
  DeviceSummary share;
  share.steps.resize(DeviceAnalysis::kMaxSteps / 2 + 10);
  share.nccl.resize(DeviceAnalysis::kMaxNcclRows / 2 + 3);
  share.left_out_step_count = 5;
  StateOut out;
  devices::save_summary(&out, share);
  DeviceSummary all;
  for (int i = 0; i < 3; ++i) {
    StateIn in(out.bytes());
    ASSERT_TRUE(devices::add_saved(&in, parts_->model, &all));
  }
  EXPECT_EQ(all.steps.size(), DeviceAnalysis::kMaxSteps);
  EXPECT_EQ(all.left_out_step_count, 15 + 3 * share.steps.size() - DeviceAnalysis::kMaxSteps);
  EXPECT_EQ(all.nccl.size(), DeviceAnalysis::kMaxNcclRows);
  EXPECT_EQ(all.left_out_nccl_count, 3 * share.nccl.size() - DeviceAnalysis::kMaxNcclRows);
}

TEST_F(DeviceShares, damage_is_harmless) {
  const Pair whole(*this);
  test::run_whole(whole.line(), parts_->model, source());
  StateOut out;
  out.put(uint32_t{0});  // the group
  out.put(uint64_t{1});  // timelines: node, digits of the UUID, source
  out.put(uint32_t{0});
  out.put(std::string(32, '0'));
  out.put(uint8_t{0});
  devices::UnitTimeline timeline;
  timeline.add(0, 1'000'000'000, {1, 1, 1, 0.9F, 0.1F});
  timeline.save(&out);
  devices::save_summary(&out, whole.analysis->summary());
  const auto make = [&] { return make_device_analysis(job_.path(), nullptr); };
  test::expect_damage_is_harmless(make, parts_->model, out.bytes());
}

}  // namespace
}  // namespace aon::writers
