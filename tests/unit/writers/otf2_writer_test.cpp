// The archive as otf2-print sees it, from spools that the fixture writes.

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>

#include "tests/unit/writers/spool_fixture.h"
#include "writers/assemble/assemble.h"

namespace aon::writers {
namespace {

using test::NodeSpool;
using test::TemporaryFolder;

struct CommandResult {
  int status;
  std::string output;
};

CommandResult run(const std::string& command) {
  CommandResult result{-1, {}};
  FILE* pipe = popen(("ulimit -f 200000; timeout 60 " + command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return result;
  std::array<char, 4096> buffer;
  size_t got = 0;
  while ((got = fread(buffer.data(), 1, buffer.size(), pipe)) > 0) {
    result.output.append(buffer.data(), got);
  }
  result.status = pclose(pipe);
  return result;
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

const std::vector<std::pair<std::string, RegionRole>> kRegions = {
    {"MPI_Send", RegionRole::kPointToPoint},
    {"MPI_Recv", RegionRole::kPointToPoint},
    {"MPI_Isend", RegionRole::kPointToPoint},
    {"MPI_Irecv", RegionRole::kPointToPoint},
    {"MPI_Waitall", RegionRole::kPointToPoint},
    {"MPI_Allreduce", RegionRole::kAllToAll},
    {"solve", RegionRole::kUser}};
enum Region : uint32_t { kSend = 1, kRecv, kIsend, kIrecv, kWaitall, kAllreduce, kSolve };

/// Two ranks that exchange `messages` blocking and one non-blocking message.
void write_pair(NodeSpool* node, uint32_t rank, int messages) {
  node->add_process(rank, static_cast<int32_t>(rank), 2, kRegions);
  const int32_t peer = rank == 0 ? 1 : 0;
  std::vector<Record> records{test::begin_record(kSolve, 1000)};
  uint64_t now = 2000;
  for (int i = 0; i < messages; ++i, now += 1000) {
    records.push_back(test::message_record(rank == 0 ? kSend : kRecv, now, now + 500,
                                           rank == 0 ? kOutgoing : kIncoming, peer, 7, 64));
  }
  records.push_back(
      test::message_record(kIrecv, now, now + 10, kIncoming | kNonblocking, -1, 8, 128, 500));
  records.push_back(test::message_record(kIsend, now + 20, now + 30, kOutgoing | kNonblocking, peer,
                                         8, 128, 501));
  records.push_back(test::completion_record(now + 90, kIncoming | kInsideSpan, peer, 8, 128, 500));
  records.push_back(test::completion_record(now + 91, kOutgoing | kInsideSpan, peer, 8, 128, 501));
  records.push_back(test::span_record(kWaitall, now + 40, now + 100));
  records.push_back(test::collective_record(kAllreduce, now + 200, now + 300,
                                            CollectiveOperation::kAllreduce, -1, 8));
  records.push_back(test::end_record(kSolve, now + 400));
  node->add_records(rank, 1, records);
  node->add_exit(rank, now + 1000, 0, 0);
}

TEST(Otf2Writer, archive_of_two_ranks_is_clean_for_otf2_print) {
  TemporaryFolder job;
  NodeSpool node(job.path(), "n1");
  write_pair(&node, 0, 10);
  write_pair(&node, 1, 10);
  node.finish();
  const Result<AssembleReport> report = assemble(job.path());
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_TRUE(report->warnings.empty());
  EXPECT_TRUE(report->outcome.communication_complete);
  const std::string anchor = (job.path() / "traces.otf2").string();
  EXPECT_EQ(run("otf2-print --silent -Werror " + anchor).status, 0);
  const std::string events = run("otf2-print " + anchor).output;
  EXPECT_EQ(count_of(events, "INVALID"), 0u);
  EXPECT_EQ(count_of(events, "MPI_SEND "), 10u);
  EXPECT_EQ(count_of(events, "MPI_RECV "), 10u);
  EXPECT_EQ(count_of(events, "MPI_ISEND "), 2u);
  EXPECT_EQ(count_of(events, "MPI_IRECV "), 2u);
  EXPECT_EQ(count_of(events, "MPI_COLLECTIVE_END"), 2u);
}

}  // namespace
}  // namespace aon::writers
