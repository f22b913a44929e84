// Joules in the ledger, where several agents recorded on one node.

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/unit/writers/ledger_law.h"
#include "tests/unit/writers/spool_fixture.h"
#include "writers/assemble/assemble.h"

namespace aon::writers {
namespace {

using nlohmann::json;
using test::kRegions;
using test::NodeSpool;
using test::read_ledger;
using test::TemporaryFolder;

/// The spool of an agent of node n1, under `name`, which saw `joules` in `seconds`.
void add_agent(const std::filesystem::path& job, const std::string& name, int32_t rank,
               double joules, double seconds, const char* metric = "energy::package-0") {
  NodeSpool node(job, "n1");
  MetricDefinition package{};
  package.id = 0x80000002;
  package.node_wide = 1;
  node.add_process(0, rank, 2, kRegions);
  node.define(spool::kNodeProcess, DefinitionType::kMetric, package, {metric, "J", "energy"});
  const auto end_ns = 1'000 + static_cast<uint64_t>(seconds * 1e9);
  node.add_records(
      spool::kNodeProcess, spool::kSeriesSlot,
      {test::sample_record(package.id, 1'000, 0), test::sample_record(package.id, end_ns, joules)});
  node.finish();
  std::filesystem::rename(node.folder(), node.folder().parent_path() / name);
}

TEST(Assemble, ledger_has_the_energy_of_a_node_once_where_several_agents_saw_it) {
  TemporaryFolder job;
  add_agent(job.path(), "n1~2", 1, 299.5, 1.5);
  add_agent(job.path(), "n1~3", 0, 300.5, 2);
  ASSERT_TRUE(assemble(job.path()).has_value());
  const json ledger = read_ledger(job.path());
  EXPECT_EQ(ledger["energy"]["joules"], 300.5);
  EXPECT_EQ(ledger["energy"]["seconds"], 2.0);
  EXPECT_EQ(ledger["energy"]["nodes"], 1);
}

TEST(Assemble, ledger_has_the_seconds_of_all_joules_where_the_first_samples_were_evicted) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  MetricDefinition package{};
  package.id = 0x80000002;
  package.node_wide = 1;
  node.add_process(0, 0, 1, kRegions);
  node.define(spool::kNodeProcess, DefinitionType::kMetric, package,
              {"energy::package-0", "J", "energy"});
  LossDefinition loss{};
  loss.process = spool::kNodeProcess;
  loss.slot = spool::kSeriesSlot;
  loss.reason = static_cast<uint32_t>(LossReason::kEvictedByCap);
  loss.count = 10;
  loss.start_ticks = 1'000;
  loss.end_ticks = 1'000'000'000;
  node.define(spool::kNodeProcess, DefinitionType::kEviction, loss);
  node.add_records(spool::kNodeProcess, spool::kSeriesSlot,
                   {test::sample_record(package.id, 1'500'000'000, 150),
                    test::sample_record(package.id, 2'000'001'000, 200)},
                   0, loss.count);
  node.finish();
  ASSERT_TRUE(assemble(job.path()).has_value());
  const json ledger = read_ledger(job.path());
  EXPECT_EQ(ledger["energy"]["joules"], 200);
  EXPECT_EQ(ledger["energy"]["seconds"], 2.0);
}

TEST(Assemble, ledger_says_whose_joules_they_are) {
  const std::string all = " of the nodes, other jobs on them included";
  for (const auto& [metric, covers] : {std::pair("energy::package-0", "packages and memory"),
                                       std::pair("energy::platform-0", "platform")}) {
    TemporaryFolder job;
    add_agent(job.path(), "n1~2", 0, 90, 1.5, metric);
    ASSERT_TRUE(assemble(job.path()).has_value());
    EXPECT_EQ(read_ledger(job.path())["energy"]["covers"], covers + all);
  }
}

}  // namespace
}  // namespace aon::writers
