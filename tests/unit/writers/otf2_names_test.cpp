// Names of any length and bytes leave an archive that can be written.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/unit/writers/spool_fixture.h"
#include "writers/assemble/assemble.h"

namespace aon::writers {
namespace {

TEST(Otf2Names, of_kernels_that_stand_for_much_more_are_cut) {
  test::TemporaryFolder job;
  test::NodeSpool node(job.path(), "n1");
  node.add_process(0, 0, 1, {});
  // 116 bytes: sixteen pairs in each other, 655 358 bytes when it is written out.
  const std::string name =
      "_Z1f1PIS_IS_IS_IS_IS_IS_IS_IS_IS_IS_IS_IS_IS_IS_IS_IiiES0_ES1_ES2_ES3_ES4_ES5_ES6_ES7_ES8_"
      "ES9_ESA_ESB_ESC_ESD_ESE_E";
  node.define(0, DefinitionType::kRegion,
              RegionDefinition{1, RegionRole::kFunction, Paradigm::kCuda, 0}, {name});
  node.add_records(0, 1, {test::span_record(1, 1000, 2000)});
  node.add_exit(0, 3000, 0, 0);
  node.finish();
  ASSERT_TRUE(assemble(job.path()).has_value());
  EXPECT_TRUE(std::filesystem::exists(job.path() / "traces.otf2"));
  EXPECT_TRUE(std::filesystem::exists(job.path() / "profile.h5"));
}

/// What a spool says is not trusted.
TEST(Otf2Names, of_counters_without_a_provider_stay_whole) {
  test::TemporaryFolder job;
  test::NodeSpool node(job.path(), "n1");
  node.add_process(0, 0, 1, {});
  node.define(0, DefinitionType::kMetric,
              MetricDefinition{kFirstCounterMetric, MetricMode::kAccumulated, 0, 0},
              {"ips", "1", ""});
  node.define(0, DefinitionType::kMetric,
              MetricDefinition{kFirstCounterMetric + 1, MetricMode::kAccumulated, 0, 0},
              {"instructions", "1", ""});
  node.add_records(0, 1, {test::begin_record(1, 10), test::end_record(1, 20)});
  node.add_exit(0, 3000, 0, 0);
  node.finish();
  ASSERT_TRUE(assemble(job.path()).has_value());
  std::ifstream file(job.path() / "traces.def", std::ios::binary);
  const std::string definitions{std::istreambuf_iterator<char>(file), {}};
  for (const char* name : {"ips", "instructions"})
    EXPECT_NE(definitions.find(name), std::string::npos) << name;
}

}  // namespace
}  // namespace aon::writers
