// Losses in the ledger: how long they last, which regions they cut, and what share they are.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/unit/writers/ledger_law.h"
#include "tests/unit/writers/spool_fixture.h"
#include "writers/assemble/assemble.h"

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

/// Of the only loss in the ledger.
uint64_t loss_duration_ns(const json& ledger) {
  const json& loss = ledger["losses"].at(0);
  return loss["end_ns"].get<uint64_t>() - loss["start_ns"].get<uint64_t>();
}

TEST(Assemble, loss_behind_the_last_record_lasts_up_to_the_end_of_its_process) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  node.add_process(0, 0, 1, kRegions);
  node.add_records(0, 1, {test::begin_record(1, 1'000), test::span_record(1, 2'000, 3'000)});
  node.stream(0, 1).refused = 7;  // and it never had room again, so no record tells of them
  node.add_exit(0, 80'000, 0, 0);
  node.finish();
  ASSERT_TRUE(assemble(job.path()).has_value());
  const json ledger = read_ledger(job.path());
  expect_law(ledger);
  EXPECT_EQ(lost_for(ledger, "pool full"), 7u);
  EXPECT_EQ(loss_duration_ns(ledger), 77'000u);
  EXPECT_EQ(ledger["assembly"]["cut_regions"], 1);
  EXPECT_EQ(ledger["assembly"]["open_regions"], 0);
}

TEST(Assemble, loss_of_a_process_whose_end_was_not_seen_lasts_up_to_its_last_record) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  node.add_process(0, 0, 1, kRegions);
  node.add_records(0, 1, {test::span_record(1, 2'000, 3'000)});
  node.add_records(0, 2, {test::span_record(1, 2'000, 50'000)});
  node.stream(0, 1).refused = 7;
  node.finish();
  ASSERT_TRUE(assemble(job.path()).has_value());
  EXPECT_EQ(loss_duration_ns(read_ledger(job.path())), 47'000u);
}

TEST(Assemble, loss_of_threads_without_a_slot_begins_with_their_process) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  node.attach_ticks = 30'000;
  node.add_process(0, 0, 1, kRegions);
  node.add_records(0, 2, {test::span_record(1, 40'000, 50'000)});
  node.stream(0, 1).refused = 7;  // the main thread bears them, which has recorded nothing itself
  node.add_exit(0, 80'000, 0, 0);
  node.finish();
  ASSERT_TRUE(assemble(job.path()).has_value());
  EXPECT_EQ(loss_duration_ns(read_ledger(job.path())), 50'000u);
}

TEST(Assemble, share_of_lost_records_reads_as_one) {
  const std::pair<uint64_t, std::string> kCases[] = {
      {1, "1 of 101 records are lost (0.99 %)"},
      {100, "100 of 200 records are lost (50 %)"},
      {53'500, "records are lost (99.8 %)"},
      {500'000, "records are lost (more than 99 %)"},
      {1'000'000, "records are lost (more than 99 %)"}};
  for (const auto& [lost, text] : kCases) {
    TemporaryFolder job;
    NodeSpool node(job.path(), "n1");
    node.add_process(0, 0, 1, kRegions);
    node.add_records(0, 1, spans(100));
    node.stream(0, 1).refused = lost;
    node.add_exit(0, 80'000, 0, 0);
    node.finish();
    ASSERT_TRUE(assemble(job.path()).has_value());
    const std::string finding = read_ledger(job.path())["findings"][0];
    EXPECT_NE(finding.find(text), std::string::npos) << finding;
  }
}

/// Not 1e-06 %, as of one in a hundred million.
TEST(Assemble, share_of_lost_records_that_is_next_to_nothing_has_no_exponent) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  node.add_process(0, 0, 1, kRegions);
  node.add_records(0, 1, spans(20'000));
  node.stream(0, 1).refused = 1;
  node.add_exit(0, 8'000'000, 0, 0);
  node.finish();
  ASSERT_TRUE(assemble(job.path()).has_value());
  const std::string finding = read_ledger(job.path())["findings"][0];
  EXPECT_NE(finding.find("1 of 20 001 records are lost (less than 0.01 %)"), std::string::npos)
      << finding;
}

TEST(Assemble, loss_in_the_ring_of_a_process_without_an_agent_is_a_matter_of_the_disk) {
  for (const uint32_t fallback : {0u, 1u}) {
    TemporaryFolder job;
    NodeSpool node(job.path(), "n1");
    node.add_process(0, 0, 1, kRegions);
    ProcessStartDefinition start{};
    start.pid = 1000;
    start.attach_ticks = 1;
    start.world_size = 1;
    start.fallback = fallback;
    node.define(0, DefinitionType::kProcessStart, start, {"/opt/app/solver", "n1"});
    node.add_records(0, 1, spans(100));
    node.stream(0, 1).refused = 7;
    node.add_exit(0, 80'000, 0, 0);
    node.finish();
    ASSERT_TRUE(assemble(job.path()).has_value());
    const std::string finding = read_ledger(job.path())["findings"][0];
    EXPECT_EQ(finding.find("--disk") != std::string::npos, fallback != 0) << finding;
    EXPECT_EQ(finding.find("--memory") != std::string::npos, fallback == 0) << finding;
  }
}

TEST(Assemble, loss_of_what_has_no_place_is_no_matter_of_memory) {
  const std::map<std::string, std::string> told = {
      {"", "; a larger --memory"},
      {"threads", "; those of more threads at a time"},
      {"children", "; those of children in their parent's memory (see children) no option"}};
  for (const auto& [provider, text] : told) {
    TemporaryFolder job;
    NodeSpool node(job.path(), "n1");
    node.add_process(0, 0, 1, kRegions);
    node.add_records(0, 1, spans(100));
    node.stream(0, 1).refused = 7;
    if (!provider.empty()) {
      node.define(0, DefinitionType::kProvider, ProviderDefinition{ProviderState::kDegraded, {}},
                  {provider.c_str(), "a reason", "a remedy"});
    }
    node.add_exit(0, 80'000, 0, 0);
    node.finish();
    ASSERT_TRUE(assemble(job.path()).has_value());
    const json ledger = read_ledger(job.path());
    EXPECT_THAT(std::string(ledger["findings"][0]), testing::HasSubstr(text));
    EXPECT_EQ(ledger["ranks"][0]["providers"].contains(provider), !provider.empty());
  }
}

}  // namespace
}  // namespace aon::writers
