// What `aon hang` says of a job that is over.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/lease.h"
#include "tests/unit/writers/spool_fixture.h"
#include "tools/command.h"
#include "tools/live_job.h"

namespace aon::tools {

int fail(const std::string&, const std::string& text, int exit_code) {
  ADD_FAILURE() << text;
  return exit_code;
}

namespace {

constexpr uint64_t kSecond = 1'000'000'000;

/// Rank 0 was killed in the third second, in a call since the first.
void write_killed(const std::string& job) {
  test::NodeSpool node(job, "n1");
  node.add_process(0, 0, 1, {{"MPI_Recv", RegionRole::kPointToPoint}});
  OpenCallDefinition call{};
  call.slot = 1;
  call.region = 1;
  call.peer_tag = pack_pair(kNoPeer, 0);
  call.start_ticks = kSecond;
  node.define(0, DefinitionType::kOpenCall, call);
  node.add_records(0, 1, {test::span_record(1, 500, 600)});
  node.add_exit(0, 3 * kSecond, -1, 9);
  node.finish();
}

TEST(HangCommand, a_call_does_not_grow_older_while_the_archive_is_written) {
  test::TemporaryFolder job;
  write_killed(job.path());
  const auto lease = Lease::take(assemble_lease(job.path()));
  ASSERT_TRUE(lease.has_value());
  testing::internal::CaptureStdout();
  EXPECT_EQ(hang({job.path(), "off", {}}), kExitDone);
  EXPECT_THAT(testing::internal::GetCapturedStdout(), testing::HasSubstr(" is in MPI_Recv of "
                                                                         "MPI_COMM_WORLD for 2 s"));
}

}  // namespace
}  // namespace aon::tools
