#include "core/agent/definitions_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "core/spool/agent_gap.h"
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

TEST_F(DefinitionsLogTest, that_is_rewritten_is_on_the_disk_before_it_has_the_name) {
  DefinitionsLog log(&state_, sink_.get(), 64u << 20);
  ASSERT_TRUE(log.restore(node_folder()));
  for (uint64_t i = 1; i <= 10; ++i) log.of(0).add(DefinitionType::kStream, stream_of(i));
  ASSERT_EQ(log.flush(), 0);
  EXPECT_EQ(sink_->sync_count, 0) << "a flush does not wait for the disk";
  ASSERT_TRUE(log.compact(node_folder()));
  EXPECT_EQ(sink_->synced_before_rename, 1);
  sink_->sync_error = EIO;
  EXPECT_FALSE(log.compact(node_folder()));
  EXPECT_EQ(sink_->synced_before_rename, 1) << "what the disk has not taken stays without the name";
  EXPECT_FALSE(std::filesystem::exists(node_folder() + "/definitions.aon.new"));
  log.of(0).add(DefinitionType::kStream, stream_of(11));
  ASSERT_EQ(log.flush(), 0);
  EXPECT_EQ(read_job().nodes.at(0).processes.at(0).streams.at({1, 0}).committed, 11u);
}

/// What the block said is not known to whoever reads the file later.
TEST_F(DefinitionsLogTest, says_of_a_damaged_block_also_when_it_was_rewritten) {
  DefinitionsLog log(&state_, sink_.get(), 64u << 20);
  ASSERT_TRUE(log.restore(node_folder()));
  uint64_t end_of_second = 0;
  for (uint64_t i = 1; i <= 3; ++i) {
    StreamDefinition stream = stream_of(i);
    stream.slot = static_cast<uint16_t>(i);
    log.of(0).add(DefinitionType::kStream, stream);
    ASSERT_EQ(log.flush(), 0);
    if (i == 2) end_of_second = log.file_bytes();
  }
  const auto file = open_file(node_folder() + "/definitions.aon", O_RDWR);
  uint8_t byte = 0;
  const auto place = static_cast<off_t>(end_of_second - 1);  // of its checksum
  ASSERT_EQ(::pread(file->get(), &byte, 1, place), 1);
  byte ^= 1;
  ASSERT_EQ(::pwrite(file->get(), &byte, 1, place), 1);
  for (int i = 0; i < 3; ++i) {
    const spool::Job job = read_job();
    EXPECT_TRUE(job.has_damaged_definitions) << i;
    EXPECT_EQ(job.damaged_blocks, 1u) << i;
    EXPECT_EQ(job.nodes.at(0).processes.at(0).streams.size(), 2u) << i;
    ASSERT_TRUE(log.compact(node_folder()));
  }
}

TEST_F(DefinitionsLogTest, rewrites_itself_anew_only_when_it_has_grown) {
  constexpr uint64_t kLimitBytes = 64u << 10;
  DefinitionsLog log(&state_, sink_.get(), kLimitBytes);
  ASSERT_TRUE(log.restore(node_folder()));
  const auto fill = [&] {
    for (uint64_t i = 0; i < 5000 && !log.wants_compaction(); ++i) {
      log.of(0).add(DefinitionType::kStream, stream_of(random_()));
      ASSERT_EQ(log.flush(), 0);
    }
  };
  fill();
  ASSERT_TRUE(log.wants_compaction());
  EXPECT_FALSE(log.compact(node_folder() + "/gone"));
  EXPECT_FALSE(log.wants_compaction()) << "it would be read at each flush";
  fill();
  ASSERT_TRUE(log.wants_compaction());
  const int opened = sink_->open_count;
  EXPECT_TRUE(log.compact(node_folder()));
  EXPECT_EQ(sink_->open_count, opened + 1) << "the new file stays open: a second time may fail";
  log.of(0).add(DefinitionType::kStream, stream_of(7));
  ASSERT_EQ(log.flush(), 0);
  EXPECT_EQ(read_job().nodes.at(0).processes.at(0).streams.at({1, 0}).committed, 7u);
}

TEST_F(DefinitionsLogTest, stays_below_a_small_limit_however_long_the_job_runs) {
  constexpr uint64_t kLimitBytes = 64u << 10;
  DefinitionsLog log(&state_, sink_.get(), kLimitBytes);
  ASSERT_TRUE(log.restore(node_folder()));
  constexpr uint64_t kSeconds = 5000;
  uint64_t largest_bytes = 0;
  for (uint64_t i = 1; i <= kSeconds; ++i) {
    log.of(0).add(DefinitionType::kStream, stream_of(random_()));
    ClockDefinition clock{};
    clock.ticks = i;
    clock.realtime_ns = random_();
    log.of(spool::kNodeProcess).add(DefinitionType::kClock, clock);
    ASSERT_EQ(log.flush(), 0);
    if (log.wants_compaction()) {
      ASSERT_TRUE(log.compact(node_folder()));
    }
    largest_bytes = std::max(largest_bytes, log.file_bytes());
  }
  EXPECT_LT(largest_bytes, kLimitBytes);
  EXPECT_FALSE(log.is_full());
  const spool::Job job = read_job();
  const auto& clocks = job.nodes.at(0).clock;
  ASSERT_GT(clocks.size(), 100u);
  EXPECT_EQ(clocks.front().ticks, 1u);
  EXPECT_EQ(clocks.back().ticks, kSeconds);
}

LossDefinition eviction_of(uint16_t slot, uint64_t first_sequence, uint64_t count) {
  LossDefinition loss{};
  loss.slot = slot;
  loss.reason = static_cast<uint32_t>(LossReason::kEvictedByCap);
  loss.first_sequence = first_sequence;
  loss.count = count;
  loss.start_ticks = 1000 + first_sequence;
  loss.end_ticks = 1000 + first_sequence + count;
  return loss;
}

TEST_F(DefinitionsLogTest, tells_evictions_that_follow_one_another_as_one) {
  constexpr uint64_t kLimitBytes = 64u << 10;
  constexpr uint64_t kEvictions = 20000;
  constexpr uint64_t kCount = 10;
  DefinitionsLog log(&state_, sink_.get(), kLimitBytes);
  ASSERT_TRUE(log.restore(node_folder()));
  for (uint64_t i = 0; i < kEvictions; ++i) {
    for (uint16_t slot : {1, 2})
      log.of(0).add(DefinitionType::kEviction, eviction_of(slot, kCount * i, kCount));
    ASSERT_EQ(log.flush(), 0);
    if (log.wants_compaction()) {
      ASSERT_TRUE(log.compact(node_folder()));
    }
    ASSERT_FALSE(log.is_full()) << i;
  }
  log.of(0).add(DefinitionType::kEviction, eviction_of(2, kCount * (kEvictions + 1), kCount));
  ASSERT_EQ(log.flush(), 0);
  ASSERT_TRUE(log.compact(node_folder()));
  const spool::Job job = read_job();
  const auto& losses = job.nodes.at(0).processes.at(0).losses;
  ASSERT_EQ(losses.size(), 3u);
  for (const LossDefinition& loss : {losses[0], losses[1]}) {
    EXPECT_EQ(loss.first_sequence, 0u);
    EXPECT_EQ(loss.count, kCount * kEvictions);
    EXPECT_EQ(loss.start_ticks, 1000u);
    EXPECT_EQ(loss.end_ticks, 1000 + kCount * kEvictions);
  }
  EXPECT_EQ(losses[2].slot, 2u);
  EXPECT_EQ(losses[2].first_sequence, kCount * (kEvictions + 1)) << "one in between was not lost";
}

TEST_F(DefinitionsLogTest, keeps_the_gaps_of_two_agents_apart) {
  DefinitionsLog log(&state_, sink_.get(), 64u << 20);
  ASSERT_TRUE(log.restore(node_folder()));
  for (const uint64_t start : {1000, 9000}) {
    log.of(spool::kNodeProcess)
        .add(DefinitionType::kEviction, spool::agent_gap(2, start, start + 5));
  }
  ASSERT_EQ(log.flush(), 0);
  ASSERT_TRUE(log.compact(node_folder()));
  const spool::Job job = read_job();
  const auto& gaps = job.nodes.at(0).series.losses;
  ASSERT_EQ(gaps.size(), 2u);
  for (const LossDefinition& gap : gaps) {
    EXPECT_TRUE(spool::is_agent_gap(gap));
    EXPECT_EQ(spool::worker_behind(gap), 2u);
    EXPECT_EQ(gap.end_ticks - gap.start_ticks, 5u);
  }
}

TEST_F(DefinitionsLogTest, counts_what_finds_no_room_while_the_disk_is_full) {
  DefinitionsLog log(&state_, sink_.get(), 64u << 20);
  ASSERT_TRUE(log.restore(node_folder()));
  sink_->error = ENOSPC;
  constexpr uint32_t kCount = 30;
  std::string name(1u << 20, ' ');
  for (uint32_t i = 0; i < kCount; ++i) {
    for (char& letter : name) letter = static_cast<char>('!' + random_() % 90);
    RegionDefinition region{i, RegionRole::kUser, Paradigm::kUser, 0};
    log.of(0).add(DefinitionType::kRegion, region, {name});
    EXPECT_EQ(log.flush(), ENOSPC);
  }
  sink_->error = 0;
  EXPECT_EQ(log.flush(), 0);
  const uint64_t dropped = log.take_dropped(0);
  EXPECT_GT(dropped, 0u);
  EXPECT_EQ(read_job().nodes.at(0).processes.at(0).regions.size() + dropped, kCount);
  EXPECT_EQ(log.take_dropped(0), 0u);
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
