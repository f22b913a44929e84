// Markers: how many of each kind stay, what the job and its events make them of, and that they are
// in the archive, as otf2-marker reads them.

#include <aon/nccl.h>
#include <aon/nccl_level.h>
#include <aon/ring.h>
#include <gmock/gmock.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "core/spool/agent_gap.h"
#include "tests/unit/writers/ledger_law.h"
#include "tests/unit/writers/spool_fixture.h"
#include "tests/unit/writers/two_shares.h"
#include "writers/assemble/assemble.h"
#include "writers/otf2/markers.h"

namespace aon::writers {
namespace {

namespace fs = std::filesystem;
using aon::test::begin_record;
using aon::test::kEpochNs;
using aon::test::kRegions;
using aon::test::NodeSpool;
using aon::test::read_ledger;
using aon::test::span_record;
using aon::test::TemporaryFolder;
using otf2::Marker;
using otf2::MarkerKind;
using otf2::Markers;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

Marker marker(MarkerKind kind, uint64_t weight, const std::string& text, uint64_t time_ns = 0) {
  return {kind, Marker::Scope::kLocation, 0, time_ns, 0, weight, text};
}

std::vector<std::string> texts(const Markers& markers) {
  std::vector<std::string> all;
  for (const Marker* one : markers.by_time()) all.push_back(one->text);
  return all;
}

TEST(Markers, none_of_a_kind_pushes_out_another_kind) {
  Markers markers(2 * otf2::kMarkerKindCount);
  markers.add(marker(MarkerKind::kOpenAtEnd, 0, "open"));
  for (int i = 0; i < 1000; ++i) markers.add(marker(MarkerKind::kLoss, 1, "lost"));
  markers.add(marker(MarkerKind::kCut, 0, "cut"));
  EXPECT_EQ(markers.count(), 4u);
  EXPECT_EQ(markers.left_out_count(MarkerKind::kLoss), 998u);
  EXPECT_EQ(markers.left_out_count(MarkerKind::kOpenAtEnd), 0u);
}

TEST(Markers, keep_the_heaviest_and_of_these_the_first) {
  Markers markers(3 * otf2::kMarkerKindCount);
  uint64_t time_ns = 0;
  for (const auto& [weight, text] : std::vector<std::pair<uint64_t, std::string>>{
           {1, "a"}, {5, "b"}, {2, "c"}, {2, "d"}, {9, "e"}, {1, "f"}})
    markers.add(marker(MarkerKind::kLoss, weight, text, ++time_ns));
  EXPECT_THAT(texts(markers), ElementsAre("b", "c", "e"));
  EXPECT_EQ(markers.left_out_count(MarkerKind::kLoss), 3u);
  EXPECT_FALSE(markers.takes(MarkerKind::kLoss, 2));
  EXPECT_TRUE(markers.takes(MarkerKind::kLoss, 3));
}

TEST(Markers, texts_are_cut_at_the_border_of_a_character) {
  Markers markers;
  std::string text(otf2::kMostMarkerTextBytes - 1, 'x');
  markers.add(marker(MarkerKind::kCut, 0, text + "ü"));
  EXPECT_THAT(texts(markers), ElementsAre(text));
}

TEST(Markers, without_room_are_only_counted) {
  Markers markers(0);
  markers.add(marker(MarkerKind::kCut, 7, "cut"));
  EXPECT_EQ(markers.count(), 0u);
  EXPECT_EQ(markers.left_out_count(MarkerKind::kCut), 1u);
}

TEST(Markers, of_shares_are_those_of_one_process) {
  Model model{};
  model.groups.resize(5);
  for (uint32_t id = 0; id < 5; ++id) model.groups[id].id = id;
  const auto feed = [](Markers* to, const Group& group) {
    for (uint64_t i = 0; i < 4; ++i) {
      const std::string text = std::to_string(group.id) + "." + std::to_string(i);
      to->add(marker(MarkerKind::kLoss, (group.id * 7 + i * 3) % 5, text, i));
      to->add(marker(MarkerKind::kCut, 0, text, i));
    }
  };
  const size_t most = 3 * otf2::kMarkerKindCount;
  Markers whole(most);
  for (const Group& group : model.groups) feed(&whole, group);
  Markers first(most);
  Markers second(most);
  const std::vector<std::string> saved = test::saved_by_two(model, &first, &second, feed);
  Markers combined(most);
  test::load_all(saved, [&](StateIn* in) { return combined.load(in); });
  EXPECT_EQ(texts(combined), texts(whole));
  for (const MarkerKind kind : {MarkerKind::kLoss, MarkerKind::kCut}) {
    EXPECT_EQ(combined.left_out_count(kind), whole.left_out_count(kind));
    EXPECT_EQ(combined.left_out_count(kind), 17u);
  }
  test::expect_beginnings_to_fail(saved[0], [&](StateIn* in) {
    Markers other(most);
    return other.load(in);
  });
}

/// Of one category, as otf2-marker says them.
std::vector<std::string> read_markers(const fs::path& job, const std::string& category) {
  const std::string command =
      "timeout 60 otf2-marker --def AON \"" + category + "\" " + (job / "traces.otf2").string();
  std::vector<std::string> lines;
  FILE* pipe = popen(command.c_str(), "r");
  std::array<char, 4096> line;
  while (pipe != nullptr && fgets(line.data(), line.size(), pipe) != nullptr) {
    const std::string text = line.data();
    if (text.starts_with("MARKER ")) lines.push_back(text);
  }
  EXPECT_TRUE(pipe != nullptr && pclose(pipe) == 0);
  return lines;
}

/// A job of one process, with `fill(node)` of its own.
template <class Fill>
nlohmann::json assembled(const fs::path& job, Fill fill, const AssembleOptions& options = {}) {
  NodeSpool node(job, "n1");
  node.add_process(0, 0, 1, kRegions);
  fill(&node);
  node.finish();
  const Result<AssembleReport> report = assemble(job, options);
  EXPECT_TRUE(report) << report.error().message;
  return read_ledger(job);
}

TEST(MarkersOfJob, say_what_was_open_where_the_process_was_killed) {
  const TemporaryFolder job;
  const auto ledger = assembled(job.path(), [](NodeSpool* node) {
    node->add_records(0, 1, {span_record(1, 1'000, 3'000, kOpenAtEnd)});
    node->add_exit(0, 5'000, 0, 9);
  });
  EXPECT_THAT(read_markers(job.path(), "open at end"),
              ElementsAre(AllOf(HasSubstr(" LOCATION:0,"), HasSubstr("MPI Rank 0: MPI_Send was"),
                                HasSubstr("killed by signal 9 (Killed)"))));
  // Its end is behind the last event, and so behind that of the trace.
  EXPECT_THAT(read_markers(job.path(), "incomplete process"),
              ElementsAre(AllOf(HasSubstr(" LOCATION_GROUP:0,"), HasSubstr("killed by signal 9"),
                                HasSubstr("Time: " + std::to_string(kEpochNs + 3'000) + ","))));
  EXPECT_EQ(ledger["assembly"]["markers"], 2);
  EXPECT_THAT(ledger["assembly"]["markers_left_out"], IsEmpty());
}

/// Nobody has ended.
TEST(MarkersOfJob, of_a_job_that_runs_on_tell_no_end) {
  const TemporaryFolder job;
  AssembleOptions options;
  options.is_snapshot = true;
  assembled(
      job.path(), [](NodeSpool* node) { node->add_records(0, 1, {begin_record(1, 1'000)}); },
      options);
  EXPECT_THAT(read_markers(job.path(), "open at end"),
              ElementsAre(AllOf(HasSubstr("MPI_Send was open where its thread's records end; "),
                                HasSubstr("the end of its process was not seen"))));
  EXPECT_THAT(read_markers(job.path(), "incomplete process"), IsEmpty());
}

TEST(MarkersOfJob, say_where_a_loss_is_and_what_it_cut) {
  const TemporaryFolder job;
  assembled(job.path(), [](NodeSpool* node) {
    node->add_records(0, 1,
                      {begin_record(1, 1'000),
                       aon::test::lost_record(LossReason::kPoolFull, 2'000, 4'000, 7, 1)});
    node->add_exit(0, 5'000, 0, 0);
  });
  const std::string at = std::to_string(kEpochNs + 2'000);
  EXPECT_THAT(read_markers(job.path(), "lost"),
              ElementsAre(AllOf(HasSubstr("Time: " + at + ", Duration 2000,"),
                                HasSubstr("MPI Rank 0: 7 records, pool full"))));
  EXPECT_THAT(read_markers(job.path(), "cut by a loss"),
              ElementsAre(AllOf(HasSubstr("Time: " + at), HasSubstr("MPI_Send: its end was"))));
}

TEST(MarkersOfJob, say_each_step_of_the_budget) {
  const TemporaryFolder job;
  assembled(job.path(), [](NodeSpool* node) {
    node->add_records(0, 1, {span_record(1, 1'000, 90'000)});
    node->add_exit(0, 90'000, 0, 0);
    const auto change = [&](uint32_t process, uint32_t site, uint32_t old_mode, uint32_t new_mode) {
      const BudgetDefinition one{process, site, old_mode, new_mode, 50'000};
      node->define(process, DefinitionType::kBudget, one);
    };
    change(0, 1, kModeFull, kModeSample + 3);
    change(0, kNcclProxySite, kModeSample, kModeSample + 1);
    const NcclAnswer heeded{NcclLevel::kNet, NcclLevel::kGpu, NcclLevel::kGpu};
    const NcclAnswer seen{NcclLevel::kGpu, NcclLevel::kGpu, NcclLevel::kOff};
    for (const NcclAnswer& answer : {heeded, seen})
      change(0, kNcclAskedSite, answer.word(), answer.asked == NcclLevel::kOff ? 0 : 7);
    change(spool::kNodeProcess, 0x10000, kModeSample + 1, kModeCount);
  });
  const std::string at = "Time: " + std::to_string(kEpochNs + 50'000);
  EXPECT_THAT(read_markers(job.path(), "budget: calls"),
              ElementsAre(AllOf(HasSubstr(at), HasSubstr(" LOCATION_GROUP:0,"),
                                HasSubstr("MPI_Send one in 4 timed, before each recorded"))));
  EXPECT_THAT(read_markers(job.path(), "NCCL's level"),
              ElementsAre(HasSubstr("MPI Rank 0: level net, before step, by the budget"),
                          HasSubstr("MPI Rank 0: level gpu, before net, as asked for")));
  EXPECT_THAT(read_markers(job.path(), "budget: samples and counts"),
              ElementsAre(AllOf(HasSubstr(" SYSTEM_TREE_NODE:1,"),
                                HasSubstr("n1: a provider samples or counts the least"))));
}

/// In the spool they are losses of nothing, so no stream may have them.
TEST(MarkersOfJob, say_when_an_agent_was_replaced) {
  const TemporaryFolder job;
  const auto ledger = assembled(job.path(), [](NodeSpool* node) {
    node->add_records(0, 1, {span_record(1, 1'000, 9'000'000)});
    node->add_exit(0, 9'000'000, 0, 0);
    for (const uint32_t worker : {2, 3}) {
      node->define(spool::kNodeProcess, DefinitionType::kEviction,
                   spool::agent_gap(worker, worker * 1'000'000, worker * 1'000'000 + 500'000));
    }
  });
  EXPECT_THAT(read_markers(job.path(), "agent restarted"),
              ElementsAre(HasSubstr(", Duration 500000, Scope: SYSTEM_TREE_NODE:1,"),
                          HasSubstr("worker 3 went on")));
  EXPECT_THAT(ledger["losses"], IsEmpty());
  EXPECT_EQ(ledger["job"]["complete"], true);
}

TEST(MarkersOfJob, say_when_a_clock_was_set) {
  const TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  node.add_process(0, 0, 1, kRegions);
  node.add_records(0, 1, {span_record(1, 1'000, 5'000'000'000)});
  const uint64_t at = 4'000'000'000;
  node.define(spool::kNodeProcess, DefinitionType::kClock,
              ClockDefinition{at, at, kEpochNs + at + 7'000'000'000, 0});
  node.finish();
  ASSERT_TRUE(assemble(job.path()).has_value());
  EXPECT_THAT(read_markers(job.path(), "clock set"), ElementsAre(HasSubstr("was set by +7.000 s")));
}

/// Room for one of a kind: that of the greatest loss. The rest is a marker and in the ledger.
TEST(MarkersOfJob, that_have_no_room_are_counted) {
  const TemporaryFolder job;
  AssembleOptions options;
  options.disk_cap_bytes = 64 * otf2::kMarkerBytes * otf2::kMarkerKindCount;
  const auto ledger = assembled(
      job.path(),
      [](NodeSpool* node) {
        std::vector<Record> records;
        for (uint64_t i = 1; i < 5; ++i) {
          records.push_back(
              aon::test::lost_record(LossReason::kPoolFull, i * 1000, i * 1000 + 100, i % 4));
          records.push_back(span_record(1, i * 1000 + 200, i * 1000 + 300));
        }
        node->add_records(0, 1, records);
        node->add_exit(0, 90'000, 0, 0);
      },
      options);
  EXPECT_THAT(read_markers(job.path(), "lost"), ElementsAre(HasSubstr(": 3 records")));
  EXPECT_THAT(read_markers(job.path(), "markers left out"),
              ElementsAre(AllOf(HasSubstr(" GLOBAL,"), HasSubstr("3 more of \"lost\""))));
  EXPECT_EQ(ledger["assembly"]["markers"], 1);
  EXPECT_EQ(ledger["assembly"]["markers_left_out"]["lost"], 3);
}

/// So an archive of which nothing is to be said is as others are; and the file of an older result
/// does not stay.
TEST(MarkersOfJob, without_any_there_is_no_file) {
  const TemporaryFolder job;
  std::ofstream(job.path() / "traces.marker") << "older";
  assembled(job.path(), [](NodeSpool* node) {
    node->add_records(0, 1, {span_record(1, 1'000, 3'000)});
    node->add_exit(0, 5'000, 0, 0);
  });
  EXPECT_FALSE(fs::exists(job.path() / "traces.marker"));
}

TEST(MarkersOfJob, in_shares_are_those_of_one_process) {
  const auto markers_by = [](uint32_t share_count) {
    const TemporaryFolder job;
    NodeSpool node(job.path(), "n1");
    for (const uint32_t rank : {0, 1, 2}) {
      node.add_process(rank, static_cast<int32_t>(rank), 3, kRegions);
      node.add_records(rank, 1,
                       {aon::test::lost_record(LossReason::kPoolFull, 100, 200, rank + 1),
                        span_record(1, 1'000, 3'000, kOpenAtEnd)});
      node.add_exit(rank, 5'000, 0, 9);
    }
    node.finish();
    AssembleOptions options;
    options.share_count = share_count;
    EXPECT_TRUE(assemble(job.path(), options).has_value());
    EXPECT_EQ(read_ledger(job.path())["assembly"]["shares"], share_count);
    std::vector<std::vector<std::string>> all;
    for (const char* category : {"lost", "open at end", "incomplete process"})
      all.push_back(read_markers(job.path(), category));
    return all;
  };
  const auto whole = markers_by(1);
  EXPECT_THAT(whole, ElementsAre(SizeIs(3), SizeIs(3), SizeIs(3)));
  EXPECT_EQ(markers_by(2), whole);
}

/// Of threads that are not in the archive they are of the process.
TEST(MarkersOfJob, of_what_is_not_in_the_archive_are_of_its_process) {
  const TemporaryFolder job;
  AssembleOptions options;
  options.otf2_locations = 1;
  assembled(
      job.path(),
      [](NodeSpool* node) {
        node->add_records(0, 1, {span_record(1, 1'000, 9'000)});
        node->add_records(0, 2, {span_record(1, 1'000, 3'000, kOpenAtEnd)});
        node->add_exit(0, 9'000, 0, 0);
      },
      options);
  EXPECT_THAT(read_markers(job.path(), "open at end"), ElementsAre(HasSubstr(" LOCATION_GROUP:0")));
}

}  // namespace
}  // namespace aon::writers
