// What counters of a device say about a time: means, and what bounds its work.
#include "writers/devices/unit_use.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <span>

#include "writers/devices/devices.h"

namespace aon::writers {
namespace {

using devices::class_of;
using devices::UnitSample;
using devices::UnitTimeline;
using devices::UnitUses;

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kSecond = 1000 * kMs;
constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

uint64_t of(const UnitUse& use, UnitClass what) { return use.class_ns[static_cast<size_t>(what)]; }

TEST(UnitClassTest, follows_the_documented_thresholds) {
  const auto what = [](float graphics, float sm, float compute, float memory) {
    return class_of({graphics, sm, 0.5F, compute, memory});
  };
  EXPECT_EQ(what(0.04F, 0.04F, 0.04F, 0), UnitClass::kIdle);
  EXPECT_EQ(what(1, 1, 0.9F, 0.3F), UnitClass::kCompute);
  EXPECT_EQ(what(1, 1, 0.3F, 0.9F), UnitClass::kMemory);
  EXPECT_EQ(what(1, 1, 0.85F, 0.8F), UnitClass::kBalanced);
  EXPECT_EQ(what(1, 1, 0.85F, 0.65F), UnitClass::kCompute);
  EXPECT_EQ(what(1, 1, 0.55F, 0.59F), UnitClass::kLatency);
  EXPECT_EQ(what(1, 0.4F, 0.3F, 0.1F), UnitClass::kSmallGrids);
  EXPECT_EQ(what(1, kNone, 0.3F, 0.1F), UnitClass::kLatency);
}

TEST(UnitClassTest, is_of_the_time_in_which_the_device_works) {
  EXPECT_EQ(class_of({0.5F, 0.5F, 0.5F, 0.45F, 0.1F}), UnitClass::kCompute);
  EXPECT_EQ(class_of({0.5F, 0.2F, 0.5F, 0.1F, 0.1F}), UnitClass::kSmallGrids);
  EXPECT_EQ(class_of({kNone, 0.5F, 0.5F, 0.1F, 0.45F}), UnitClass::kMemory);
  EXPECT_EQ(class_of({kNone, kNone, kNone, 0.9F, 0.1F}), UnitClass::kIdle) << "nothing tells";
}

constexpr UnitSample kComputing = {1, 1, 0.5F, 0.9F, 0.2F};
constexpr UnitSample kStreaming = {1, 0.8F, 0.3F, 0.1F, 0.8F};

TEST(UnitTimelineTest, has_the_means_of_each_time) {
  UnitTimeline timeline;
  for (uint64_t i = 0; i < 20; ++i)
    timeline.add(i * 100 * kMs, (i + 1) * 100 * kMs, i < 10 ? kComputing : kStreaming);
  const UnitUse first = timeline.use_of(0, kSecond - 20 * kMs);
  EXPECT_NEAR(static_cast<double>(first.counted_ns), 0.98e9, 1e6);
  EXPECT_NEAR(first.compute, 0.9, 1e-4);
  EXPECT_NEAR(first.memory, 0.2, 1e-4);
  EXPECT_NEAR(first.sm_active, 1, 1e-4);
  EXPECT_NEAR(first.occupancy, 0.5, 1e-4);
  EXPECT_EQ(of(first, UnitClass::kCompute), first.counted_ns);
  const UnitUse both = timeline.use_of(0, 2 * kSecond);
  EXPECT_NEAR(both.compute, 0.5, 1e-3);
  EXPECT_NEAR(static_cast<double>(of(both, UnitClass::kMemory)), 1e9, 2e7) << "within a bucket";
  const UnitUse outside = timeline.use_of(3 * kSecond, 4 * kSecond);
  EXPECT_EQ(outside.counted_ns, 0u);
}

TEST(UnitTimelineTest, the_mean_of_occupancy_is_of_the_samples_that_have_it) {
  UnitTimeline timeline;
  UnitSample without = kComputing;
  without.occupancy = kNone;
  for (uint64_t i = 0; i < 100; ++i)
    timeline.add(i * 100 * kMs, (i + 1) * 100 * kMs, i == 50 || i >= 80 ? without : kComputing);
  const UnitUse all = timeline.use_of(0, 10 * kSecond);
  EXPECT_NEAR(all.occupancy, 0.5, 1e-4);
  EXPECT_NEAR(all.compute, 0.9, 1e-4);
  EXPECT_TRUE(std::isnan(timeline.use_of(9 * kSecond, 10 * kSecond).occupancy)) << "none has it";
  StateOut out;
  timeline.save(&out);
  UnitTimeline other;
  StateIn in(out.bytes());
  ASSERT_TRUE(other.load(&in));
  EXPECT_EQ(other.use_of(0, 10 * kSecond).occupancy, all.occupancy);
  const uint64_t late_ns = UnitTimeline::kMaxBuckets * UnitTimeline::kFirstWidthNs;
  other.add(late_ns, late_ns + 100 * kMs, without);  // buckets are joined
  EXPECT_NEAR(other.use_of(0, 10 * kSecond).occupancy, 0.5, 1e-4);
}

TEST(UnitTimelineTest, tells_nothing_of_what_is_shorter_than_its_samples) {
  UnitTimeline timeline;
  EXPECT_EQ(timeline.use_of(0, kSecond).counted_ns, 0u);
  for (uint64_t i = 0; i < 10; ++i) timeline.add(i * 100 * kMs, (i + 1) * 100 * kMs, kComputing);
  EXPECT_EQ(timeline.use_of(0, 99 * kMs).counted_ns, 0u);
  EXPECT_NE(timeline.use_of(0, 100 * kMs).counted_ns, 0u);
}

TEST(UnitTimelineTest, becomes_coarser_instead_of_longer) {
  UnitTimeline timeline;
  constexpr uint64_t kStart = 1'700'000'123 * kSecond;
  constexpr uint64_t kCount = 100'000;  // 10 000 s
  for (uint64_t i = 0; i < kCount; ++i) {
    timeline.add(kStart + i * 100 * kMs, kStart + (i + 1) * 100 * kMs,
                 i < kCount / 2 ? kComputing : kStreaming);
  }
  const UnitUse all = timeline.use_of(kStart, kStart + 10'000 * kSecond);
  EXPECT_NEAR(static_cast<double>(all.counted_ns) * 1e-9, 10'000, 10);
  EXPECT_NEAR(all.compute, 0.5, 0.01);
  const UnitUse late = timeline.use_of(kStart + 6000 * kSecond, kStart + 6100 * kSecond);
  EXPECT_NEAR(late.memory, 0.8, 0.01);
  EXPECT_EQ(timeline.use_of(kStart, kStart + kSecond).counted_ns, 0u) << "too short by now";
  StateOut out;
  timeline.save(&out);
  EXPECT_LE(out.bytes().size(), UnitTimeline::kMaxBuckets * 48 + 64);
  UnitTimeline other;
  StateIn in(out.bytes());
  ASSERT_TRUE(other.load(&in));
  EXPECT_EQ(other.use_of(kStart, kStart + 10'000 * kSecond).counted_ns, all.counted_ns);
}

TEST(UnitTimelineTest, takes_no_damaged_state) {
  UnitTimeline timeline;
  timeline.add(0, kSecond, kComputing);
  StateOut out;
  timeline.save(&out);
  std::string bytes = out.bytes();
  std::fill(bytes.begin(), bytes.begin() + 8, '\0');  // the width
  StateIn in(bytes);
  UnitTimeline other;
  EXPECT_FALSE(other.load(&in));
}

constexpr uint8_t kUuid[16] = {0x5d, 0x2c, 0xff, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
constexpr const char* kDevice = "gpu_GPU-5d2cff00-0102-0304-0506-0708090a0b0c/";
constexpr uint32_t kOrdinal = 1;

/// Two nodes with a process each that has the device of that UUID.
class UnitUsesTest : public testing::Test {
 protected:
  UnitUsesTest() {
    job_.nodes.resize(2);
    std::copy(std::begin(kUuid), std::end(kUuid), process_.devices[kOrdinal].definition.uuid);
    process_.device_streams[1];
    model_.job = &job_;
    for (uint32_t id = 0; id < 2; ++id) {
      Group group{};
      group.id = id;
      group.node = id;
      group.process = &process_;
      model_.groups.push_back(group);
    }
  }
  uint32_t metric(const char* provider, const std::string& name) {
    GlobalMetric made;
    made.provider = provider;
    made.name = std::string(provider) + "::" + name;
    model_.metrics.push_back(made);
    return static_cast<uint32_t>(model_.metrics.size() - 1);
  }
  void sample(uint32_t id, uint64_t time_ns, double value) {
    Event event{};
    event.kind = EventKind::kSample;
    event.time_ns = time_ns;
    event.region = id;
    event.bytes = std::bit_cast<uint64_t>(value);
    uses_.add(event);
  }

  spool::Job job_;
  spool::Process process_;
  Model model_{};
  UnitUses uses_;
};

TEST_F(UnitUsesTest, know_gpm_of_a_process_with_a_file_of_its_own) {
  const uint32_t tensor = metric("nvml", std::string(kDevice) + "gpm/tensor-active");
  const uint32_t memory = metric("nvml", std::string(kDevice) + "gpm/dram-active");
  const uint32_t graphics = metric("nvml", std::string(kDevice) + "gpm/graphics-active");
  job_.nodes[1].processes[0].start.fallback = 1;
  const auto counted_ns_on = [&](const std::string& host) {
    job_.nodes[1].host = host;
    uses_ = UnitUses();
    uses_.begin(model_);
    uses_.begin_location(0);
    for (uint64_t i = 10; i <= 20; ++i) {
      for (const uint32_t id : {tensor, memory, graphics}) sample(id, i * 100 * kMs, 0.5);
    }
    uses_.end_location();
    return uses_.find(model_.groups[1], kOrdinal).use_of(kSecond, 2 * kSecond).counted_ns;
  };
  EXPECT_EQ(counted_ns_on("another"), 0u);
  EXPECT_GT(counted_ns_on(job_.nodes[0].host), 0u);
}

TEST_F(UnitUsesTest, know_gpm_by_the_uuid_of_the_device) {
  const uint32_t tensor = metric("nvml", std::string(kDevice) + "gpm/tensor-active");
  const uint32_t fp32 = metric("nvml", std::string(kDevice) + "gpm/fp32-active");
  const uint32_t memory = metric("nvml", std::string(kDevice) + "gpm/dram-active");
  const uint32_t graphics = metric("nvml", std::string(kDevice) + "gpm/graphics-active");
  const uint32_t other = metric("nvml", "gpu_GPU-1/gpm/tensor-active");
  const uint32_t power = metric("nvml", std::string(kDevice) + "nvml/power");
  uses_.begin(model_);
  uses_.begin_location(1);
  for (uint64_t i = 10; i <= 20; ++i) {
    const uint64_t time_ns = i * 100 * kMs;
    sample(graphics, time_ns, 1);
    sample(other, time_ns, 0.1);
    sample(tensor, time_ns, 0.2);
    sample(fp32, time_ns, 0.7);
    sample(power, time_ns, 700);
    sample(memory, time_ns, 0.4);
  }
  uses_.end_location();
  const UnitUse use = uses_.find(model_.groups[1], kOrdinal).use_of(kSecond, 2 * kSecond);
  EXPECT_NEAR(static_cast<double>(use.counted_ns), 1e9, 2e7) << "the last one as well";
  EXPECT_NEAR(use.compute, 0.7, 1e-4) << "the busiest pipe";
  EXPECT_NEAR(use.memory, 0.4, 1e-4);
  EXPECT_TRUE(std::isnan(use.occupancy));
  EXPECT_EQ(bound_of(Bound::kDevice, use), Bound::kCompute);
  EXPECT_EQ(uses_.find(model_.groups[0], kOrdinal).use_of(kSecond, 2 * kSecond).counted_ns, 0u);
  EXPECT_EQ(uses_.find(model_.groups[1], 7).use_of(kSecond, 2 * kSecond).counted_ns, 0u);
}

/// With a --budget of 0.05 the driver is asked each 5 s; a sample is the mean of all of them.
TEST_F(UnitUsesTest, a_sample_of_a_slow_pace_is_of_all_its_time) {
  const uint32_t tensor = metric("nvml", std::string(kDevice) + "gpm/tensor-active");
  const uint32_t memory = metric("nvml", std::string(kDevice) + "gpm/dram-active");
  uses_.begin(model_);
  uses_.begin_location(0);
  for (uint64_t second = 1000; second <= 1600; second += second < 1100 ? 5 : 500) {
    sample(tensor, second * kSecond, 0.7);
    sample(memory, second * kSecond, 0.4);
  }
  uses_.end_location();
  const UnitUses::Device device = uses_.find(model_.groups[0], kOrdinal);
  EXPECT_NEAR(static_cast<double>(device.use_of(1000 * kSecond, 1100 * kSecond).counted_ns), 1e11,
              2e8);
  EXPECT_EQ(device.use_of(1100 * kSecond, 1580 * kSecond).counted_ns, 0u) << "no sample was there";
}

TEST_F(UnitUsesTest, the_finer_source_counts_where_it_covers_half) {
  const uint32_t gpm = metric("nvml", std::string(kDevice) + "gpm/tensor-active");
  const uint32_t gpm_memory = metric("nvml", std::string(kDevice) + "gpm/dram-active");
  const uint32_t issue = metric("gpu-counters", std::string(kDevice) + "counters/issue-active");
  const uint32_t reads = metric("gpu-counters", std::string(kDevice) + "counters/dram-read-active");
  const uint32_t writes =
      metric("gpu-counters", std::string(kDevice) + "counters/dram-write-active");
  uses_.begin(model_);
  uses_.begin_location(0);
  for (uint64_t ms = 0; ms <= 4000; ms += 10) {
    if (ms % 100 == 0) {
      sample(gpm, ms * kMs, 0.9);
      sample(gpm_memory, ms * kMs, 0.1);
    }
    if (ms < 2000 || ms > 3900) {  // paused between
      sample(issue, ms * kMs, 0.3);
      sample(reads, ms * kMs, 0.4);
      sample(writes, ms * kMs, 0.3);
    }
  }
  uses_.end_location();
  const UnitUses::Device device = uses_.find(model_.groups[0], kOrdinal);
  EXPECT_NEAR(device.use_of(0, 2 * kSecond).memory, 0.7, 1e-3) << "reading and writing";
  EXPECT_NEAR(device.use_of(2 * kSecond, 4 * kSecond).memory, 0.1, 1e-3) << "GPM's";
}

TEST_F(UnitUsesTest, are_gone_when_all_processes_of_their_node_have_passed) {
  const uint32_t tensor = metric("nvml", std::string(kDevice) + "gpm/tensor-active");
  const uint32_t memory = metric("nvml", std::string(kDevice) + "gpm/dram-active");
  model_.groups.push_back(model_.groups[0]);
  uses_.begin(model_);
  uses_.begin_location(0);
  for (uint64_t i = 0; i <= 10; ++i) {
    sample(tensor, i * 100 * kMs, 0.9);
    sample(memory, i * 100 * kMs, 0.9);
  }
  uses_.end_location();
  uses_.pass(model_.groups[0]);
  EXPECT_NE(uses_.find(model_.groups[2], kOrdinal).use_of(0, kSecond).counted_ns, 0u);
  uses_.pass(model_.groups[2]);
  EXPECT_EQ(uses_.find(model_.groups[2], kOrdinal).use_of(0, kSecond).counted_ns, 0u);
}

/// Agents count all devices of their nodes, also while a job uses none or one of them.
TEST_F(UnitUsesTest, devices_that_no_process_uses_take_no_room) {
  const std::string other = "gpu_GPU-6d2cff00-0102-0304-0506-0708090a0b0c/";
  std::vector<uint32_t> metrics;
  for (const std::string& device : {std::string(kDevice), other}) {
    metrics.push_back(metric("nvml", device + "gpm/tensor-active"));
    metrics.push_back(metric("nvml", device + "gpm/dram-active"));
  }
  spool::Process without;
  model_.groups[1].process = &without;
  uses_.begin(model_);
  const auto timelines_on = [&](uint32_t node) {
    uses_.begin_location(node);
    for (uint64_t i = 1; i <= 10; ++i) {
      for (const uint32_t id : metrics) sample(id, i * 100 * kMs, 0.5);
    }
    uses_.end_location();
    StateOut out;
    uses_.save(&out);
    StateIn in(out.bytes());
    uint64_t count = 0;
    EXPECT_TRUE(in.get(&count));
    return count;
  };
  EXPECT_EQ(timelines_on(0), 1u);
  EXPECT_EQ(timelines_on(1), 0u);
}

/// Ranks that go round the nodes: the devices of all nodes wait for their last ranks.
TEST_F(UnitUsesTest, many_nodes_at_once_share_the_room) {
  constexpr uint32_t kNodes = 4096;
  const uint32_t tensor = metric("nvml", std::string(kDevice) + "gpm/tensor-active");
  const uint32_t memory = metric("nvml", std::string(kDevice) + "gpm/dram-active");
  job_.nodes.resize(kNodes);
  const Group group = model_.groups[0];
  model_.groups.assign(2 * kNodes, group);
  const auto counted_ns = [&](bool goes_round) {
    for (uint32_t id = 0; id < 2 * kNodes; ++id)
      model_.groups[id].node = goes_round ? id % kNodes : id / 2;
    uses_ = UnitUses();
    uses_.begin(model_);
    uses_.begin_location(0);
    for (uint64_t i = 1; i <= 1500; ++i) {
      sample(tensor, i * 100 * kMs, 0.9);
      sample(memory, i * 100 * kMs, 0.9);
    }
    uses_.end_location();
    return uses_.find(model_.groups[0], kOrdinal).use_of(kSecond, kSecond + 200 * kMs).counted_ns;
  };
  EXPECT_NE(counted_ns(false), 0u);
  EXPECT_EQ(counted_ns(true), 0u) << "its buckets are longer";
}

TEST(BoundTest, is_that_of_the_units_where_records_tell_none) {
  UnitUse units;
  EXPECT_EQ(bound_of(Bound::kDevice, units), Bound::kDevice);
  units.class_ns[static_cast<size_t>(UnitClass::kIdle)] = 500;
  EXPECT_EQ(bound_of(Bound::kDevice, units), Bound::kDevice) << "of other devices, perhaps";
  units.class_ns[static_cast<size_t>(UnitClass::kMemory)] = 90;
  units.class_ns[static_cast<size_t>(UnitClass::kLatency)] = 100;
  EXPECT_EQ(bound_of(Bound::kDevice, units), Bound::kLatency);
  EXPECT_EQ(bound_of(Bound::kLaunch, units), Bound::kLaunch);
  EXPECT_STREQ(bound_name(Bound::kLatency), "latency");
  EXPECT_STREQ(bound_name(Bound::kSmallGrids), "small grids");
  EXPECT_STREQ(bound_name(Bound::kDevice), "device");
  EXPECT_STREQ(bound_name(Bound::kStarved), "starved");
}

}  // namespace
}  // namespace aon::writers
