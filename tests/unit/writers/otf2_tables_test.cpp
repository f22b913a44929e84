// Mapping tables of a process that has made very many communicators, windows or files.

#include <aon/mpi.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/unit/writers/spool_fixture.h"
#include "writers/assemble/assemble.h"

namespace aon::writers {
namespace {

TEST(Otf2Tables, of_a_process_with_60_000_communicators_fit) {
  test::TemporaryFolder job;
  test::NodeSpool node(job.path(), "n1");
  node.add_process(0, 0, 1, {{"MPI_Comm_dup", RegionRole::kFunction}});
  for (uint32_t i = 2; i < 60'000; ++i) {
    CommunicatorDefinition made{};
    made.identity = made.id = i;
    made.size = 1;
    made.kind = CommunicatorKind::kIntra;
    node.define(0, DefinitionType::kCommunicator, made, {""});
  }
  node.add_records(0, 1, {test::span_record(1, 10, 20)});
  node.finish();
  const Result<AssembleReport> report = assemble(job.path(), {});
  ASSERT_TRUE(report.has_value()) << report.error().message;
  for (const std::string& warning : report->warnings)
    EXPECT_EQ(warning.find("OTF2"), std::string::npos) << warning;
  EXPECT_TRUE(std::filesystem::exists(job.path() / "traces.otf2"));
}

}  // namespace
}  // namespace aon::writers
