#include "core/agent/definitions_log.h"

#include <fcntl.h>
#include <unistd.h>

#include "tests/unit/agent/encoder_bench.h"

namespace aon::agent {
namespace {

using DefinitionsLogTest = test::EncoderBench;

StreamDefinition stream_of(uint64_t committed) {
  StreamDefinition stream{};
  stream.slot = 1;
  stream.committed = committed;
  return stream;
}

TEST_F(DefinitionsLogTest, rewrites_itself_without_what_is_superseded) {
  DefinitionsLog log(&state_, sink_.get(), 64u << 20);
  ASSERT_TRUE(log.restore(node_folder()));
  ProcessStartDefinition start{};
  start.pid = 42;
  log.of(0).add(DefinitionType::kProcessStart, start, {"program", "n1"});
  for (uint64_t i = 1; i <= 500; ++i) {
    log.of(0).add(DefinitionType::kStream, stream_of(i));
    ASSERT_EQ(log.flush(), 0);
  }
  const uint64_t before = log.file_bytes();
  ASSERT_TRUE(log.compact(node_folder()));
  EXPECT_LT(log.file_bytes(), before / 20);
  log.of(0).add(DefinitionType::kStream, stream_of(501));
  ASSERT_EQ(log.flush(), 0);
  const spool::Job job = read_job();
  EXPECT_EQ(job.damaged_blocks, 0u);
  EXPECT_EQ(job.nodes.at(0).processes.at(0).start.pid, 42);
  EXPECT_EQ(job.nodes.at(0).processes.at(0).streams.at({1, 0}).committed, 501u);
}

TEST_F(DefinitionsLogTest, writes_later_what_a_full_disk_refused) {
  DefinitionsLog log(&state_, sink_.get(), 64u << 20);
  ASSERT_TRUE(log.restore(node_folder()));
  log.of(0).add(DefinitionType::kStream, stream_of(1));
  ASSERT_EQ(log.flush(), 0);
  sink_->error = ENOSPC;
  log.of(0).add(DefinitionType::kStream, stream_of(2));
  EXPECT_EQ(log.flush(), ENOSPC);
  EXPECT_EQ(read_job().damaged_blocks, 0u);
  sink_->error = 0;
  EXPECT_EQ(log.flush(), 0);
  EXPECT_EQ(read_job().nodes.at(0).processes.at(0).streams.at({1, 0}).committed, 2u);
}

TEST_F(DefinitionsLogTest, continues_behind_what_an_earlier_agent_left) {
  {
    DefinitionsLog log(&state_, sink_.get(), 64u << 20);
    ASSERT_TRUE(log.restore(node_folder()));
    log.of(0).add(DefinitionType::kStream, stream_of(1));
    ASSERT_EQ(log.flush(), 0);
  }
  const UniqueFd fresh = State::create().value();
  State next = State::map(fresh.get()).value();
  DefinitionsLog log(&next, sink_.get(), 64u << 20);
  ASSERT_TRUE(log.restore(node_folder()));
  StreamDefinition other = stream_of(5);
  other.process = 1;
  log.of(1).add(DefinitionType::kStream, other);
  ASSERT_EQ(log.flush(), 0);
  const spool::Job job = read_job();
  EXPECT_EQ(job.damaged_blocks, 0u);
  EXPECT_EQ(job.nodes.at(0).processes.size(), 2u);
}

}  // namespace
}  // namespace aon::agent
