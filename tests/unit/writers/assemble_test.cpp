// A whole job directory: who is which rank, the law of the ledger, publication.

#include "writers/assemble/assemble.h"

#include <aon/ring.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/lease.h"
#include "core/spool/block_writer.h"
#include "core/spool/files.h"
#include "tests/unit/writers/ledger_law.h"
#include "tests/unit/writers/spool_fixture.h"
#include "writers/assemble/model.h"

namespace aon::writers {
namespace {

using nlohmann::json;
using test::expect_law;
using test::kRegions;
using test::lost_for;
using test::NodeSpool;
using test::read_ledger;
using test::spans;
using test::TemporaryFolder;

TEST(Assemble, ranks_come_first_and_others_after_all_of_them) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  node.add_process(0, -1, 0, kRegions);  // a helper without rank
  node.add_process(1, 1, 3, kRegions);
  node.add_process(2, 1, 3, kRegions);  // a second claim to rank 1
  for (uint32_t process = 0; process < 3; ++process) node.add_records(process, 1, spans(1));
  node.finish();
  const auto parts = build_model(job.path(), kDefaultOtf2Locations);
  ASSERT_TRUE(parts.has_value());
  std::vector<std::string> names;
  for (const Group& group : (*parts)->model.groups) names.push_back(group.name);
  EXPECT_THAT(names, testing::ElementsAre("MPI Rank 0", "MPI Rank 1", "MPI Rank 2", "solver (1002)",
                                          "solver (1000)"));
  EXPECT_EQ((*parts)->model.groups[0].process, nullptr);
  EXPECT_EQ((*parts)->model.groups[1].process->start.pid, 1001);
}

/// A shell or wrapper that the agent followed before it had started the program.
void add_followed(NodeSpool* node, uint32_t process, int32_t rank, int32_t signal = 0) {
  ProcessStartDefinition start{};
  start.process = process;
  start.pid = static_cast<int32_t>(1000 + process);
  start.attach_ticks = 1;
  start.rank = rank;
  start.world_size = 2;
  node->define(process, DefinitionType::kProcessStart, start, {"/bin/sh", "n1"});
  ProviderDefinition off{};
  off.state = ProviderState::kOff;
  node->define(process, DefinitionType::kProvider, off, {"mpi", "no call", ""});
  node->add_exit(process, 80'000, signal == 0 ? 0 : -1, signal);
}

TEST(Assemble, rank_is_who_recorded_and_not_who_was_followed_before_it) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  add_followed(&node, 0, 0);
  add_followed(&node, 1, 1);
  node.attach_ticks = 50;
  node.add_process(2, 0, 2, kRegions);
  node.add_records(2, 1, spans(1));
  node.add_exit(2, 80'000, 0, 0);
  node.finish();
  ASSERT_TRUE(assemble(job.path()).has_value());
  const json ledger = read_ledger(job.path());
  expect_law(ledger);
  EXPECT_EQ(ledger["ranks"][0]["pid"], 1002);
  EXPECT_FALSE(ledger["ranks"][0].contains("followed_since"));
  EXPECT_EQ(ledger["ranks"][1]["pid"], 1001) << "nobody else has its rank";
  EXPECT_TRUE(ledger["ranks"][2]["rank"].is_null());
  EXPECT_EQ(ledger["ranks"][2]["pid"], 1000);
  EXPECT_TRUE(ledger["ranks"][2].contains("followed_since"));
  EXPECT_TRUE(ledger["job"]["complete"]);
  EXPECT_FALSE(ledger["assembly"]["communication_complete"]) << "of rank 1";
}

TEST(Assemble, a_wrapper_beside_the_ranks_takes_nothing_from_their_communication) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  add_followed(&node, 0, 0);
  for (uint32_t process = 1; process < 3; ++process) {
    node.add_process(process, static_cast<int32_t>(process) - 1, 2, kRegions);
    node.add_records(process, 1, spans(1));
    node.add_exit(process, 80'000, 0, 0);
  }
  node.finish();
  ASSERT_TRUE(assemble(job.path()).has_value());
  EXPECT_TRUE(read_ledger(job.path())["assembly"]["communication_complete"]);
}

/// Under one aon-run: a program that is only followed, and one that records, with ranks of one
/// number. Whoever ended before the other began did not start it.
TEST(Assemble, a_shell_that_is_killed_above_its_rank_takes_nothing_from_the_job_but_a_rank_does) {
  const auto incomplete = [](uint64_t rank_attach_ticks) {
    TemporaryFolder job;
    NodeSpool node(job.path(), "n1");
    add_followed(&node, 0, 0, 9);
    node.attach_ticks = rank_attach_ticks;
    node.add_process(1, 0, 1, kRegions);
    node.add_records(1, 1, spans(1, rank_attach_ticks));
    node.add_exit(1, 180'000, 0, 0);
    node.finish();
    EXPECT_TRUE(assemble(job.path()).has_value());
    return read_ledger(job.path())["job"]["incomplete_processes"].size();
  };
  EXPECT_EQ(incomplete(50), 0u);
  EXPECT_EQ(incomplete(90'000), 1u);
}

TEST(Assemble, a_rank_that_was_followed_and_killed_is_missing_beside_others_that_were) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  add_followed(&node, 0, 0);
  add_followed(&node, 1, 1);
  add_followed(&node, 2, 1, 9);  // of another program of the launch
  node.finish();
  ASSERT_TRUE(assemble(job.path()).has_value());
  const json ledger = read_ledger(job.path());
  EXPECT_FALSE(ledger["job"]["complete"]);
  EXPECT_EQ(ledger["job"]["incomplete_processes"][0]["pid"], 1002);
}

TEST(Assemble, ledger_law_holds_with_every_kind_of_loss) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  node.add_process(0, 0, 1, kRegions);
  node.add_records(0, 1, spans(100));
  node.add_records(0, 1, {test::lost_record(LossReason::kPoolFull, 20'000, 21'000, 5)});
  node.add_records(0, 1, spans(100, 30'000), 0, 11);  // 11 records are missing here
  node.add_records(0, 2, spans(10));
  StreamDefinition& main_thread = node.stream(0, 1);
  main_thread.refused = 8;  // 5 of them told by a record
  main_thread.stream_cut = 3;
  main_thread.last_refused_ticks = 70'000;
  node.add_exit(0, 80'000, 0, 0);
  node.finish();
  ASSERT_TRUE(assemble(job.path()).has_value());
  const json ledger = read_ledger(job.path());
  expect_law(ledger);
  EXPECT_EQ(ledger["ranks"][0]["spooled"], 210);
  EXPECT_EQ(lost_for(ledger, "pool full"), 8u);
  EXPECT_EQ(lost_for(ledger, "damaged"), 11u);
  EXPECT_EQ(lost_for(ledger, "stream cut"), 3u);
  EXPECT_EQ(ledger["ranks"][0]["threads"].size(), 2u);
  EXPECT_EQ(ledger["ranks"][0]["threads"][1]["location"], uint64_t{1} << 32);
  EXPECT_TRUE(ledger["job"]["complete"]);
  EXPECT_FALSE(ledger["assembly"]["communication_complete"]);
}

TEST(Assemble, claims_no_complete_communication_behind_a_pause) {
  for (const uint64_t level : {uint64_t{1}, uint64_t{0}}) {
    TemporaryFolder job;
    NodeSpool node(job.path(), "n1");
    node.add_process(0, 0, 1, kRegions);
    std::vector<Record> records = spans(1);
    records[0].head.a32 = static_cast<uint32_t>(ValueType::kSigned);  // an MPI_Pcontrol
    records[0].head.a64 = level;
    node.add_records(0, 1, records);
    node.add_exit(0, 80'000, 0, 0);
    node.finish();
    ASSERT_TRUE(assemble(job.path()).has_value());
    const json assembly = read_ledger(job.path())["assembly"];
    EXPECT_EQ(assembly["pauses"], level == 0 ? 1 : 0);
    EXPECT_EQ(assembly["communication_complete"], level != 0);
  }
}

TEST(Assemble, claims_what_the_archive_claims_of_communication) {
  for (const uint32_t most : {2, 1}) {
    TemporaryFolder job;
    NodeSpool node(job.path(), "n1");
    node.add_process(0, 0, 1, kRegions);
    for (const uint16_t slot : {1, 2}) node.add_records(0, slot, spans(1));
    node.add_exit(0, 80'000, 0, 0);
    node.finish();
    AssembleOptions options;
    options.otf2_locations = most;  // 1: a thread is not in the archive
    ASSERT_TRUE(assemble(job.path(), options).has_value());
    std::ifstream file(job.path() / "traces.otf2");
    const std::string anchor{std::istreambuf_iterator<char>(file), {}};
    const std::string key = "OTF2::MPI_COMMUNICATION_COMPLETE";
    const std::string claim = anchor.substr(anchor.find(key) + key.size(), 8);
    EXPECT_NE(claim.find(most == 2 ? "true" : "false"), std::string::npos);
    EXPECT_EQ(read_ledger(job.path())["assembly"]["communication_complete"], most == 2);
  }
}

TEST(Assemble, says_so_where_the_counts_of_the_agent_do_not_add_up) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  node.add_process(0, 0, 1, kRegions);
  node.add_records(0, 1, spans(100));
  node.add_records(0, 1, {test::lost_record(LossReason::kPoolFull, 20'000, 21'000, 5)});
  node.stream(0, 1).refused = 3;  // and yet a record tells of five
  node.add_exit(0, 80'000, 0, 0);
  node.finish();
  ASSERT_TRUE(assemble(job.path()).has_value());
  const json ledger = read_ledger(job.path());
  const json& thread = ledger["ranks"][0]["threads"][0];
  EXPECT_EQ(thread["emitted"], 103);
  EXPECT_EQ(thread["spooled"], 100);
  EXPECT_EQ(thread["lost"], 5);
  ASSERT_EQ(ledger["assembly"]["warnings"].size(), 1u);
  const std::string warning = ledger["assembly"]["warnings"][0];
  EXPECT_NE(warning.find("do not add up"), std::string::npos) << warning;
}

TEST(Assemble, tells_of_definitions_that_are_missing) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  node.add_process(0, 0, 1, kRegions);
  node.add_records(0, 1, spans(100));
  StreamDefinition& refused = node.stream(0, kDefinitionSlot);
  refused.refused = 2;
  refused.stream_cut = 40;
  node.add_exit(0, 80'000, 0, 0);
  node.finish();
  ASSERT_TRUE(assemble(job.path()).has_value());
  const json ledger = read_ledger(job.path());
  expect_law(ledger);
  EXPECT_EQ(ledger["ranks"][0]["threads"].size(), 1u);
  EXPECT_EQ(ledger["ranks"][0]["lost_definitions"], (json{{"pool full", 2}, {"disk", 40}}));
  const std::string finding = ledger["findings"][0];
  EXPECT_EQ(finding.rfind("42 definitions are lost", 0), 0u) << finding;
  EXPECT_NE(finding.find("--disk"), std::string::npos) << finding;
}

TEST(Assemble, ledger_has_energy_of_nodes_and_bytes_of_processes) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  node.add_process(0, 0, 1, kRegions);
  node.add_records(0, 1, spans(1));
  MetricDefinition package{};
  package.id = 0x80000002;
  package.node_wide = 1;
  node.define(spool::kNodeProcess, DefinitionType::kMetric, package,
              {"energy::package-0", "J", "energy"});
  node.add_records(spool::kNodeProcess, spool::kSeriesSlot,
                   {test::sample_record(package.id, 1'000, 0),
                    test::sample_record(package.id, 2'000'001'000, 300.5)});
  MetricDefinition written{};
  written.id = 0x80000004;
  node.define(0, DefinitionType::kMetric, written, {"process::io-written", "By", "bytes"});
  node.add_records(0, spool::kSeriesSlot, {test::sample_record(written.id, 1'500, 4096)});
  node.finish();
  ASSERT_TRUE(assemble(job.path()).has_value());
  const json ledger = read_ledger(job.path());
  EXPECT_EQ(ledger["energy"]["joules"], 300.5);
  EXPECT_DOUBLE_EQ(ledger["energy"]["seconds"].get<double>(), 2.0);
  EXPECT_EQ(ledger["energy"]["nodes"], 1);
  EXPECT_EQ(ledger["nodes"][0]["energy"]["domains"]["package-0"], 300.5);
  EXPECT_EQ(ledger["nodes"][0]["energy"]["node_wide"], true);
  EXPECT_EQ(ledger["ranks"][0]["io_bytes"], json({{"io-written", 4096}}));
}

TEST(Assemble, samples_that_come_late_keep_their_time) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  node.add_process(0, 0, 1, kRegions);
  MetricDefinition power{};
  power.id = 0x80000002;
  power.node_wide = 1;
  node.define(spool::kNodeProcess, DefinitionType::kMetric, power, {"nvml::power", "W", "power"});
  node.add_records(
      spool::kNodeProcess, spool::kSeriesSlot,
      {test::sample_record(power.id, 3'000, 0), test::sample_record(power.id, 1'000, 0)});
  node.add_records(spool::kNodeProcess, spool::kSeriesSlot,
                   {test::sample_record(power.id, 2'000, 0)});
  node.finish();
  ASSERT_TRUE(assemble(job.path()).has_value());
  const std::string text = read_ledger(job.path()).dump();
  EXPECT_NE(text.find("\"clamped_times\":0"), std::string::npos) << text;
}

TEST(Assemble, ledger_says_why_it_has_no_energy) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  node.add_process(0, 0, 1, kRegions);
  node.add_records(0, 1, spans(1));
  ProviderDefinition off{};
  off.state = ProviderState::kOff;
  node.define(spool::kNodeProcess, DefinitionType::kProvider, off,
              {"energy", "RAPL is readable by root only", "chmod a+r"});
  node.finish();
  ASSERT_TRUE(assemble(job.path()).has_value());
  const json ledger = read_ledger(job.path());
  EXPECT_TRUE(ledger["energy"]["joules"].is_null());
  EXPECT_EQ(ledger["energy"]["reason"], "RAPL is readable by root only");
  EXPECT_TRUE(ledger["ranks"][0]["io_bytes"].is_null());
}

/// What lies before it are all samples of a program that was sampled as it began.
TEST(Assemble, tells_of_call_samples_that_are_before_the_window) {
  for (const bool has_samples : {true, false}) {
    TemporaryFolder job;
    NodeSpool node(job.path(), "n1");
    node.add_process(0, 0, 1, kRegions);
    Record sample{};
    sample.head.start_ticks = 1000;
    sample.head.kind = RecordKind::kCallSample;
    sample.head.slot_count = 1;
    sample.head.a32 = 1000;  // its thread
    if (has_samples) node.add_records(0, spool::kCallSampleSlot, {sample});
    node.add_records(0, 1, spans(1000));
    node.add_records(0, 1, spans(1, 2'000'000'000));
    node.finish();
    AssembleOptions options;
    options.disk_cap_bytes = 1;
    const Result<AssembleReport> report = assemble(job.path(), options);
    ASSERT_TRUE(report.has_value()) << report.error().message;
    EXPECT_FALSE(std::filesystem::exists(job.path() / "samples" / "traces.otf2"));
    EXPECT_THAT(report->warnings,
                testing::Contains(testing::HasSubstr(
                    has_samples ? "archive, samples/traces.otf2 (missing where all samples are "
                                  "earlier), and in profile.h5"
                                : "archive, and in profile.h5")));
  }
}

TEST(Assemble, killed_and_missing_ranks_are_incomplete) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  for (uint32_t rank = 0; rank < 2; ++rank) {
    node.add_process(rank, static_cast<int32_t>(rank), 3, kRegions);
    node.add_records(rank, 1, spans(2));
    node.add_exit(rank, 80'000, rank == 0 ? 0 : -1, rank == 0 ? 0 : 9);
  }
  node.finish();
  ASSERT_TRUE(assemble(job.path()).has_value());
  const json ledger = read_ledger(job.path());
  EXPECT_FALSE(ledger["job"]["complete"]);
  EXPECT_EQ(ledger["job"]["incomplete_ranks"], json::parse("[1, 2]"));
  EXPECT_EQ(ledger["ranks"][1]["exit"]["signal"], 9);
  EXPECT_TRUE(ledger["ranks"][1]["exit"]["code"].is_null());
}

TEST(Assemble, what_was_told_last_and_is_cut_off_leaves_the_job_incomplete) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  node.add_process(0, 0, 1, kRegions);
  node.add_exit(0, 80'000, 0, 0);
  node.finish();
  spool::DefinitionBlockWriter writer;
  writer.add(DefinitionType::kCounts, CountsDefinition{0, 1, 0, 0, 7});
  spool::BlockSealer sealer;
  std::vector<uint8_t> last;
  ASSERT_TRUE(writer.seal(&sealer, 0, 2, 1, &last).has_value());
  std::ofstream(node.folder() / spool::kDefinitionsFile, std::ios::app | std::ios::binary)
      .write(reinterpret_cast<const char*>(last.data()), static_cast<long>(last.size()) - 1);
  ASSERT_TRUE(assemble(job.path()).has_value());
  const json ledger = read_ledger(job.path());
  EXPECT_EQ(ledger["ranks"][0]["exit"]["code"], 0);
  EXPECT_FALSE(ledger["job"]["complete"]);
  EXPECT_THAT(ledger["job"]["reason"].get<std::string>(), testing::HasSubstr("cut off"));
}

TEST(Assemble, damaged_block_costs_only_itself) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  node.add_process(0, 0, 1, kRegions);
  node.add_records(0, 1, spans(1000));
  const auto first_bytes = std::filesystem::file_size(node.segment(0));
  node.add_records(0, 1, spans(1000, 200'000));
  node.finish();
  std::fstream file(node.segment(0), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(first_bytes) - 20);
  file.write("damage", 6);
  file.close();
  ASSERT_TRUE(assemble(job.path()).has_value());
  const json ledger = read_ledger(job.path());
  expect_law(ledger);
  EXPECT_EQ(ledger["ranks"][0]["emitted"], 2000);
  EXPECT_EQ(lost_for(ledger, "damaged"), 1000u);
}

TEST(Assemble, is_repeatable_and_replaces_the_older_result) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  node.add_process(0, 0, 1, kRegions);
  node.add_records(0, 1, spans(10));
  node.finish();
  ASSERT_TRUE(assemble(job.path()).has_value());
  std::ofstream(job.path() / "traces" / "stale") << "x";
  ASSERT_TRUE(assemble(job.path()).has_value());
  EXPECT_FALSE(std::filesystem::exists(job.path() / "traces" / "stale"));
  for (const auto& entry : std::filesystem::directory_iterator(job.path())) {
    EXPECT_NE(entry.path().filename().string()[0], '.') << entry.path();
  }
  EXPECT_FALSE(std::filesystem::exists(job.path() / "assemble.lease"));
}

TEST(Assemble, two_do_not_work_at_the_same_time) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  node.add_process(0, 0, 1, kRegions);
  node.add_records(0, 1, spans(10));
  node.finish();
  Result<Lease> lease = Lease::take((job.path() / "assemble.lease").string());
  ASSERT_TRUE(lease.has_value());
  const Result<AssembleReport> report = assemble(job.path());
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().code, Code::kBusy);
  EXPECT_FALSE(std::filesystem::exists(job.path() / "traces.otf2"));
}

TEST(Assemble, empty_job_is_an_error_and_leaves_nothing) {
  TemporaryFolder job;
  std::filesystem::create_directories(job.path() / "spool" / "n1");
  const Result<AssembleReport> report = assemble(job.path());
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().code, Code::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(job.path() / "aon.json"));
}

TEST(Assemble, formats_that_are_not_wanted_are_not_written) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  node.add_process(0, 0, 1, kRegions);
  node.add_records(0, 1, spans(10));
  node.finish();
  AssembleOptions options;
  options.writes_otf2 = false;
  ASSERT_TRUE(assemble(job.path(), options).has_value());
  EXPECT_FALSE(std::filesystem::exists(job.path() / "traces.otf2"));
  EXPECT_TRUE(std::filesystem::exists(job.path() / "profile.h5"));
  EXPECT_TRUE(std::filesystem::exists(job.path() / "aon.json"));
}

TEST(Assemble, spool_goes_when_told_and_only_then) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  node.add_process(0, 0, 1, kRegions);
  node.add_records(0, 1, spans(10));
  node.finish();
  ASSERT_TRUE(assemble(job.path()).has_value());
  EXPECT_TRUE(std::filesystem::exists(job.path() / "spool"));
  AssembleOptions options;
  options.drops_spool = true;
  options.may_drop_spool = [] { return false; };  // somebody still writes to it
  const Result<AssembleReport> kept = assemble(job.path(), options);
  ASSERT_TRUE(kept.has_value());
  EXPECT_TRUE(std::filesystem::exists(job.path() / "spool"));
  EXPECT_EQ(kept->warnings.size(), 1u);
  options.may_drop_spool = [] { return true; };
  ASSERT_TRUE(assemble(job.path(), options).has_value());
  EXPECT_FALSE(std::filesystem::exists(job.path() / "spool"));
  EXPECT_TRUE(std::filesystem::exists(job.path() / "traces.otf2"));
}

}  // namespace
}  // namespace aon::writers
