#include "plugins/gpu_counters/frames.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "plugins/gpu_counters/metrics.h"
#include "plugins/gpu_counters/time_line.h"

namespace aon::gpu_counters {
namespace {

std::string two_frames() {
  std::string bytes;
  FrameHead sample;
  sample.kind = FrameKind::kSample;
  sample.device = 3;
  sample.start_ns = 10;
  sample.end_ns = 20;
  append_frame(sample, std::vector<double>{1.5, 2.5}, {}, &bytes);
  FrameHead problem;
  problem.kind = FrameKind::kProblem;
  append_frame(problem, {}, {"it is busy", ""}, &bytes);
  return bytes;
}

TEST(GpuCountersFrames, come_out_as_they_went_in_however_they_are_cut) {
  const std::string bytes = two_frames();
  for (size_t step = 1; step <= bytes.size(); ++step) {
    FrameReader reader;
    std::vector<Frame> frames;
    for (size_t at = 0; at < bytes.size(); at += step) {
      ASSERT_TRUE(reader.add(bytes.data() + at, std::min(step, bytes.size() - at),
                             [&](const Frame& frame) { frames.push_back(frame); }));
    }
    ASSERT_EQ(frames.size(), 2u) << step;
    EXPECT_EQ(frames[0].head.device, 3);
    EXPECT_EQ(frames[0].head.end_ns, 20u);
    EXPECT_EQ(frames[0].values, (std::vector<double>{1.5, 2.5}));
    EXPECT_EQ(frames[1].texts, (std::vector<std::string>{"it is busy", ""}));
  }
}

TEST(GpuCountersFrames, that_are_none_end_it) {
  for (const size_t place : {size_t{0}, size_t{4}, size_t{6}, size_t{8}, size_t{12}}) {
    std::string bytes = two_frames();
    bytes[place + 1] = '\x7f';
    FrameReader reader;
    EXPECT_FALSE(reader.add(bytes.data(), bytes.size(), [](const Frame&) {})) << place;
    EXPECT_FALSE(reader.add(two_frames().data(), 1, [](const Frame&) {})) << "for ever";
  }
}

TEST(GpuCountersFrames, texts_that_are_too_long_are_cut) {
  std::string bytes;
  append_frame({}, {}, {std::string(5000, 'x'), "never"}, &bytes);
  FrameReader reader;
  size_t length = 0;
  ASSERT_TRUE(reader.add(bytes.data(), bytes.size(), [&](const Frame& frame) {
    ASSERT_EQ(frame.texts.size(), 1u);
    length = frame.texts[0].size();
  }));
  EXPECT_EQ(length, kMaxTextBytes - 1);
}

TEST(GpuCountersTimeLine, needs_two_pairs_and_follows_them) {
  TimeLine line;
  EXPECT_FALSE(line.ticks_of(1).has_value());
  line.add(1'000'000'000, 5'000);
  EXPECT_FALSE(line.is_ready());
  line.add(2'000'000'000, 2'005'000);
  ASSERT_TRUE(line.is_ready());
  EXPECT_EQ(line.ticks_of(1'500'000'000), 1'005'000u);
  EXPECT_EQ(line.ticks_of(2'000'000'000), 2'005'000u);
  EXPECT_EQ(line.ticks_of(2'001'000'000), 2'007'000u);
  EXPECT_FALSE(line.ticks_of(60'000'000'000).has_value()) << "another clock";
}

TEST(GpuCountersMetrics, have_their_formulas) {
  EXPECT_DOUBLE_EQ(value_of(Formula::kPercent, 50, 1), 0.5);
  EXPECT_DOUBLE_EQ(value_of(Formula::kPerSecond, 1000, 10'000'000), 100'000);
  EXPECT_TRUE(std::isnan(value_of(Formula::kPerSecond, 1000, 0)));
  EXPECT_DOUBLE_EQ(value_of(Formula::kAsItIs, 7, 1), 7);
}

TEST(GpuCountersMetrics, sets_have_names_of_their_own) {
  EXPECT_TRUE(metric_set("off").empty());
  EXPECT_EQ(metric_set("burst").size(), metric_set("core").size());
  std::set<std::string> names;
  for (const Metric& metric : metric_set("wide")) {
    EXPECT_TRUE(names.insert(metric.series).second) << metric.series;
    EXPECT_NE(std::string(metric.unit), "");
  }
  EXPECT_GT(names.size(), metric_set("core").size());
}

}  // namespace
}  // namespace aon::gpu_counters
