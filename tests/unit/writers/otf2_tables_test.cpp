// Tables of a process that has made very many communicators, windows or files, and of very many
// processes.

#include <aon/mpi.h>
#include <gtest/gtest.h>

#include <ctime>
#include <filesystem>

#include "tests/unit/profile/one_rank.h"
#include "tests/unit/writers/spool_fixture.h"
#include "writers/assemble/assemble.h"
#include "writers/otf2/definitions.h"
#include "writers/otf2/device_windows.h"

namespace aon::writers {
namespace {

TEST(Otf2Tables, of_a_process_with_60_000_communicators_fit) {
  aon::test::TemporaryFolder job;
  aon::test::NodeSpool node(job.path(), "n1");
  node.add_process(0, 0, 1, {{"MPI_Comm_dup", RegionRole::kFunction}});
  for (uint32_t i = 2; i < 60'000; ++i) {
    CommunicatorDefinition made{};
    made.identity = made.id = i;
    made.size = 1;
    made.kind = CommunicatorKind::kIntra;
    node.define(0, DefinitionType::kCommunicator, made, {""});
  }
  node.add_records(0, 1, {aon::test::span_record(1, 10, 20)});
  node.finish();
  const Result<AssembleReport> report = assemble(job.path(), {});
  ASSERT_TRUE(report.has_value()) << report.error().message;
  for (const std::string& warning : report->warnings)
    EXPECT_EQ(warning.find("OTF2"), std::string::npos) << warning;
  EXPECT_TRUE(std::filesystem::exists(job.path() / "traces.otf2"));
}

/// OTF2 takes the room for the largest one, the list of all ranks, for the tables of each.
TEST(Otf2Tables, of_10_000_ranks_take_no_more_room_than_they_must) {
  const Model model = test::make_model(10'000);
  const uint64_t bytes = otf2::largest_definition_bytes(model, otf2::NcclTimelines(model, false));
  EXPECT_GE(bytes, 90'000u);
  EXPECT_LT(bytes, 100'000u);
}

/// Each location of a process asks for its window. Going through the processes before it would take
/// some 10 s.
TEST(Otf2Tables, of_100_000_processes_with_devices_are_made_soon) {
  constexpr uint32_t kCount = 100'000;
  otf2::DeviceWindows windows;
  Location stream{};
  for (uint32_t group = 0; group < kCount; ++group) {
    stream.group = group;
    stream.id = uint64_t{1} << 32 | group;
    EXPECT_EQ(windows.add_stream(stream), 1u);
    if (group != 1) windows.note_copies(group);
  }
  const std::clock_t start = std::clock();
  for (uint32_t group = 2; group < kCount; ++group)
    ASSERT_EQ(windows.place_of(group), group - 1) << "the second one copies nothing";
  EXPECT_LT(std::clock() - start, CLOCKS_PER_SEC);
  EXPECT_EQ(windows.place_of(1), std::nullopt);
  EXPECT_EQ(windows.windows().size(), kCount - 1);
  EXPECT_EQ(windows.windows()[1].members, (std::vector<uint64_t>{2, uint64_t{1} << 32 | 2}));
}

}  // namespace
}  // namespace aon::writers
