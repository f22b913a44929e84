#include "tools/ledger_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/unit/folder_fixture.h"

namespace aon::tools {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

nlohmann::json small_ledger() {
  return nlohmann::json::parse(R"({
    "job": {"id": "1", "start": "2026-01-31T12:00:00.500Z", "end": "2026-01-31T12:00:02.750Z",
            "complete": true, "incomplete_ranks": []},
    "ranks": [
      {"rank": 0, "node": "n1", "emitted": 1200000, "lost": 0,
       "providers": {"mpi": {"state": "on"},
                     "perf": {"state": "degraded", "reason": "no PMU", "remedy": "ask"}}},
      {"rank": 1, "node": "n2", "emitted": 34567, "lost": 12,
       "providers": {"perf": {"state": "degraded", "reason": "no PMU", "remedy": "ask"}}},
      {"rank": null, "node": "n2", "emitted": 0, "lost": 0}],
    "losses": [{"rank": 1, "reason": "pool full", "count": 12}],
    "findings": ["one", "two", "three", "four"],
    "overhead": {"percent": 0.123}, "budget": {"percent": 1.0}})");
}

TEST(LedgerSummary, says_what_was_recorded) {
  const auto lines = summary_lines(small_ledger(), "/job");
  ASSERT_THAT(lines, SizeIs(8));
  EXPECT_THAT(lines[0], HasSubstr("/job"));
  EXPECT_EQ(lines[1], "2 ranks, 1 other process on 2 nodes, 2.250 s");
  EXPECT_EQ(lines[2], "1 234 567 records, 12 lost (12 pool full)");
  EXPECT_EQ(lines[3], "overhead 0.12 % of the ranks' CPU time (budget 1 %)");
  EXPECT_EQ(lines[6], "three");
  EXPECT_EQ(lines[7], "not collected: perf degraded on 2 processes: no PMU (ask)");
}

TEST(LedgerSummary, overhead_above_the_budget_is_told_in_seconds_too) {
  auto ledger = small_ledger();
  ledger["overhead"] = {{"percent", 15.0}, {"app_cpu_s", 0.008}, {"agent_cpu_s", 0.06}};
  EXPECT_EQ(summary_lines(ledger, "/job")[3],
            "overhead 15.00 % of the ranks' CPU time (budget 1 %): 0.068 s of CPU time in 2.250 s");
}

TEST(LedgerSummary, what_tables_and_the_archive_leave_out_is_told) {
  auto ledger = small_ledger();
  ledger["assembly"]["left_out_of_tables"] = {"/nccl/operations has one in 2"};
  ledger["assembly"]["metrics_left_out"] = {"the archive lacks a metric"};
  const auto lines = summary_lines(ledger, "/job");
  ASSERT_THAT(lines, SizeIs(10));
  EXPECT_EQ(lines[7], "/nccl/operations has one in 2");
  EXPECT_EQ(lines[8], "the archive lacks a metric");
}

TEST(LedgerSummary, overhead_says_that_cuptis_own_is_not_in_it) {
  auto ledger = small_ledger();
  ledger["ranks"][1]["providers"]["cupti"] = {{"state", "degraded"}, {"reason", "dear"}};
  EXPECT_THAT(summary_lines(ledger, "/job")[3],
              testing::EndsWith("(budget 1 %), CUPTI's own apart"));
  ledger["ranks"][1]["providers"]["cupti"]["reason"] = "dear; CUPTI took about 2 % of the time";
  EXPECT_THAT(summary_lines(ledger, "/job")[3],
              testing::EndsWith("(budget 1 %), CUPTI's own apart (aon.json tells it)"));
  ledger["ranks"][1]["providers"]["cupti"]["state"] = "off";
  EXPECT_THAT(summary_lines(ledger, "/job")[3], testing::EndsWith("(budget 1 %)"));
}

TEST(LedgerSummary, counts_a_process_once_to_which_an_agent_answered_too_late) {
  auto ledger = small_ledger();
  ledger["ranks"].push_back(
      {{"rank", nullptr}, {"node", "n2"}, {"emitted", 0}, {"lost", 0}, {"late_answer", true}});
  EXPECT_EQ(summary_lines(ledger, "/job")[1], "2 ranks, 1 other process on 2 nodes, 2.250 s");
}

TEST(LedgerSummary, says_the_energy_of_the_nodes) {
  auto ledger = small_ledger();
  ledger["energy"] = {{"joules", 12345.0},
                      {"seconds", 30.0},
                      {"nodes", 2},
                      {"covers", "packages and memory of the nodes, other jobs too"}};
  EXPECT_EQ(summary_lines(ledger, "/job")[4],
            "energy 12.35 kJ, 412 W (packages and memory of 2 nodes, node-wide)");
  ledger["energy"] = {
      {"joules", 7.25}, {"seconds", 0.0}, {"nodes", 1}, {"covers", "platform of the nodes"}};
  EXPECT_EQ(summary_lines(ledger, "/job")[4], "energy 7.2 J (platform of 1 node, node-wide)");
  ledger["energy"] = {{"joules", nullptr}, {"reason", "no RAPL"}};
  EXPECT_THAT(summary_lines(ledger, "/job")[4], Not(HasSubstr("energy")));
}

TEST(LedgerSummary, warns_before_anything_else) {
  auto ledger = small_ledger();
  ledger["assembly"]["warnings"] = {"profile.h5: no space left"};
  EXPECT_EQ(summary_lines(ledger, "/job")[1], "warning: profile.h5: no space left");
}

TEST(LedgerSummary, where_nothing_was_recorded_a_warning_says_why) {
  auto ledger = small_ledger();
  ledger["ranks"] = nlohmann::json::array();
  ledger["assembly"]["warnings"] = {"1 process on n1 could have no file"};
  EXPECT_THAT(summary_lines(ledger, "/job"),
              Contains("nothing was recorded: 1 process on n1 could have no file"));
}

TEST(LedgerSummary, what_the_user_left_out_is_no_cause_of_an_empty_ledger) {
  auto ledger = small_ledger();
  ledger["ranks"] = nlohmann::json::array();
  for (const char* reason : {"excluded by --without", "not in --providers"}) {
    ledger["nodes"] = {{{"node", "n1"}, {"providers", {{"mpi", {{"state", "off"}}}}}}};
    ledger["nodes"][0]["providers"]["mpi"]["reason"] = reason;
    EXPECT_THAT(summary_lines(ledger, "/job"),
                Contains("nothing was recorded: the program ended before it could be watched"));
  }
  ledger["nodes"][0]["providers"]["mpi"]["reason"] = "a is linked statically";
  EXPECT_THAT(summary_lines(ledger, "/job"),
              Contains("nothing was recorded: mpi is off: a is linked statically"));
}

TEST(LedgerSummary, a_variable_that_was_left_alone_is_named_where_nothing_was_recorded) {
  auto ledger = small_ledger();
  ledger["ranks"] = nlohmann::json::array();
  ledger["nodes"] = {{{"node", "n1"}, {"providers", {{"nccl", {{"state", "off"}}}}}}};
  auto& nccl = ledger["nodes"][0]["providers"]["nccl"];
  nccl["reason"] = "NCCL_PROFILER_PLUGIN was set by the user and is left alone";
  nccl["remedy"] = "unset NCCL_PROFILER_PLUGIN";
  ledger["nodes"].push_back(ledger["nodes"][0]);
  EXPECT_THAT(
      summary_lines(ledger, "/job"),
      Contains(testing::StartsWith(
          "nothing was recorded: NCCL_PROFILER_PLUGIN was set by the user and is left alone "
          "(unset NCCL_PROFILER_PLUGIN); no process called MPI")));
}

TEST(LedgerSummary, where_no_call_was_recorded_it_says_why) {
  const char* kWhy = "no call was recorded: no process called MPI";
  auto ledger = small_ledger();
  for (auto& rank : ledger["ranks"]) {
    rank["emitted"] = rank["lost"] = 0;
    rank["providers"] = {{"perf", {{"state", "on"}, {"emitted", 5}}}};
  }
  EXPECT_EQ(summary_lines(ledger, "/job")[2], "no calls recorded; 15 samples of counters");
  EXPECT_THAT(summary_lines(ledger, "/job")[3], testing::StartsWith(kWhy));
  ledger["nodes"] = {{{"node", "n1"}, {"providers", {{"mpi", {{"state", "off"}}}}}}};
  ledger["nodes"][0]["providers"]["mpi"]["reason"] = "a is linked statically";
  EXPECT_THAT(summary_lines(ledger, "/job"),
              Contains("no call was recorded: mpi is off: a is linked statically"));
  ledger["nodes"][0]["providers"]["mpi"]["reason"] = "excluded by --without";
  EXPECT_THAT(summary_lines(ledger, "/job"), Not(Contains(HasSubstr("no call was recorded"))));
  ledger["nodes"] = nlohmann::json::array();
  ledger["ranks"][0]["providers"]["mpi"] = {{"state", "on"}};
  EXPECT_THAT(summary_lines(ledger, "/job"), Not(Contains(HasSubstr("no call was recorded"))));
}

TEST(LedgerSummary, names_call_paths_where_no_call_was_recorded) {
  auto ledger = small_ledger();
  for (auto& rank : ledger["ranks"]) {
    rank["emitted"] = rank["lost"] = 0;
    rank["providers"] = {{"perf", {{"emitted", 5}}}, {"sampling", {{"emitted", 500}}}};
  }
  EXPECT_EQ(summary_lines(ledger, "/job")[2],
            "no calls recorded; 15 samples of counters, 1 500 of call paths");
  for (auto& rank : ledger["ranks"]) rank["providers"].erase("perf");
  EXPECT_EQ(summary_lines(ledger, "/job")[2],
            "no calls recorded; 0 samples of counters, 1 500 of call paths");
}

TEST(LedgerSummary, says_what_short_programs_need_where_nothing_was_recorded) {
  auto ledger = small_ledger();
  ledger["ranks"] = nlohmann::json::array();
  EXPECT_THAT(summary_lines(ledger, "/job"),
              Contains(HasSubstr("without MPI: aon-run --without mpi")));
}

TEST(LedgerSummary, leaves_out_what_a_wrapper_lacks_beside_processes_that_recorded) {
  auto ledger = small_ledger();
  ledger["ranks"][2] = {{"rank", nullptr}, {"node", "n1"}, {"emitted", 0}, {"lost", 0}};
  ledger["ranks"][2]["providers"]["mpi"] = {{"state", "off"}, {"reason", "no call"}};
  ledger["ranks"][2]["providers"]["counters"] = {{"state", "off"}, {"reason", "no call"}};
  const auto lines_of_mpi = testing::Contains(testing::StartsWith("mpi off on 1 process"));
  const auto lines_of_counters = testing::Contains(testing::StartsWith("counters off on 1 proc"));
  EXPECT_THAT(provider_lines(ledger), lines_of_mpi);
  EXPECT_THAT(provider_lines(ledger), lines_of_counters);
  ledger["ranks"][2]["followed_since"] = "2026-01-01T00:00:00Z";
  EXPECT_THAT(provider_lines(ledger), Not(lines_of_mpi));
  EXPECT_THAT(provider_lines(ledger), Not(lines_of_counters));
  for (auto& rank : ledger["ranks"]) rank["emitted"] = 0;
  EXPECT_THAT(provider_lines(ledger), lines_of_mpi) << "nobody recorded";
}

TEST(LedgerSummary, names_incomplete_ranks) {
  auto ledger = small_ledger();
  ledger["job"]["complete"] = false;
  for (int rank = 0; rank < 10; ++rank) ledger["job"]["incomplete_ranks"].push_back(rank);
  EXPECT_EQ(summary_lines(ledger, "/job")[4],
            "incomplete ranks: 0, 1, 2, 3, 4, 5, 6, 7 and 2 more");
}

TEST(LedgerSummary, claims_nothing_of_what_nobody_saw) {
  auto ledger = small_ledger();
  for (auto& rank : ledger["ranks"]) rank["lost"] = 0;
  EXPECT_EQ(summary_lines(ledger, "/job")[2], "1 234 567 records, none lost");
  ledger["job"]["complete"] = false;
  ledger["job"]["incomplete_ranks"] = {0, 1};
  ledger["job"]["unseen_ends"] = 2;
  EXPECT_EQ(summary_lines(ledger, "/job")[2],
            "1 234 567 records, what else there was is not known");
  EXPECT_EQ(summary_lines(ledger, "/job")[4], "incomplete ranks: 0, 1");
  ledger["ranks"][0]["lost"] = 5;
  EXPECT_THAT(
      summary_lines(ledger, "/job")[2],
      testing::MatchesRegex("1 234 567 records, 5 lost.*, what else there was is not known"));
  ledger["job"]["lost_nodes"] = {"n2"};
  EXPECT_EQ(summary_lines(ledger, "/job")[4],
            "nodes that were lost, or their agents: n2; incomplete ranks: 0, 1");
  ledger["job"]["lost_nodes"] = {"n2", "n3"};
  ledger["job"]["refused_nodes"] = {{"n3", "no room for it in /job"}};
  EXPECT_EQ(summary_lines(ledger, "/job")[4],
            "nodes that were lost, or their agents: n2; spools that stay on their nodes: n3 (no "
            "room for it in /job); incomplete ranks: 0, 1");
}

TEST(LedgerSummary, does_not_count_the_unknown_node_of_a_rank_that_never_came) {
  auto ledger = small_ledger();
  ledger["ranks"].push_back({{"rank", 2}, {"state", "no records"}});
  EXPECT_EQ(summary_lines(ledger, "/job")[1], "3 ranks, 1 other process on 2 nodes, 2.250 s");
}

TEST(LedgerSummary, cuts_what_a_provider_says_at_length) {
  auto ledger = small_ledger();
  ledger["ranks"][0]["providers"]["perf"]["reason"] = std::string(300, 'x');
  for (const std::string& line : provider_lines(ledger))
    EXPECT_LE(line.size(), kMaxProviderLineBytes);
  EXPECT_THAT(provider_lines(ledger)[1], HasSubstr("see aon.json"));
}

TEST(LedgerSummary, says_what_only_the_node_knows) {
  auto ledger = small_ledger();
  ledger["nodes"] = nlohmann::json::parse(R"([{"node": "n1", "providers": {
      "perf": {"state": "degraded", "reason": "no PMU"},
      "mpi": {"state": "degraded", "reason": "a is linked statically", "remedy": "link it"}}}])");
  const auto lines = provider_lines(ledger);
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_EQ(lines[0], "mpi degraded on node n1: a is linked statically (link it)")
      << "what the trace lacks comes before what its counters lack";
}

TEST(LedgerSummary, says_once_what_many_nodes_say) {
  auto ledger = small_ledger();
  const auto off = [](const char* node, const char* reason) {
    return nlohmann::json{{"node", node},
                          {"providers", {{"energy", {{"state", "off"}, {"reason", reason}}}}}};
  };
  ledger["nodes"] = {off("n1", "no RAPL"), off("n1", "no RAPL"), off("n2", "no RAPL"),
                     off("n3", "not permitted")};
  const auto lines = provider_lines(ledger);
  EXPECT_THAT(lines, Contains("energy off on 2 nodes: no RAPL"));
  EXPECT_THAT(lines, Contains("energy off on node n3: not permitted"));
}

TEST(LedgerSummary, says_wrong_settings_first_and_nothing_of_what_the_user_left_out) {
  auto ledger = small_ledger();
  ledger["ranks"][0]["providers"]["cupti"] = {{"state", "off"}, {"reason", "not in --providers"}};
  ledger["ranks"][0]["providers"]["nccl"] = {{"state", "off"}, {"reason", "excluded by --without"}};
  ledger["ranks"][0]["providers"]["a"] = {{"state", "off"}, {"reason", "no b"}};
  ledger["nodes"] = nlohmann::json::parse(R"([{"node": "n1", "providers": {
      "cupti": {"state": "off", "reason": "not in --providers"},
      "options": {"state": "degraded", "reason": "left out: x"}}}])");
  const auto lines = provider_lines(ledger);
  EXPECT_EQ(lines[0], "options degraded on node n1: left out: x");
  EXPECT_EQ(lines[1], "a off on 1 process: no b");
  for (const std::string& line : lines) {
    EXPECT_THAT(line, Not(HasSubstr("cupti")));
    EXPECT_THAT(line, Not(HasSubstr("nccl")));
  }
}

TEST(LedgerSummary, never_has_more_than_ten_lines) {
  auto ledger = small_ledger();
  for (int i = 0; i < 30; ++i)
    ledger["ranks"][0]["providers"]["p" + std::to_string(i)] = {{"state", "off"}};
  EXPECT_THAT(summary_lines(ledger, "/job"), SizeIs(kMaxSummaryLines));
}

TEST(LedgerSummary, survives_a_ledger_of_the_wrong_shape) {
  for (const char* text : {"{}", R"({"ranks": 3, "losses": {}, "job": []})",
                           R"({"ranks": [1, {"rank": "x", "emitted": "many", "providers": [2]}]})",
                           R"({"job": {"start": "soon", "end": 7}, "findings": "none"})"}) {
    EXPECT_THAT(summary_lines(nlohmann::json::parse(text), "/job"), Not(IsEmpty())) << text;
  }
}

TEST(LedgerSummary, groups_digits) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1 000");
  EXPECT_EQ(grouped(12345678), "12 345 678");
}

class LedgerFile : public test::FolderFixture {};

TEST_F(LedgerFile, says_what_to_do_where_there_is_none) {
  const auto missing = read_ledger(folder_);
  ASSERT_FALSE(missing.has_value());
  EXPECT_THAT(missing.error().message, HasSubstr("aon finalize " + folder_));
  std::ofstream(path("aon.json")) << "{\"ranks\": [";
  const auto damaged = read_ledger(folder_);
  ASSERT_FALSE(damaged.has_value());
  EXPECT_EQ(damaged.error().code, Code::kDamaged);
}

std::string content(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class SummaryFile : public test::FolderFixture {};

TEST_F(SummaryFile, names_the_archive_of_samples) {
  std::filesystem::create_directories(path("samples"));
  for (const char* name : {"samples/traces.otf2", "profile.h5"}) std::ofstream(path(name)) << "x";
  EXPECT_THAT(summary_lines(small_ledger(), folder_)[0],
              testing::EndsWith(": samples/traces.otf2, profile.h5"));
}

/// One that says the same is not at stake where the disk is full.
TEST_F(SummaryFile, goes_only_where_it_is_of_another_archive) {
  ASSERT_TRUE(leave_summary(folder_, "good\n"));
  EXPECT_EQ(content(path("summary.txt")), "good\n");
  const std::string in_the_way = path(".assemble-summary-" + std::to_string(getpid()));
  std::filesystem::create_directories(in_the_way + "/a");
  EXPECT_TRUE(leave_summary(folder_, "good\n"));
  EXPECT_EQ(content(path("summary.txt")), "good\n");
  EXPECT_FALSE(leave_summary(folder_, "other\n"));
  EXPECT_FALSE(std::filesystem::exists(path("summary.txt")));
  EXPECT_FALSE(leave_summary(folder_, ""));
}

}  // namespace
}  // namespace aon::tools
