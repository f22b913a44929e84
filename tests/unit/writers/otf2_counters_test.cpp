// Counters at the borders of calls in the archive: their one metric class, and what is not in it.

#include <gmock/gmock.h>

#include <string>

#include "tests/unit/writers/ledger_law.h"
#include "tests/unit/writers/spool_fixture.h"
#include "writers/assemble/assemble.h"

namespace aon::writers {
namespace {

using test::NodeSpool;
using test::TemporaryFolder;
using testing::HasSubstr;

void define_metric(NodeSpool* node, uint32_t process, uint32_t id, const std::string& name) {
  node->define(process, DefinitionType::kMetric,
               MetricDefinition{id, MetricMode::kAccumulated, 0, 0}, {name, "1", ""});
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

}  // namespace
}  // namespace aon::writers
