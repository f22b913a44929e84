// A second agent of the launch in the folder of the first: what both know of the node adds up.
#include <gtest/gtest.h>

#include <bit>

#include "core/agent/series.h"
#include "tests/unit/agent/encoder_bench.h"

namespace aon::agent {
namespace {

constexpr uint32_t kEnergy = 8;  ///< counts
constexpr uint32_t kLoad = 10;

class EarlierAgentsTest : public test::EncoderBench {
 protected:
  /// As another process would: nothing but the folder is left.
  void start_agent() {
    encoder_.reset();
    state_fd_ = State::create().value();
    state_ = State::map(state_fd_.get()).value();
    restart();
    define(kEnergy, MetricMode::kAccumulated, "energy::package-0");
    define(kLoad, MetricMode::kAbsolute, "node::load");
  }
  void define(uint32_t id, MetricMode mode, const char* name) {
    MetricDefinition metric{};
    metric.id = id;
    metric.mode = mode;
    metric.node_wide = 1;
    inbox_.define(spool::kNodeProcess, DefinitionType::kMetric, metric, {name, "1", ""});
  }
  void put(uint32_t metric, double value) {
    Series series(&state_);
    ASSERT_TRUE(series.put(spool::kNodeProcess, metric, ++ticks_ * 100, value, 20, 10));
  }
  void use(uint64_t cpu_ns) {
    inbox_.define(spool::kNodeProcess, DefinitionType::kUsage,
                  UsageDefinition{cpu_ns, cpu_ns * 10, cpu_ns * 2, 5, 6, 7, 8, 9});
  }
  /// All samples of a metric.
  std::vector<Record> samples(uint32_t metric) {
    std::vector<Record> found;
    const auto listed = spool::list_segments(node_folder());
    const auto index = spool::ProcessIndex::build(node_folder(), spool::kNodeProcess,
                                                  listed->at(spool::kNodeProcess));
    job_ = read_job();
    spool::StreamReader reader(*index, &job_.nodes[0].series, spool::kSeriesSlot);
    for (;;) {
      const auto batch = reader.next();
      if (!batch || batch->records.empty()) break;
      for (const Record& record : batch->records) {
        if (record.head.kind == RecordKind::kSample && record.head.id == metric)
          found.push_back(record);
      }
    }
    for (const uint64_t count : reader.losses().count) lost_ += count;
    return found;
  }
  static std::vector<double> values(const std::vector<Record>& records) {
    std::vector<double> result;
    for (const Record& record : records) result.push_back(std::bit_cast<double>(record.head.a64));
    return result;
  }

  spool::Job job_;
  uint64_t lost_ = 0;
};

using Values = std::vector<double>;

TEST_F(EarlierAgentsTest, samples_of_the_node_follow_those_of_the_agent_before) {
  for (int agent = 0; agent < 3; ++agent) {
    start_agent();
    put(kLoad, 7);
    for (int i = 0; i < 3; ++i) put(kEnergy, i * 10);
    encoder_->flush(FlushExtent::kLast);
  }
  EXPECT_EQ(values(samples(kLoad)), (Values{7, 7, 7}));
  const auto energy = samples(kEnergy);
  EXPECT_EQ(values(energy), (Values{0, 10, 20, 20, 30, 40, 40, 50, 60}));
  ASSERT_EQ(energy.size(), 9u);
  EXPECT_EQ(energy.back().words[0], 60u);
  EXPECT_EQ(energy.back().words[1], 30u);
  EXPECT_EQ(lost_, 0u);
  EXPECT_EQ(job_.nodes[0].series.streams.at({spool::kSeriesSlot, 0}).committed, 12u);
}

TEST_F(EarlierAgentsTest, a_worker_that_is_killed_adds_what_was_before_its_agent_once) {
  start_agent();
  put(kEnergy, 10);
  encoder_->flush();
  start_agent();
  for (int steps = 0; steps < 12; ++steps) {
    put(kEnergy, 1);
    flush_and_restart(steps);
  }
  encoder_->flush();
  const Values energy = values(samples(kEnergy));
  EXPECT_EQ(energy.size(), 13u);
  for (const double value : std::span(energy).subspan(1)) EXPECT_EQ(value, 11);
  EXPECT_EQ(lost_, 0u);
}

TEST_F(EarlierAgentsTest, what_an_agent_wrote_and_did_not_tell_is_followed_as_well) {
  start_agent();
  put(kEnergy, 10);
  encoder_->flush();
  const auto definitions = std::filesystem::path(node_folder()) / spool::kDefinitionsFile;
  const auto told_bytes = std::filesystem::file_size(definitions);
  put(kEnergy, 20);
  encoder_->flush();
  encoder_.reset();
  std::filesystem::resize_file(definitions, told_bytes);
  start_agent();
  put(kEnergy, 5);
  encoder_->flush();
  EXPECT_EQ(values(samples(kEnergy)), (Values{10, 20, 25}));
  EXPECT_EQ(lost_, 0u);
}

TEST_F(EarlierAgentsTest, what_agents_and_ranks_used_adds_up) {
  for (int agent = 0; agent < 2; ++agent) {
    start_agent();
    for (const uint64_t cpu_ns : {100, 1000}) {
      use(cpu_ns);
      encoder_->flush();
    }
  }
  const UsageDefinition usage = read_job().nodes[0].usage.value();
  EXPECT_EQ(usage.agent_cpu_ns, 2000u);
  EXPECT_EQ(usage.ranks_cpu_ns, 20000u);
  EXPECT_EQ(usage.application_cost_ns, 4000u);
  EXPECT_EQ(usage.segment_bytes, 5u);
}

TEST_F(EarlierAgentsTest, samples_that_found_no_room_add_up) {
  for (int agent = 0; agent < 2; ++agent) {
    start_agent();
    put(kLoad, 7);
    Series(&state_).add_refused(spool::kNodeProcess, spool::kSeriesSlot, 5, agent * 1000 + 100,
                                agent * 1000 + 200);
    encoder_->flush();
  }
  const spool::Job job = read_job();
  const auto& stream = job.nodes[0].series.streams.at({spool::kSeriesSlot, 0});
  EXPECT_EQ(stream.refused, 10u);
  EXPECT_EQ(stream.first_refused_ticks, 100u);
  EXPECT_EQ(stream.last_refused_ticks, 1200u);
}

}  // namespace
}  // namespace aon::agent
