// What the drain thread does with rings where memory or the disk is short. The rings are written by
// hand, as a process would.
#include "core/agent/drainer.h"

#include <aon/device.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "core/agent/staging.h"
#include "core/agent/stuck.h"
#include "tests/unit/agent/staged_count.h"

namespace aon::agent {
namespace {

constexpr uint64_t kStagingBytes = 32 * 4096;
constexpr uint64_t kHangNs = 1'000'000'000;
constexpr uint32_t kRecordsPerChunk = kChunkCapacityBytes / kSlotBytes;

class DrainerTest : public testing::Test {
 protected:
  void SetUp() override {
    state_fd_ = State::create().value();
    state_ = State::map(state_fd_.get()).value();
    staging_fd_ = Staging::create(kStagingBytes).value();
    staging_ = Staging::map(staging_fd_.get(), kStagingBytes).value();
  }

  void start(uint64_t node_bytes) {
    const DrainSettings settings{8u << 20, node_bytes, false, kHangNs};
    drainer_.emplace(settings, &state_, &staging_, &tail_, &inbox_, &modes_);
  }
  bool add_process(uint32_t process) {
    ProcessCell& cell = state_.process(process);
    cell.process = process;
    cell.phase.store(static_cast<uint32_t>(ProcessPhase::kAttached));
    return drainer_->create(process).has_value();
  }

  /// As it is now: what is offered later is not seen.
  const ring::RingMemory& map_ring(uint32_t process) {
    const RingGeometry geometry = drainer_->geometry(process);
    mapped_.push_back(ring::RingMemory::attach(UniqueFd(dup(drainer_->ring_fd(process))),
                                               kRingSlots, geometry.chunk_count,
                                               state_.process(process).ring_chunks)
                          .value());
    return mapped_.back();
  }
  char* base(uint32_t process) { return static_cast<char*>(map_ring(process).base()); }
  /// `count` full chunks of marks, of the main thread. Returns the number of records.
  uint64_t record(uint32_t process, uint32_t count, uint16_t thread = kMainThreadSlot) {
    char* ring = base(process);
    const RingGeometry geometry = drainer_->geometry(process);
    reinterpret_cast<RingHeader*>(ring)->slots_used.store(kMainThreadSlot + 1);
    auto& slot = reinterpret_cast<ThreadSlot*>(ring + geometry.slots_offset)[thread];
    for (uint32_t i = 0; i < count; ++i) {
      auto& chunk = *reinterpret_cast<ChunkHeader*>(ring + geometry.chunks_offset +
                                                    uint64_t{i} * kChunkBytes);
      chunk.owner = stream_owner(thread, 0);
      chunk.next = i + 1 < count ? i + 1 : kNoChunk;
      chunk.chunk_sequence = i;
      chunk.first_sequence = uint64_t{i} * kRecordsPerChunk;
      for (uint32_t k = 0; k < kRecordsPerChunk; ++k) {
        const RecordHead head = {100 + k, 0, RecordKind::kMark, 1, 0, 9, 0, k};
        std::memcpy(reinterpret_cast<char*>(&chunk + 1) + size_t{k} * kSlotBytes, &head,
                    sizeof(head));
      }
      chunk.committed = uint64_t{kRecordsPerChunk} << 32 | kRecordsPerChunk * kSlotBytes;
    }
    slot.stream[0].first_chunk.store(0);
    return uint64_t{count} * kRecordsPerChunk;
  }
  /// One span of `device_stream`, of the main thread of process 0.
  void record_span(uint32_t device_stream) {
    char* ring = base(0);
    const RingGeometry geometry = drainer_->geometry(0);
    reinterpret_cast<RingHeader*>(ring)->slots_used.store(kMainThreadSlot + 1);
    auto& slot = reinterpret_cast<ThreadSlot*>(ring + geometry.slots_offset)[kMainThreadSlot];
    auto& chunk = *reinterpret_cast<ChunkHeader*>(ring + geometry.chunks_offset);
    chunk.owner = stream_owner(kMainThreadSlot, 0);
    chunk.next = kNoChunk;
    const RecordHead head = {100, 1, RecordKind::kDeviceSpan, 2, 0, 9, device_stream, 0};
    std::memcpy(reinterpret_cast<char*>(&chunk + 1), &head, sizeof(head));
    chunk.committed = uint64_t{1} << 32 | 2 * kSlotBytes;
    slot.stream[0].first_chunk.store(0);
  }
  StreamCell& stream(uint32_t process, uint16_t slot) {
    return state_.stream(state_.find_or_add_stream(process, slot, 0));
  }
  uint64_t staged_count() { return agent::staged_count(state_, staging_); }

  UniqueFd state_fd_;
  UniqueFd staging_fd_;
  State state_;
  Staging staging_;
  std::atomic<uint64_t> tail_{0};
  Inbox inbox_;
  ModeTable modes_;
  std::optional<Drainer> drainer_;
  std::vector<ring::RingMemory> mapped_;
};

TEST_F(DrainerTest, counts_what_it_gives_up) {
  start(64u << 20);
  ASSERT_TRUE(add_process(0));
  const uint64_t recorded = record(0, 40);
  EXPECT_FALSE(drainer_->drain_to_end(0, 1000)) << "staging is smaller";
  EXPECT_EQ(stream(0, kMainThreadSlot).refused.load(), 0u);
  const uint64_t staged = staged_count();
  EXPECT_GT(staged, 0u);
  EXPECT_LT(staged, recorded);
  drainer_->give_up(0, 1000);
  EXPECT_EQ(staged_count(), staged);
  EXPECT_EQ(stream(0, kMainThreadSlot).refused.load(), recorded - staged);
  EXPECT_TRUE(drainer_->drain_to_end(0, 1000)) << "nothing is left";
}

TEST_F(DrainerTest, leaves_room_for_ranks_that_are_still_to_come) {
  constexpr uint32_t kRanks = 24;
  const uint64_t node_bytes = kRanks * (2u << 20);
  start(node_bytes);
  state_.header().expected_ranks.store(kRanks);
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    EXPECT_TRUE(add_process(rank)) << rank;
    for (uint64_t pass = 1; pass <= 5; ++pass) drainer_->drain(pass * 60'000'000);
  }
  EXPECT_LE(drainer_->peak_ring_bytes(), node_bytes);
}

TEST_F(DrainerTest, makes_no_room_in_advance_while_ranks_are_coming) {
  constexpr uint64_t kMs = 1'000'000;
  start(64u << 20);
  state_.header().expected_ranks.store(2);
  const auto attach = [&](uint32_t rank) {
    ASSERT_TRUE(add_process(rank));
    state_.header().process_count.store(rank + 1);
  };
  attach(0);
  drainer_->drain(1000 * kMs);
  const uint64_t first_bytes = drainer_->peak_ring_bytes();
  drainer_->drain(1400 * kMs);
  EXPECT_EQ(drainer_->peak_ring_bytes(), first_bytes);
  attach(1);
  drainer_->drain(1401 * kMs);
  EXPECT_GT(drainer_->peak_ring_bytes(), 2 * first_bytes) << "all came";
}

TEST_F(DrainerTest, makes_room_for_what_comes_while_ranks_are_coming) {
  constexpr uint64_t kMs = 1'000'000;
  start(64u << 20);
  state_.header().expected_ranks.store(2);
  ASSERT_TRUE(add_process(0));
  state_.header().process_count.store(1);
  drainer_->drain(1000 * kMs);
  record(0, 30);
  const uint64_t first_bytes = drainer_->peak_ring_bytes();
  drainer_->drain(1051 * kMs);  // 119 KiB in 51 ms
  EXPECT_GT(drainer_->peak_ring_bytes(), first_bytes + (1u << 20)) << "all that others get";
}

TEST_F(DrainerTest, waits_half_a_second_for_ranks_that_do_not_come) {
  start(64u << 20);
  state_.header().expected_ranks.store(2);
  ASSERT_TRUE(add_process(0));
  state_.header().process_count.store(1);
  drainer_->drain(1);
  const uint64_t first_bytes = drainer_->peak_ring_bytes();
  drainer_->drain(1 + kStartNs);
  EXPECT_GT(drainer_->peak_ring_bytes(), first_bytes);
}

TEST_F(DrainerTest, makes_no_room_in_advance_for_who_is_only_followed) {
  constexpr uint64_t kSecond = 1'000'000'000;
  start(64u << 20);
  ASSERT_TRUE(add_process(0));
  state_.process(0).is_followed.store(1);
  const uint64_t first_bytes = drainer_->peak_ring_bytes();
  for (uint64_t pass = 1; pass <= 5; ++pass) drainer_->drain(pass * kSecond);
  EXPECT_EQ(drainer_->peak_ring_bytes(), first_bytes);
  state_.process(0).is_followed.store(0);  // it has said Hello
  drainer_->drain(6 * kSecond);
  EXPECT_GT(drainer_->peak_ring_bytes(), first_bytes + (1u << 20)) << "all that others get";
}

TEST_F(DrainerTest, looks_less_often_at_processes_that_are_calm) {
  constexpr uint64_t kSecond = 1'000'000'000;
  start(64u << 20);
  EXPECT_EQ(drainer_->drain(kSecond).period_ms, 20) << "nobody is there";
  ASSERT_TRUE(add_process(0));
  drainer_->drain(2 * kSecond);  // lets the ring grow
  EXPECT_EQ(drainer_->drain(3 * kSecond).period_ms, 20) << "it may have just begun";
  EXPECT_EQ(drainer_->drain(5 * kSecond).period_ms, 100);
  ASSERT_TRUE(add_process(1));
  drainer_->drain(6 * kSecond);
  EXPECT_EQ(drainer_->drain(7 * kSecond).period_ms, 20) << "one of two";
  EXPECT_EQ(drainer_->drain(9 * kSecond).period_ms, 100);
  state_.process(0).phase.store(static_cast<uint32_t>(ProcessPhase::kEnded));
  EXPECT_EQ(drainer_->drain(10 * kSecond).period_ms, 20) << "whose end is to be seen to";
}

TEST_F(DrainerTest, looks_as_often_as_ever_at_a_process_that_was_busy_once) {
  constexpr uint64_t kSecond = 1'000'000'000;
  start(64u << 20);
  ASSERT_TRUE(add_process(0));
  drainer_->drain(kSecond);
  record(0, 30);
  drainer_->drain(kSecond + 1'000'000);
  drainer_->drain(kSecond + 51'000'000);  // 119 KiB in 50 ms
  EXPECT_EQ(drainer_->drain(9 * kSecond).period_ms, 20);
}

TEST_F(DrainerTest, keeps_free_what_a_drain_gap_needs_at_the_highest_rate_so_far) {
  constexpr uint64_t kMs = 1'000'000;
  constexpr uint32_t kChunksIn50Ms = 600;  // more in 150 ms than a ring gets in advance
  constexpr uint64_t kLargeStagingBytes = 4u << 20;
  ASSERT_EQ(kDrainGapNs, 150 * kMs);
  staging_fd_ = Staging::create(kLargeStagingBytes).value();
  staging_ = Staging::map(staging_fd_.get(), kLargeStagingBytes).value();
  start(64u << 20);
  state_.header().expected_ranks.store(2);  // the other one is to come: nothing in advance
  ASSERT_TRUE(add_process(0));
  state_.header().process_count.store(1);
  drainer_->drain(1000 * kMs);
  record(0, kChunksIn50Ms);
  drainer_->drain(1050 * kMs);
  drainer_->drain(1250 * kMs);  // calm again
  EXPECT_GE(map_ring(0).free_chunk_count(), 3 * kChunksIn50Ms);
}

TEST_F(DrainerTest, staging_begins_anew_where_everything_is_committed) {
  start(64u << 20);
  ASSERT_TRUE(add_process(0));
  ASSERT_TRUE(add_process(1));
  ASSERT_TRUE(add_process(2));
  const std::atomic<uint64_t>& head = state_.header().staging_head;
  const std::atomic<uint64_t>& base = state_.header().staging_base;
  drainer_->drain(0);
  EXPECT_EQ(head.load(), 0u) << "it is there already";
  record(0, 2);
  drainer_->drain(0);
  record(1, 2);
  drainer_->drain(0);
  EXPECT_EQ(base.load(), 0u) << "something is not committed";
  tail_.store(head.load());
  const uint64_t recorded = record(2, 2);
  drainer_->drain(0);
  EXPECT_EQ(base.load(), kStagingBytes);
  EXPECT_FALSE(drainer_->wants_encoding()) << "what was skipped is not full";
  uint64_t count = 0;
  for (uint64_t at = base; at < head; at += staging_.entry(at)->entry_bytes)
    count += staging_.entry(at)->counted;
  EXPECT_EQ(count, recorded);
  EXPECT_EQ(staging_.entry(base), staging_.entry(0));
}

TEST_F(DrainerTest, goes_on_at_the_beginning_of_staging_that_a_killed_worker_published) {
  state_.header().staging_head.store(4096);
  state_.header().staging_base.store(kStagingBytes);
  start(64u << 20);
  drainer_->restore();
  EXPECT_EQ(state_.header().staging_head.load(), kStagingBytes);
  ASSERT_TRUE(add_process(0));
  record(0, 1);
  drainer_->drain(0);
  EXPECT_GT(state_.header().staging_head.load(), kStagingBytes);
}

TEST_F(DrainerTest, open_calls_that_a_killed_worker_published_are_not_written_again) {
  start(64u << 20);
  ASSERT_TRUE(add_process(0));
  UniqueFd ring_fd(dup(drainer_->ring_fd(0)));
  BegunCall call{};
  call.tsc = call.raw_ns = 100;
  std::strcpy(call.name, "MPI_Init");
  drainer_->show_call(0, call);
  ASSERT_TRUE(drainer_->drain_to_end(0, 1000));
  ASSERT_EQ(staged_count(), 1u);
  StreamCell& main_stream = stream(0, kMainThreadSlot);
  ASSERT_EQ(main_stream.open_calls_written, 1u);
  main_stream.open_calls_written = 0;  // killed before this store
  start(64u << 20);
  drainer_->restore();
  ASSERT_TRUE(drainer_->attach(0, std::move(ring_fd)));
  EXPECT_TRUE(drainer_->drain_to_end(0, 1000));
  EXPECT_EQ(staged_count(), 1u);
}

TEST_F(DrainerTest, stream_without_a_cell_is_counted_with_the_main_thread) {
  start(64u << 20);
  ASSERT_TRUE(add_process(0));
  UniqueFd ring_fd(dup(drainer_->ring_fd(0)));
  drainer_->remove(0);
  stream(0, kMainThreadSlot);  // an earlier worker has met it
  ASSERT_TRUE(drainer_->attach(0, std::move(ring_fd)));
  for (uint32_t i = 0; i < kMaxStreams; ++i) {
    if (state_.add_stream(1 + i / 400, static_cast<uint16_t>(1 + i % 400), 0) == kNoCell) break;
  }
  const uint64_t recorded = record(0, 2);
  char* ring = base(0);
  auto* slots = reinterpret_cast<ThreadSlot*>(ring + drainer_->geometry(0).slots_offset);
  auto* header = reinterpret_cast<RingHeader*>(ring);
  // The same chunks belong to another thread.
  slots[kMainThreadSlot].stream[0].first_chunk.store(kNoChunk);
  header->slots_used.store(kMainThreadSlot + 2);
  for (uint32_t i = 0; i < 2; ++i) {
    reinterpret_cast<ChunkHeader*>(ring + drainer_->geometry(0).chunks_offset +
                                   uint64_t{i} * kChunkBytes)
        ->owner = stream_owner(kMainThreadSlot + 1, 0);
  }
  slots[kMainThreadSlot + 1].stream[0].first_chunk.store(0);
  EXPECT_TRUE(drainer_->drain_to_end(0, 1000)) << "it is not staging that is full";
  EXPECT_EQ(stream(0, kMainThreadSlot).refused.load(), recorded);
}

/// It would be the node's, and a ring may be large.
TEST_F(DrainerTest, a_stream_that_is_cut_gets_its_ring_no_memory) {
  start(64u << 20);
  ASSERT_TRUE(add_process(0));
  record(0, 1);
  char* chunks = base(0) + drainer_->geometry(0).chunks_offset;
  reinterpret_cast<ChunkHeader*>(chunks)->next = kNoChunk - 1;
  EXPECT_GT(drainer_->drain(1).bytes, 0u);
  EXPECT_EQ(stream(0, kMainThreadSlot).position.get().cut, ring::Cut::kBadNextChunk);
  struct stat status {};
  ASSERT_EQ(fstat(drainer_->ring_fd(0), &status), 0);
  EXPECT_LE(static_cast<uint64_t>(status.st_blocks) * 512, state_.process(0).memory_bytes);
}

/// A process that came at kBeginNs.
class QuietProcess : public DrainerTest {
 protected:
  void SetUp() override {
    DrainerTest::SetUp();
    start(64u << 20);
    drainer_->use_stuck(&stuck_);
    ASSERT_TRUE(add_process(0));
    state_.process(0).pid = getpid();
    drainer_->drain(kBeginNs);
  }
  /// Whether its stack is asked for, for it has recorded nothing for kHangNs.
  bool is_quiet_at(uint64_t now_ns) {
    drainer_->report_open_calls(now_ns);
    stuck_.work(clock::TickSource::kMonotonicRaw, now_ns);
    std::vector<InboxDefinition> taken;
    std::map<uint32_t, uint64_t> refused;
    inbox_.take(&taken, &refused);
    return std::any_of(taken.begin(), taken.end(), [](const InboxDefinition& one) {
      StackDefinition stack{};
      if (one.type != DefinitionType::kStack) return false;
      std::memcpy(&stack, one.payload.data(), sizeof(stack));
      return stack.quiet_ticks != 0;
    });
  }

  static constexpr uint64_t kBeginNs = 1000;
  StuckThreads stuck_{&inbox_};
};

TEST_F(QuietProcess, is_one_that_records_nothing) {
  EXPECT_FALSE(is_quiet_at(kBeginNs + kHangNs - 1));
  EXPECT_TRUE(is_quiet_at(kBeginNs + kHangNs));
  EXPECT_FALSE(is_quiet_at(kBeginNs + 2 * kHangNs)) << "it is told once";
}

TEST_F(QuietProcess, is_none_whose_job_was_suspended) {
  const uint64_t resumed_ns = kBeginNs + 3600 * kHangNs;
  drainer_->drain(resumed_ns);
  EXPECT_FALSE(is_quiet_at(resumed_ns));
  EXPECT_TRUE(is_quiet_at(resumed_ns + kHangNs));
}

TEST_F(QuietProcess, is_one_that_makes_definitions_alone) {
  const uint64_t made = record(0, 1, kDefinitionSlot);
  drainer_->drain(kBeginNs + kHangNs / 2);
  EXPECT_EQ(staged_count(), made) << "they were drained";
  EXPECT_TRUE(is_quiet_at(kBeginNs + kHangNs)) << "idle threads of ours make definitions";
}

/// CUPTI's plugin tells it every few seconds while the budget, or a failure, keeps it from working.
TEST_F(QuietProcess, is_one_of_which_only_is_told_that_work_is_not_recorded) {
  record_span(kUnrecordedStream);
  drainer_->drain(kBeginNs + kHangNs / 2);
  EXPECT_EQ(staged_count(), 1u);
  EXPECT_TRUE(is_quiet_at(kBeginNs + kHangNs));
}

TEST_F(QuietProcess, is_none_that_works_on_a_device) {
  record_span(1);
  drainer_->drain(kBeginNs + kHangNs / 2);
  EXPECT_FALSE(is_quiet_at(kBeginNs + kHangNs));
}

TEST_F(QuietProcess, is_none_that_records_an_event) {
  record(0, 1);
  drainer_->drain(kBeginNs + kHangNs / 2);
  EXPECT_FALSE(is_quiet_at(kBeginNs + kHangNs));
  EXPECT_TRUE(is_quiet_at(kBeginNs + kHangNs + kHangNs / 2));
}

/// A process that asked within MPI_Init and has not been seen since.
class UnmappedRing : public DrainerTest {
 protected:
  void SetUp() override {
    DrainerTest::SetUp();
    start(64u << 20);
    ASSERT_TRUE(add_process(0));
    state_.process(0).pid = 4711;
    BegunCall init{};
    init.tsc = 1;
    init.raw_ns = 500;
    init.region = 12;
    std::strcpy(init.name, "MPI_Init");
    drainer_->show_call(0, init);
  }
  /// Looks twice, kHangNs apart: what is told of calls that do not return.
  std::vector<OpenCallDefinition> told() {
    drainer_->report_open_calls(1000);
    drainer_->report_open_calls(1000 + kHangNs);
    std::vector<OpenCallDefinition> calls;
    for (const InboxDefinition& one : definitions()) {
      if (one.type != DefinitionType::kOpenCall) continue;
      calls.emplace_back();
      std::memcpy(&calls.back(), one.payload.data(), sizeof(OpenCallDefinition));
    }
    return calls;
  }
  std::vector<InboxDefinition> definitions() {
    std::vector<InboxDefinition> taken;
    std::map<uint32_t, uint64_t> refused;
    inbox_.take(&taken, &refused);
    return taken;
  }
};

TEST_F(UnmappedRing, its_call_is_told_when_it_does_not_return) {
  const auto calls = told();
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].region, 12u);
  EXPECT_EQ(calls[0].tid, 4711u);
  EXPECT_EQ(calls[0].start_ticks, 500u) << "of the clock that counts";
}

TEST_F(UnmappedRing, its_call_has_a_name) {
  const auto taken = definitions();
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].type, DefinitionType::kRegion);
  EXPECT_STREQ(reinterpret_cast<const char*>(taken[0].payload.data()) + sizeof(RegionDefinition),
               "MPI_Init");
}

TEST_F(UnmappedRing, its_call_is_recorded_when_the_process_ends) {
  EXPECT_TRUE(drainer_->drain_to_end(0, 900));
  EXPECT_EQ(staged_count(), 1u);
}

TEST_F(UnmappedRing, its_call_is_forgotten_when_it_went_on_with_a_file) {
  drainer_->withdraw_call(0);
  EXPECT_TRUE(told().empty());
  EXPECT_TRUE(drainer_->drain_to_end(0, 900));
  EXPECT_EQ(staged_count(), 0u);
}

TEST_F(UnmappedRing, nothing_is_withdrawn_from_a_process_that_has_come) {
  char* ring = base(0);
  auto* slots = reinterpret_cast<ThreadSlot*>(ring + drainer_->geometry(0).slots_offset);
  slots[kDefinitionSlot].state.store(static_cast<uint32_t>(SlotState::kActive));
  slots[kMainThreadSlot].open[0].start_ticks.store(700);
  drainer_->withdraw_call(0);
  const auto calls = told();
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].start_ticks, 700u);
}

TEST_F(UnmappedRing, it_is_in_mpi_init_while_that_is_open) {
  state_.process(0).is_in_init.store(1);
  record(0, 1);
  EXPECT_FALSE(drainer_->drain(1000).left_init);
  EXPECT_EQ(state_.process(0).is_in_init.load(), 1u);
}

TEST_F(UnmappedRing, it_has_left_mpi_init_when_it_is_in_another_call) {
  state_.process(0).is_in_init.store(1);
  record(0, 1);
  auto* slots = reinterpret_cast<ThreadSlot*>(base(0) + drainer_->geometry(0).slots_offset);
  slots[kMainThreadSlot].open[0].region = 13;
  slots[kMainThreadSlot].open[0].start_ticks.store(700);
  EXPECT_TRUE(drainer_->drain(1000).left_init);
  EXPECT_EQ(state_.process(0).is_in_init.load(), 0u);
  EXPECT_FALSE(drainer_->drain(2000).left_init);
}

}  // namespace
}  // namespace aon::agent
