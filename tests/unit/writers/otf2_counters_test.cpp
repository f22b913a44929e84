// Counters at the borders of calls in the archive: their one metric class, and what is not in it.

#include <gmock/gmock.h>

#include <string>

#include "tests/unit/writers/ledger_law.h"
#include "tests/unit/writers/otf2_print.h"
#include "tests/unit/writers/spool_fixture.h"
#include "writers/assemble/assemble.h"

namespace aon::writers {
namespace {

using test::NodeSpool;
using test::TemporaryFolder;
using testing::HasSubstr;
using testing::Not;

void define_metric(NodeSpool* node, uint32_t process, uint32_t id, const std::string& name,
                   uint8_t node_wide = 0) {
  node->define(process, DefinitionType::kMetric,
               MetricDefinition{id, MetricMode::kAccumulated, node_wide, 0}, {name, "1", ""});
}

/// `process_count` processes, each with four counters of its own.
std::string left_out_metrics(uint32_t process_count) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  for (uint32_t process = 0; process < process_count; ++process) {
    node.add_process(process, static_cast<int32_t>(process), process_count, {});
    for (uint32_t i = 0; i < kMaxRegionCounters; ++i) {
      const std::string name = "counters::" + std::to_string(process) + std::to_string(i);
      define_metric(&node, process, kFirstCounterMetric + i, name);
    }
    node.add_records(process, 1, {test::span_record(1, 10, 20)});
  }
  node.finish();
  EXPECT_TRUE(assemble(job.path()));
  return test::read_ledger(job.path())["assembly"]["metrics_left_out"].dump();
}

TEST(Otf2Counters, of_more_kinds_than_the_class_holds_are_told) {
  EXPECT_EQ(left_out_metrics(2), "[]");
  EXPECT_THAT(left_out_metrics(3), HasSubstr("lacks 2 of the 12 counters at the borders of calls"));
}

/// What a process says is not trusted: a sample of such a counter, another metric of its name, and
/// one that claims to be of its node.
TEST(Otf2Counters, are_no_metrics_that_samples_can_be_of) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  node.add_process(0, 0, 1, {{"solve", RegionRole::kUser}});
  define_metric(&node, 0, kFirstCounterMetric, "counters::cycles");
  define_metric(&node, 0, kFirstCounterMetric + 1, "counters::instructions", 1);
  define_metric(&node, 0, 9, "counters::cycles");
  node.add_records(
      0, 1,
      {test::span_record(1, 10, 20), test::sample_record(kFirstCounterMetric, 30, 1),
       test::sample_record(kFirstCounterMetric + 1, 40, 2), test::sample_record(9, 50, 3)});
  node.finish();
  ASSERT_TRUE(assemble(job.path()));
  const std::string text = test::print_archive(job.path());
  EXPECT_THAT(text, HasSubstr("\"cycles\" <0>; UINT64; 0), (\"instructions\" <1>"));
  EXPECT_THAT(text, Not(HasSubstr("INVALID")));
  EXPECT_THAT(text, Not(HasSubstr("UNDEFINED")));
  EXPECT_EQ(test::read_ledger(job.path())["assembly"]["unmatched"], 2);
}

}  // namespace
}  // namespace aon::writers
