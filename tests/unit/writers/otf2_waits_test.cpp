// What the archive says of waiting, and who is told when it cannot.

#include <gmock/gmock.h>

#include <array>
#include <cstdio>
#include <deque>
#include <filesystem>

#include "tests/unit/nccl/lateness_case.h"
#include "tests/unit/writers/feed_group.h"
#include "tests/unit/writers/ledger_law.h"
#include "tests/unit/writers/spool_fixture.h"
#include "writers/assemble/assemble.h"
#include "writers/otf2/archive.h"
#include "writers/otf2/otf2_writer.h"

namespace aon::writers {
namespace {

namespace fs = std::filesystem;
using aon::test::message_record;
using aon::test::NodeSpool;
using aon::test::read_ledger;
using aon::test::TemporaryFolder;
using testing::ElementsAre;
using testing::HasSubstr;

/// Of the first location; without calls its temporary file cannot be read.
class GivenWaits : public WaitAnalysis {
 public:
  explicit GivenWaits(std::deque<CallWait> calls = {})
      : calls_(std::move(calls)), is_lost_(calls_.empty()) {}
  Status begin(const Model&) override { return {}; }
  Status begin_location(const Location&) override { return {}; }
  Status events(std::span<const Event>) override { return {}; }
  Status end_location() override { return {}; }
  Status finish(const Outcome&) override { return {}; }
  const WaitSummary* summary() const override { return &summary_; }
  Result<std::unique_ptr<CallWaits>> read_calls() override { return Error{Code::kIo, "no room"}; }
  Result<std::optional<CallWait>> next_call(uint32_t location) override {
    if (is_lost_) return Error{Code::kIo, "no room"};
    if (location != 0 || calls_.empty()) return std::optional<CallWait>();
    const CallWait call = calls_.front();
    calls_.pop_front();
    return std::optional<CallWait>(call);
  }

 private:
  std::deque<CallWait> calls_;
  bool is_lost_;
  WaitSummary summary_;
};

/// Four ranks, each with a timeline of NCCL.
class Otf2Waits : public nccl::NcclLateness {
 protected:
  Otf2Waits() {
    add_timelines();
    for (uint32_t i = 4; i < 8; ++i) model_.locations[i].id = i;
    model_.communicators[0].kind = CommunicatorKind::kNccl;
  }

  Status feed(Writer* writer) const {
    Status status = writer->begin(model_);
    for (const Group& group : model_.groups) {
      const auto none = [](const Location&) { return std::vector<Event>(); };
      if (status) status = test::feed_group(writer, model_, group, none);
    }
    return status;
  }
  /// As otf2-print has them.
  std::vector<std::string> metrics() const {
    std::vector<std::string> lines;
    const std::string command = aon::test::kOtf2Print + (folder_.path() / "traces.otf2").string();
    FILE* pipe = popen(command.c_str(), "r");
    std::array<char, 4096> line;
    while (pipe != nullptr && fgets(line.data(), line.size(), pipe) != nullptr) {
      const std::string text = line.data();
      if (text.starts_with("METRIC ")) lines.push_back(text);
    }
    EXPECT_TRUE(pipe != nullptr && pclose(pipe) == 0);
    return lines;
  }

  TemporaryFolder folder_;
};

TEST_F(Otf2Waits, what_cannot_be_read_of_calls_is_told) {
  GivenWaits waits;
  std::vector<std::string> lacks;
  const auto writer = make_otf2_writer(folder_.path(), &waits, false, nullptr, &lacks);
  ASSERT_TRUE(feed(writer.get()));
  ASSERT_TRUE(writer->finish({}));
  EXPECT_THAT(lacks, ElementsAre("the archive lacks waiting times: no room"));
}

TEST_F(Otf2Waits, what_a_share_cannot_read_is_told) {
  GivenWaits waits;
  const TemporaryFolder share;
  const auto first = make_otf2_writer(share.path(), &waits);
  ASSERT_TRUE(feed(first.get()));
  StateOut out;
  ASSERT_TRUE(first->save(&out));
  std::vector<std::string> lacks;
  const auto combiner = make_otf2_writer(folder_.path(), &waits, false, nullptr, &lacks);
  ASSERT_TRUE(combiner->begin(model_));
  StateIn in(out.bytes());
  ASSERT_TRUE(combiner->load(&in));
  ASSERT_TRUE(otf2::take_event_files(share.path(), folder_.path()));
  ASSERT_TRUE(combiner->finish({}));
  EXPECT_THAT(lacks, ElementsAre("the archive lacks waiting times: no room"));
}

/// More than fit in memory, and no folder for a file.
TEST_F(Otf2Waits, what_cannot_be_kept_of_nccl_is_told) {
  for (uint64_t sequence = 0; sequence < 20'000; ++sequence) {
    for (uint32_t rank = 0; rank < 4; ++rank)
      tell(rank, sequence, {.gpu_ns = rank == 2 ? 1000u : 9000u});
  }
  analysis_ = nccl::LatenessAnalysis("/nowhere");
  analysis_.keep_waits();
  run();
  std::vector<std::string> lacks;
  const auto writer = make_otf2_writer(folder_.path(), nullptr, false, &analysis_, &lacks);
  ASSERT_TRUE(feed(writer.get()));
  ASSERT_TRUE(writer->finish({}));
  EXPECT_THAT(lacks,
              ElementsAre(HasSubstr("lacks NCCL waiting times: temporary file in /nowhere")));
}

/// What was waited before the archive begins is in the first value, and one that began before has
/// two.
TEST_F(Otf2Waits, of_a_window_they_are_all_that_was_waited) {
  model_.start_ns = 1000;
  model_.end_ns = 100'000;
  model_.archive_start_ns = 50'000;
  for (const uint64_t launch_ns : {1'000u, 45'000u, 70'000u}) {
    for (uint32_t rank = 0; rank < 4; ++rank)
      tell(rank, launch_ns, {.gpu_ns = rank == 2 ? 1000u : 9000u, .launch_ns = launch_ns});
  }
  model_.locations[5].in_archive = model_.locations[7].in_archive = false;
  analysis_.keep_waits();
  run();
  const auto writer = make_otf2_writer(folder_.path(), nullptr, false, &analysis_);
  ASSERT_TRUE(feed(writer.get()));
  ASSERT_TRUE(writer->finish({}));
  EXPECT_THAT(metrics(), ElementsAre(HasSubstr("8e-06"), HasSubstr("1.6e-05"), HasSubstr("1.6e-05"),
                                     HasSubstr("2.4e-05")));
}

TEST_F(Otf2Waits, of_calls_in_a_window_they_are_all_that_was_waited) {
  model_.start_ns = 1000;
  model_.end_ns = 100'000;
  model_.archive_start_ns = 50'000;
  GivenWaits waits({{1000, 10'000, 8000}, {60'000, 70'000, 5000}});
  const auto writer = make_otf2_writer(folder_.path(), &waits);
  ASSERT_TRUE(feed(writer.get()));
  ASSERT_TRUE(writer->finish({}));
  EXPECT_THAT(metrics(), ElementsAre(HasSubstr("8e-06"), HasSubstr("1.3e-05")));
}

/// Rank 1 waits 14 us for a late sender.
TEST(Otf2WaitsRoom, what_has_none_is_told_and_keeps_no_spool) {
  const auto assembled = [](uint32_t most) {
    TemporaryFolder job;
    NodeSpool node(job.path(), "n1");
    for (uint32_t rank = 0; rank < 2; ++rank)
      node.add_process(
          rank, static_cast<int32_t>(rank), 2,
          {{"MPI_Send", RegionRole::kPointToPoint}, {"MPI_Recv", RegionRole::kPointToPoint}});
    node.add_records(0, 1, {message_record(1, 15'000, 20'000, kOutgoing, 1, 7, 64)});
    node.add_records(1, 1, {message_record(2, 1000, 20'000, kIncoming, 0, 7, 64)});
    node.finish();
    AssembleOptions options;
    options.otf2_locations = most;
    options.drops_spool = true;
    const Result<AssembleReport> report = assemble(job.path(), options);
    EXPECT_TRUE(report && report->warnings.empty());
    EXPECT_FALSE(fs::exists(job.path() / "spool"));
    return read_ledger(job.path())["assembly"]["metrics_left_out"].dump();
  };
  EXPECT_EQ(assembled(4), "[]");
  EXPECT_THAT(assembled(3),
              HasSubstr("\\\"waiting time\\\": its locations need --otf2-locations 4"));
}

/// Two threads set a counter. Waiting would take two more locations.
TEST(Otf2CountersRoom, what_has_none_is_told_and_left_out) {
  size_t file_count = 0;
  const auto assembled = [&](uint32_t most) {
    TemporaryFolder job;
    NodeSpool node(job.path(), "n1");
    node.add_process(0, 0, 1, {{"solve", RegionRole::kUser}});
    node.define(0, DefinitionType::kMetric, MetricDefinition{9, MetricMode::kAbsolute, 0, 0},
                {"user::loss", "1", ""});
    for (const uint16_t slot : {1, 2}) {
      node.add_records(0, slot,
                       {aon::test::span_record(1, 10, 20), aon::test::sample_record(9, 30, 2.5)});
    }
    node.finish();
    AssembleOptions options;
    options.otf2_locations = most;
    const Result<AssembleReport> report = assemble(job.path(), options);
    EXPECT_TRUE(report && report->warnings.empty());
    file_count = 0;
    for (const auto& entry : fs::directory_iterator(job.path() / "traces"))
      file_count += entry.path().extension() == ".evt" ? 1 : 0;
    return read_ledger(job.path())["assembly"]["metrics_left_out"].dump();
  };
  EXPECT_EQ(assembled(6), "[]");
  EXPECT_EQ(file_count, 4u);
  EXPECT_EQ(assembled(4), "[]");
  EXPECT_EQ(file_count, 4u);
  EXPECT_THAT(assembled(3), HasSubstr("lacks the counters that the program sets: its locations "
                                      "need --otf2-locations 4"));
  EXPECT_EQ(file_count, 2u);
}

/// Two devices have series, and so has their process.
TEST(Otf2DevicesRoom, without_any_their_series_stand_with_the_others) {
  const auto file_count = [](uint32_t most) {
    TemporaryFolder job;
    NodeSpool node(job.path(), "n1");
    node.add_process(0, 0, 1, {{"solve", RegionRole::kUser}});
    std::vector<Record> samples;
    for (const char* name : {"nvml::gpu_A/power", "nvml::gpu_B/power", "perf.page-faults"}) {
      const auto id = static_cast<uint32_t>(samples.size() + 1);
      node.define(0, DefinitionType::kMetric, MetricDefinition{id, MetricMode::kAbsolute, 0, 0},
                  {name, "1", ""});
      samples.push_back(aon::test::sample_record(id, 10 + id, 2.5));
    }
    node.add_records(0, 1, {aon::test::span_record(1, 10, 20)});
    node.add_records(0, spool::kSeriesSlot, samples);
    node.finish();
    AssembleOptions options;
    options.otf2_locations = most;
    EXPECT_TRUE(assemble(job.path(), options).has_value());
    size_t count = 0;
    for (const auto& entry : fs::directory_iterator(job.path() / "traces"))
      count += entry.path().extension() == ".evt" ? 1 : 0;
    return count;
  };
  EXPECT_EQ(file_count(4), 4u);
  EXPECT_EQ(file_count(3), 2u);
}

}  // namespace
}  // namespace aon::writers
