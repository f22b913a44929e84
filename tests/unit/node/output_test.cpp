#include "plugins/node/output.h"

#include <gtest/gtest.h>

#include "tests/unit/provider/fake_core.h"

namespace aon::node {
namespace {

const Series kBytes{"bytes", "By", "bytes"};

TEST(NodeTotal, counts_from_its_first_reading) {
  Total total;
  EXPECT_EQ(total.advance(1000), 0u);
  EXPECT_EQ(total.advance(1005), 5u);
  EXPECT_EQ(total.sum(), 5u);
}

TEST(NodeTotal, goes_on_when_the_counter_begins_again) {
  Total total;
  total.advance(1000);
  total.advance(1010);
  EXPECT_EQ(total.advance(3), 13u);
  EXPECT_EQ(total.advance(4), 14u);
}

TEST(NodeTotal, counts_over_the_end_of_the_range) {
  Total total;
  total.advance(90);
  EXPECT_EQ(total.advance(5, Total::Decrease::kWrapped, 100), 15u);
  Total unknown;  // no range was told: at least what is there now
  unknown.advance(90);
  EXPECT_EQ(unknown.advance(5, Total::Decrease::kWrapped, 0), 5u);
}

TEST(NodeTotal, waits_when_the_kernel_corrects_itself) {
  Total total;
  total.advance(100);
  total.advance(110);
  EXPECT_EQ(total.advance(108, Total::Decrease::kNoise), 10u);
  EXPECT_EQ(total.advance(112, Total::Decrease::kNoise), 12u);
}

TEST(NodeTotal, is_exact_far_beyond_the_integers_of_a_double) {
  Total total;
  total.advance(UINT64_MAX - 10);
  EXPECT_EQ(total.advance(UINT64_MAX), 10u);
}

TEST(NodeOutput, defines_a_metric_once_and_samples_it_at_the_set_time) {
  aon_core core;
  Output output(&core, &aon::test::fake_core_api());
  output.set_time(7);
  output.count(1, kBytes, 500, 4);
  output.set_time(8);
  output.count(1, kBytes, 510, 4);
  output.count(2, kBytes, 1, 4);
  ASSERT_EQ(core.metrics.size(), 2u);
  EXPECT_EQ(core.metrics[0].mode, AON_METRIC_ACCUMULATED);
  const auto samples = core.samples_of(1, "bytes");
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[1].ticks, 8u);
  EXPECT_EQ(samples[1].value, 40.0);
}

TEST(NodeOutput, forgets_a_process_and_no_other) {
  aon_core core;
  Output output(&core, &aon::test::fake_core_api());
  output.value(1, kBytes, 1);
  output.value(2, kBytes, 1);
  output.forget(1);
  output.value(1, kBytes, 1);
  output.value(2, kBytes, 1);
  EXPECT_EQ(core.metrics.size(), 3u);
}

TEST(NodeOutput, drops_what_the_core_has_no_room_for) {
  aon_core core;
  aon_core_api full = aon::test::fake_core_api();
  full.define_metric = [](aon_core*, uint32_t, const char*, const char*, const char*,
                          aon_metric_mode) { return uint32_t{AON_NO_ID}; };
  Output output(&core, &full);
  output.value(1, kBytes, 1);
  output.count(1, kBytes, 1);
  EXPECT_TRUE(core.samples.empty());
}

TEST(NodeState, joins_reasons_and_tells_each_remedy_once) {
  StateText state;
  state.add(AON_STATE_DEGRADED, "no dram", "chmod");
  state.add(AON_STATE_DEGRADED, "no package", "chmod");
  EXPECT_EQ(state.state, AON_STATE_DEGRADED);
  EXPECT_EQ(state.reason, "no dram; no package");
  EXPECT_EQ(state.remedy, "chmod");
}

TEST(StateText, says_first_what_is_wrong) {
  StateText state;
  state.add(AON_STATE_ON, "GPU 0", "");
  state.add(AON_STATE_DEGRADED, "GPU 1: lost", "");
  state.add(AON_STATE_ON, "GPU 2", "");
  state.add(AON_STATE_DEGRADED, "GPU 3: lost", "");
  EXPECT_EQ(state.reason, "GPU 1: lost; GPU 3: lost; GPU 0; GPU 2");
  EXPECT_EQ(state.state, AON_STATE_DEGRADED);
}

}  // namespace
}  // namespace aon::node
