#include "writers/ledger/totals.h"

#include <gtest/gtest.h>

#include <bit>

#include "core/spool/format.h"
#include "tests/unit/writers/shares.h"
#include "writers/ledger/gpu_errors.h"
#include "writers/ledger/tally.h"

namespace aon::writers {
namespace {

enum MetricId : uint32_t { kPackage, kDram, kCores, kWritten, kMemory, kForeign, kXid };

/// Two nodes with a process each.
class Totals : public testing::Test {
 protected:
  Totals() {
    job_.nodes.resize(2);
    model_.job = &job_;
    for (uint32_t g = 0; g < 2; ++g) {
      model_.groups.push_back({});
      model_.groups[g].id = g;
      model_.groups[g].rank = g;
      model_.groups[g].node = g;
    }
    const auto counted = MetricMode::kAccumulated;
    model_.metrics = {
        {"energy::package-0", "J", "", "energy", counted, true},
        {"energy::dram-0", "J", "", "energy", counted, true},
        {"energy::cores-0", "J", "", "energy", counted, true},
        {"process::storage-written", "By", "", "process", counted, false},
        {"process::memory", "By", "", "process", MetricMode::kAbsolute, false},
        {"other::package-0", "J", "", "other", counted, true},
        {"nvml::gpu_GPU-17/health/xid", "1", "", "nvml", MetricMode::kAbsolute, true},
    };
    EXPECT_TRUE(collector_.begin(model_));
  }

  void samples(uint32_t group, uint32_t process, const std::vector<Event>& events,
               LocationType type = LocationType::kMetric) {
    const Location location{uint64_t{1} << 32, group, type, "", process, spool::kSeriesSlot, true};
    EXPECT_TRUE(collector_.begin_location(location));
    EXPECT_TRUE(collector_.events(events));
    EXPECT_TRUE(collector_.end_location());
  }
  static Event sample(uint64_t time_ns, uint32_t metric, double value) {
    Event event{};
    event.time_ns = time_ns;
    event.kind = EventKind::kSample;
    event.region = metric;
    event.bytes = std::bit_cast<uint64_t>(value);
    return event;
  }

  spool::Job job_{};
  Model model_{};
  TotalsCollector collector_;
};

TEST_F(Totals, last_sample_is_the_total) {
  samples(1, spool::kNodeProcess,
          {sample(1'000'000'000, kPackage, 0), sample(1'000'000'000, kDram, 0),
           sample(3'500'000'000, kPackage, 100), sample(3'500'000'000, kDram, 7.5)});
  const MetricTotals& totals = collector_.totals();
  EXPECT_FALSE(totals.energy[0].is_known());
  EXPECT_DOUBLE_EQ(totals.energy[1].joules(), 107.5);
  EXPECT_DOUBLE_EQ(totals.energy[1].seconds(), 2.5);
}

/// The last sample has all joules, so the time is that of all, too.
TEST_F(Totals, seconds_begin_where_the_oldest_samples_were_evicted) {
  Event lost{};
  lost.kind = EventKind::kLostBegin;
  lost.time_ns = 7'000'000'000;  // as it is shown
  lost.request = 1'000'000'000;
  samples(1, spool::kNodeProcess,
          {lost, sample(8'000'000'000, kPackage, 700), sample(11'000'000'000, kPackage, 1000)});
  EXPECT_DOUBLE_EQ(collector_.totals().energy[1].joules(), 1000);
  EXPECT_DOUBLE_EQ(collector_.totals().energy[1].seconds(), 10);
}

TEST_F(Totals, no_joule_counts_twice) {
  samples(0, spool::kNodeProcess, {sample(1, kPackage, 100), sample(2, kCores, 80)});
  EXPECT_DOUBLE_EQ(collector_.totals().energy[0].joules(), 100);
  EXPECT_DOUBLE_EQ(collector_.totals().energy[0].domains_j.at("cores-0"), 80);
}

TEST_F(Totals, what_never_counts_is_not_known) {
  samples(0, spool::kNodeProcess, {sample(1, kPackage, 0), sample(2, kPackage, 0)});
  EXPECT_FALSE(collector_.totals().energy[0].is_known());
}

TEST_F(Totals, memory_alone_is_not_the_energy_of_a_node) {
  samples(0, spool::kNodeProcess, {sample(1, kPackage, 0), sample(2, kDram, 7.5)});
  EXPECT_FALSE(collector_.totals().energy[0].is_known());
  EXPECT_DOUBLE_EQ((NodeEnergy{{{"dram-0", 7.5}, {"platform-0", 90}}}.joules()), 90);
}

TEST_F(Totals, errors_of_gpus_are_a_finding) {
  job_.nodes[1].host = "n1";
  EXPECT_EQ(gpu_errors_finding(model_, collector_.totals()), "");
  samples(1, spool::kNodeProcess, {sample(1, kXid, 79)});
  EXPECT_EQ(gpu_errors_finding(model_, collector_.totals()),
            "the driver reported an error of a GPU: Xid 79 of GPU-17 on n1 "
            "(docs.nvidia.com/deploy/xid-errors)");
  samples(1, spool::kNodeProcess, {sample(2, kXid, 31), sample(3, kXid, 31)});
  EXPECT_EQ(gpu_errors_finding(model_, collector_.totals()),
            "the driver reported 3 errors of GPUs, 2 times Xid 31 of GPU-17 on n1 "
            "(docs.nvidia.com/deploy/xid-errors)");
}

TEST_F(Totals, errors_that_several_agents_of_a_node_told_count_once) {
  job_.nodes[0].host = job_.nodes[1].host = "n1";
  samples(0, spool::kNodeProcess, {sample(2, kXid, 31)});
  samples(1, spool::kNodeProcess, {sample(1, kXid, 31), sample(2, kXid, 31)});
  EXPECT_EQ(gpu_errors_finding(model_, collector_.totals()),
            "the driver reported 2 errors of GPUs, 2 times Xid 31 of GPU-17 on n1 "
            "(docs.nvidia.com/deploy/xid-errors)");
}

TEST_F(Totals, bytes_are_those_of_the_process) {
  samples(0, 5, {sample(1, kWritten, 10), sample(2, kMemory, 4096), sample(3, kWritten, 30)});
  EXPECT_EQ(collector_.totals().bytes[0], (ProcessBytes{{"storage-written", 30}}));
  EXPECT_TRUE(collector_.totals().bytes[1].empty());
}

TEST_F(Totals, metrics_of_others_and_events_of_threads_are_not_meant) {
  samples(0, spool::kNodeProcess, {sample(1, kForeign, 10), sample(1, 99, 1)});
  samples(0, 5, {sample(1, kWritten, 10)}, LocationType::kThread);
  EXPECT_FALSE(collector_.totals().energy[0].is_known());
  EXPECT_TRUE(collector_.totals().bytes[0].empty());
}

TEST_F(Totals, samples_are_counted_by_provider) {
  samples(0, spool::kNodeProcess,
          {sample(1, kPackage, 1), sample(1, kDram, 1), sample(1, kForeign, 1)});
  samples(0, 5, {sample(1, kWritten, 10), sample(1, kMemory, 1)});
  EXPECT_EQ(collector_.totals().node_samples[0], (SampleCounts{{"energy", 2}, {"other", 1}}));
  EXPECT_EQ(collector_.totals().group_samples[0], (SampleCounts{{"process", 2}}));
  EXPECT_TRUE(collector_.totals().node_samples[1].empty());
}

/// Two nodes with two processes each, of which the first has the metrics of its node.
class TotalsOfShares : public Totals {
 protected:
  TotalsOfShares() {
    model_.groups.resize(4);
    for (uint32_t g = 0; g < 4; ++g) {
      model_.groups[g].id = g;
      model_.groups[g].node = g / 2;
      model_.locations.push_back({g, g, LocationType::kThread, "", g, 1, true});
      model_.locations.push_back({uint64_t{1} << 32 | g, g, LocationType::kMetric, "",
                                  g % 2 == 0 ? spool::kNodeProcess : g, spool::kSeriesSlot, true});
    }
  }
  static std::vector<Event> events_of(const Location& location) {
    const auto more = static_cast<double>(location.group);
    if (location.process == spool::kNodeProcess)
      return {sample(1 + location.group, kPackage, more), sample(2, kXid, 79),
              sample(9, kDram, 7 + more)};
    return {sample(5, kWritten, 10 * more), sample(6, kMemory, 1)};
  }
  std::vector<std::string> states() {
    TotalsCollector even;
    TotalsCollector odd;
    return test::run_shares({&even}, {&odd}, model_, events_of);
  }
};

TEST_F(TotalsOfShares, are_those_of_one_process) {
  TotalsCollector whole;
  test::run_whole({&whole}, model_, events_of);
  TotalsCollector combiner;
  test::combine({&combiner}, model_, states());
  const MetricTotals& a = combiner.totals();
  const MetricTotals& b = whole.totals();
  EXPECT_TRUE(b.energy[1].is_known());
  for (size_t node = 0; node < 2; ++node) {
    EXPECT_EQ(a.energy[node].domains_j, b.energy[node].domains_j);
    EXPECT_EQ(a.energy[node].first_ns, b.energy[node].first_ns);
    EXPECT_EQ(a.energy[node].last_ns, b.energy[node].last_ns);
  }
  EXPECT_EQ(a.bytes, b.bytes);
  EXPECT_EQ(a.node_samples, b.node_samples);
  EXPECT_EQ(a.group_samples, b.group_samples);
  EXPECT_EQ(a.gpu_errors, b.gpu_errors);
  EXPECT_EQ(a.gpu_errors[1], (GpuErrors{{"Xid 79 of GPU-17", 1}}));
}

TEST_F(TotalsOfShares, damage_is_harmless) {
  const auto make = [] { return std::make_unique<TotalsCollector>(); };
  test::expect_damage_is_harmless(make, model_, states()[2]);
  test::expect_damage_is_harmless(make, model_, states()[3]);
}

TEST_F(TotalsOfShares, tallies_find_their_location_again) {
  LocationTally tally;
  tally.location = &model_.locations[5];
  tally.decoded = 12;
  tally.lost[2] = {3, 100, 200};
  tally.agents_count = 15;
  StateOut out;
  save_tally(&out, tally, 5);
  LocationTally loaded;
  StateIn in(out.bytes());
  ASSERT_TRUE(load_tally(&in, model_, &loaded));
  EXPECT_EQ(loaded.location, tally.location);
  EXPECT_EQ(loaded.decoded, 12u);
  EXPECT_EQ(loaded.lost[2].end_ns, 200u);
  EXPECT_TRUE(loaded.adds_up());
  model_.locations.resize(5);
  for (size_t size = 0; size <= out.bytes().size(); ++size) {
    const std::vector<char> part(out.bytes().begin(),
                                 out.bytes().begin() + static_cast<ptrdiff_t>(size));
    StateIn damaged(part);
    EXPECT_FALSE(load_tally(&damaged, model_, &loaded)) << "a location that is not there";
  }
}

TEST_F(TotalsOfShares, outcomes_add_up) {
  Outcome a;
  a.event_count = 5;
  a.unplaced_device_count = 2;
  a.pause_count = 3;
  a.communication_complete = true;
  Outcome b = a;
  EXPECT_EQ((a + b).event_count, 10u);
  EXPECT_EQ((a + b).unplaced_device_count, 4u);
  EXPECT_EQ((a + b).pause_count, 6u);
  EXPECT_TRUE((a + b).communication_complete);
  b.communication_complete = false;
  EXPECT_FALSE((a + b).communication_complete);
}

}  // namespace
}  // namespace aon::writers
