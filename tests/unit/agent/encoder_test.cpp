#include "core/agent/encoder.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "core/agent/encode_thread.h"
#include "core/agent/series.h"
#include "tests/unit/agent/encoder_bench.h"

namespace aon::agent {
namespace {

using test::EncoderBench;
using test::Killed;
using test::StreamCount;

uint64_t lost(const StreamCount& count, LossReason reason) {
  return count.lost[static_cast<size_t>(reason)];
}

using EncoderTest = EncoderBench;

TEST_F(EncoderTest, writes_what_staging_holds) {
  restart();
  add_process(0);
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(push_marks(0, 1, 100) || (encoder_->flush(), true));
  encoder_->flush();
  const spool::Job job = read_job();
  const StreamCount marks = count(job, 0, 1);
  EXPECT_EQ(marks.decoded, numbers_.at({0, 1}));
  EXPECT_TRUE(marks.is_ordered);
  EXPECT_EQ(job.nodes[0].processes.at(0).streams.at({1, 0}).committed, marks.decoded);
  EXPECT_EQ(encoder_->tail().load(), state_.header().staging_head.load());
}

TEST_F(EncoderTest, repeats_and_loses_nothing_when_killed_at_any_file_operation) {
  restart();
  add_process(0);
  int kills = 0;
  for (int steps = 0; steps < 60; ++steps) {
    ASSERT_TRUE(push_marks(0, 1, 50));
    ASSERT_TRUE(push_marks(0, 2, 20));
    if (flush_and_restart(steps % 12)) ++kills;
  }
  encoder_->flush();
  EXPECT_GT(kills, 10);
  const spool::Job job = read_job();
  EXPECT_EQ(job.damaged_blocks, 0u);
  for (const uint16_t slot : {1, 2}) {
    const StreamCount marks = count(job, 0, slot);
    EXPECT_EQ(marks.decoded, numbers_.at({0, slot}));
    EXPECT_TRUE(marks.is_ordered);
    EXPECT_EQ(lost(marks, LossReason::kDamaged), 0u);
  }
}

TEST_F(EncoderTest, writes_each_sample_once_when_killed_at_any_file_operation) {
  restart();
  add_process(0);
  int kills = 0;
  uint64_t put = 0;
  for (int steps = 0; steps < 60; ++steps) {
    Series series(&state_);
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(series.put(0, 8, ++put * 100, 1, 0, 0));
    if (steps % 3 == 0) encoder_->consume();  // killed with samples in hand
    if (flush_and_restart(steps % 12)) ++kills;
  }
  encoder_->flush();
  EXPECT_GT(kills, 10);
  const spool::Job job = read_job();
  EXPECT_EQ(count(job, 0, spool::kSeriesSlot).decoded, put);
  EXPECT_EQ(job.nodes[0].processes.at(0).streams.at({spool::kSeriesSlot, 0}).committed, put);
  EXPECT_EQ(state_.header().sample_tail.load(), put);
}

TEST_F(EncoderTest, tells_a_program_that_became_another) {
  restart();
  add_process(0);
  char path[ProgramCell::kPathBytes] = "/bin/sh";
  state_.process(0).program.set(path);
  encoder_->flush();
  EXPECT_EQ(read_job().nodes[0].processes.at(0).program, "/bin/sh");
  std::fill(std::begin(path), std::end(path), 'x');
  state_.process(0).program.set(path);
  encoder_->flush();
  restart();
  encoder_->flush();
  EXPECT_EQ(read_job().nodes[0].processes.at(0).program, std::string(sizeof(path) - 1, 'x'));
}

TEST_F(EncoderTest, tells_how_many_samples_found_no_room) {
  restart();
  add_process(0);
  Series series(&state_);
  for (uint32_t i = 0; i < kMaxSamples + 5; ++i) series.put(0, 8, i * 100 + 1, 1, 0, 0);
  encoder_->flush();
  const spool::Job job = read_job();
  const auto& stream = job.nodes[0].processes.at(0).streams.at({spool::kSeriesSlot, 0});
  EXPECT_EQ(stream.committed, kMaxSamples);
  EXPECT_EQ(stream.refused, 5u);
  EXPECT_EQ(stream.first_refused_ticks, kMaxSamples * 100u + 1);
  EXPECT_EQ(stream.last_refused_ticks, (kMaxSamples + 4) * 100u + 1);
}

TEST_F(EncoderTest, evicts_exactly_once_when_killed_at_any_file_operation) {
  settings_.limits = {40000, 8000, 1u << 30};
  restart();
  add_process(0);
  for (int round = 0; round < 150; ++round) {
    std::vector<uint8_t> bytes;
    // Values that do not compress, so that segments fill.
    for (int i = 0; i < 100; ++i) append(&bytes, RecordKind::kSpan, 5, random_());
    ASSERT_TRUE(push(0, 1, bytes, 100));
    sink_->steps_left = round % 9;
    try {
      encoder_->flush();
    } catch (const Killed&) {
    }
    sink_->steps_left = -1;
    restart();
  }
  encoder_->flush();
  const spool::Job job = read_job();
  const StreamCount spans = count(job, 0, 1);
  EXPECT_GT(lost(spans, LossReason::kEvictedByCap), 0u);
  EXPECT_EQ(lost(spans, LossReason::kDamaged), 0u);
  EXPECT_EQ(spans.decoded + lost(spans, LossReason::kEvictedByCap), 150u * 100);
  EXPECT_LE(encoder_->disk_bytes(), 40000u + 20000u);
}

TEST_F(EncoderTest, counts_what_a_full_disk_takes_and_goes_on) {
  restart();
  add_process(0);
  ASSERT_TRUE(push_marks(0, 1, 100));
  encoder_->flush();
  sink_->error = ENOSPC;
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(push_marks(0, 1, 100));
    encoder_->flush();
  }
  EXPECT_EQ(encoder_->disk_error(), ENOSPC);
  restart();  // the counts outlive a killed worker
  sink_->error = 0;
  ASSERT_TRUE(push_marks(0, 1, 100));
  encoder_->flush();
  encoder_->flush();
  EXPECT_EQ(encoder_->disk_error(), 0);
  const spool::Job job = read_job();
  const StreamCount marks = count(job, 0, 1);
  EXPECT_EQ(marks.decoded, 200u);
  EXPECT_EQ(lost(marks, LossReason::kWriteFailed), 500u);
  EXPECT_EQ(lost(marks, LossReason::kDamaged), 0u);
  EXPECT_EQ(job.nodes[0].processes.at(0).streams.at({1, 0}).committed, 700u);
}

TEST_F(EncoderTest, knows_that_free_space_does_not_help_where_writing_is_forbidden) {
  EXPECT_EQ(std::string(disk_remedy(EDQUOT)), disk_remedy(ENOSPC));
  EXPECT_EQ(std::string(disk_remedy(EROFS)), disk_remedy(EACCES));
  EXPECT_EQ(std::string(disk_remedy(EACCES)),
            "make the job directory writable, or set --spool-dir");
}

TEST_F(EncoderTest, keeps_the_newest_while_the_disk_is_full) {
  settings_.limits.kept_bytes = 4096;
  restart();
  add_process(0);
  add_process(1);
  ASSERT_TRUE(push_marks(0, 1, 100));
  encoder_->flush();
  sink_->error = ENOSPC;
  for (int i = 0; i < 60; ++i) {
    ASSERT_TRUE(push_marks(0, 1, 100));
    ASSERT_TRUE(push_marks(1, 1, 100));
    encoder_->flush();
  }
  end_process(0);
  encoder_->flush();
  sink_->error = 0;
  encoder_->flush();
  encoder_->flush();
  const spool::Job job = read_job();
  for (uint32_t process : {0u, 1u}) {
    const StreamCount marks = count(job, process, 1);
    const uint64_t made = process == 0 ? 6100 : 6000;
    EXPECT_GT(marks.decoded, 500u);
    EXPECT_GT(lost(marks, LossReason::kWriteFailed), 1000u);
    EXPECT_EQ(marks.decoded + lost(marks, LossReason::kWriteFailed), made);
    EXPECT_TRUE(marks.is_ordered);
    EXPECT_EQ(marks.last, made);
    const auto segments = spool::list_segments(node_folder());
    const auto index = spool::ProcessIndex::build(node_folder(), process, segments->at(process));
    EXPECT_EQ(index->damaged_blocks(), 0u);
  }
}

TEST_F(EncoderTest, samples_wait_for_a_flush_of_everything) {
  restart();
  add_process(0);
  Series series(&state_);
  for (uint64_t round = 1; round <= 4; ++round) {
    ASSERT_TRUE(push_marks(0, 1, 100));
    ASSERT_TRUE(series.put(0, 8, round, 1.5, 0, 0));
    encoder_->flush(FlushExtent::kEvents);
    EXPECT_EQ(count(read_job(), 0, 1).decoded, 100 * round);
    EXPECT_EQ(count(read_job(), 0, spool::kSeriesSlot).decoded, round - 1);
    if (round % 2 == 0) restart();  // in between: nothing of it is forgotten
    if (round == 4) end_process(0);
    encoder_->flush(round == 4 ? FlushExtent::kEvents : FlushExtent::kAll);
    EXPECT_EQ(count(read_job(), 0, spool::kSeriesSlot).decoded, round);
  }
}

TEST_F(EncoderTest, samples_do_not_wait_until_there_is_no_room_for_more) {
  restart();
  add_process(0);
  Series series(&state_);
  uint64_t count_put = 0;
  for (uint32_t i = 0; i < 3 * kMaxSamples / 1000; ++i) {
    for (int k = 0; k < 1000; ++k) ASSERT_TRUE(series.put(0, 8, ++count_put, 1.5, 0, 0));
    encoder_->flush(FlushExtent::kEvents);
  }
  encoder_->flush();
  EXPECT_EQ(count(read_job(), 0, spool::kSeriesSlot).decoded, count_put);
}

TEST_F(EncoderTest, counts_what_it_has_kept_when_the_disk_is_full_to_the_end) {
  settings_.limits.kept_bytes = 1u << 20;
  restart();
  add_process(0);
  ASSERT_TRUE(push_marks(0, 1, 100));
  encoder_->flush();
  ASSERT_TRUE(push_marks(0, 1, 100));
  end_process(0);
  for (const FlushExtent extent : {FlushExtent::kAll, FlushExtent::kLast}) {
    // The segment's write comes first; definitions have what was set aside for them.
    int writes = 0;
    sink_->before_write = [&] { sink_->error = ++writes == 1 ? ENOSPC : 0; };
    encoder_->flush(extent);
  }
  sink_->before_write = nullptr;
  encoder_.reset();
  const StreamCount marks = count(read_job(), 0, 1);
  EXPECT_EQ(marks.decoded, 100u);
  EXPECT_EQ(lost(marks, LossReason::kWriteFailed), 100u);
  EXPECT_EQ(lost(marks, LossReason::kDamaged), 0u);
}

TEST_F(EncoderTest, names_each_hole_of_a_disk_that_is_full_now_and_then) {
  restart();
  add_process(0);
  encoder_->flush();
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(push_marks(0, 1, 50));
    // The segment takes its write or not; the definitions behind it do not.
    int writes = 0;
    sink_->before_write = [&] { sink_->error = ++writes == 1 && i % 3 != 0 ? 0 : ENOSPC; };
    encoder_->flush();
    if (i % 8 != 7) continue;
    sink_->before_write = nullptr;
    sink_->error = 0;
    encoder_->flush();
  }
  const spool::Job job = read_job();
  const StreamCount marks = count(job, 0, 1);
  EXPECT_EQ(lost(marks, LossReason::kDamaged), 0u);
  EXPECT_EQ(lost(marks, LossReason::kWriteFailed), 14u * 50);
  EXPECT_EQ(marks.decoded, 26u * 50);
}

TEST_F(EncoderTest, cuts_records_that_do_not_validate_and_keeps_the_rest) {
  restart();
  add_process(0);
  ASSERT_TRUE(push_marks(0, 1, 10));
  std::vector<uint8_t> bytes;
  append(&bytes, RecordKind::kMark, 5, 11);
  append(&bytes, static_cast<RecordKind>(200), 5, 12);
  append(&bytes, RecordKind::kMark, 5, 13);
  ASSERT_TRUE(push(0, 1, bytes, 3));
  numbers_[{0, 1}] = 13;
  ASSERT_TRUE(push_marks(0, 1, 10));
  encoder_->flush();
  const spool::Job job = read_job();
  const StreamDefinition& stream = job.nodes[0].processes.at(0).streams.at({1, 0});
  EXPECT_EQ(count(job, 0, 1).decoded, 21u);
  EXPECT_EQ(stream.committed, 21u);
  EXPECT_EQ(stream.stream_cut, 2u);
}

TEST_F(EncoderTest, joins_a_definition_whose_fragments_a_kill_divided) {
  restart();
  add_process(0);
  const std::string name(200, 'n');
  const RegionDefinition region{7, RegionRole::kUser, Paradigm::kUser, 0};
  std::vector<uint8_t> payload(sizeof(region) + name.size() + 1);
  std::memcpy(payload.data(), &region, sizeof(region));
  std::memcpy(payload.data() + sizeof(region), name.c_str(), name.size() + 1);
  for (size_t at = 0; at < payload.size(); at += 96) {
    Record fragment{};
    fragment.head.kind = RecordKind::kDefinition;
    fragment.head.slot_count = 4;
    fragment.head.id = static_cast<uint32_t>(DefinitionType::kRegion);
    fragment.head.a32 = static_cast<uint32_t>(payload.size());
    fragment.head.a64 = at;
    std::memcpy(fragment.words, payload.data() + at, std::min<size_t>(96, payload.size() - at));
    const auto* from = reinterpret_cast<const uint8_t*>(&fragment);
    ASSERT_TRUE(push(0, kDefinitionSlot, {from, from + sizeof(fragment)}, 0));
    encoder_->flush();
    restart();
  }
  encoder_->flush();
  const spool::Job job = read_job();
  EXPECT_EQ(job.nodes[0].processes.at(0).regions.at(7).name, name);
}

TEST_F(EncoderTest, counts_the_definitions_that_its_file_has_no_room_for) {
  settings_.definitions_bytes = 1;
  restart();
  add_process(0);
  encoder_->flush();  // what the agent says itself fills the file
  for (uint32_t id = 1; id <= 3; ++id) {
    const RegionDefinition region{id, RegionRole::kUser, Paradigm::kUser, 0};
    Record fragment{};
    fragment.head.kind = RecordKind::kDefinition;
    fragment.head.slot_count = 2;
    fragment.head.id = static_cast<uint32_t>(DefinitionType::kRegion);
    fragment.head.a32 = sizeof(region);
    std::memcpy(fragment.words, &region, sizeof(region));
    const auto* from = reinterpret_cast<const uint8_t*>(&fragment);
    ASSERT_TRUE(push(0, kDefinitionSlot, {from, from + 2 * kSlotBytes}, 0));
    encoder_->flush();
    restart();
  }
  const uint32_t cell = state_.find_or_add_stream(0, kDefinitionSlot, 0);
  state_.stream(cell).refused.store(5);
  encoder_->flush();
  EXPECT_EQ(read_job().nodes[0].processes.at(0).refused_definitions.by_pool, 5u);
  state_.stream(cell).refused.store(2);  // three were written after all
  encoder_->flush();
  const spool::Job job = read_job();
  const spool::Process& process = job.nodes[0].processes.at(0);
  EXPECT_TRUE(process.regions.empty());
  EXPECT_EQ(process.refused_definitions.by_disk, 3u);
  EXPECT_EQ(process.refused_definitions.by_pool, 2u);
  EXPECT_EQ(process.streams.count({kDefinitionSlot, 0}), 0u);
}

/// The agent may have looked before its first call.
TEST_F(EncoderTest, believes_a_process_what_it_says_of_its_mpi_calls) {
  restart();
  add_process(0);
  ProviderDefinition state{};
  state.state = ProviderState::kOff;
  inbox_.define(0, DefinitionType::kProvider, state, {"mpi", "loaded", ""});
  encoder_->flush();
  EXPECT_EQ(read_job().nodes[0].processes.at(0).providers.at("mpi").reason, "loaded");
  const RegionDefinition region{7, RegionRole::kFunction, Paradigm::kMpi, 0};
  Record fragment{};
  fragment.head.kind = RecordKind::kDefinition;
  fragment.head.slot_count = 2;
  fragment.head.id = static_cast<uint32_t>(DefinitionType::kRegion);
  fragment.head.a32 = sizeof(region);
  std::memcpy(fragment.words, &region, sizeof(region));
  const auto* from = reinterpret_cast<const uint8_t*>(&fragment);
  ASSERT_TRUE(push(0, kDefinitionSlot, {from, from + 2 * kSlotBytes}, 0));
  encoder_->flush();
  restart();
  inbox_.define(0, DefinitionType::kProvider, state, {"mpi", "outdated", ""});
  inbox_.define(0, DefinitionType::kProvider, state, {"recording", "late", ""});
  encoder_->flush();
  const spool::Job job = read_job();
  const spool::Process& process = job.nodes[0].processes.at(0);
  EXPECT_EQ(process.providers.at("mpi").reason, "loaded");
  EXPECT_EQ(process.providers.at("recording").reason, "late");
}

TEST_F(EncoderTest, refuses_definitions_that_only_the_agent_may_make) {
  restart();
  add_process(0);
  ProcessExitDefinition forged{};
  forged.process = 0;
  forged.signal = 9;
  Record fragment{};
  fragment.head.kind = RecordKind::kDefinition;
  fragment.head.slot_count = 3;
  fragment.head.id = static_cast<uint32_t>(DefinitionType::kProcessExit);
  fragment.head.a32 = sizeof(forged);
  std::memcpy(fragment.words, &forged, sizeof(forged));
  const auto* from = reinterpret_cast<const uint8_t*>(&fragment);
  ASSERT_TRUE(push(0, kDefinitionSlot, {from, from + 3 * kSlotBytes}, 0));
  encoder_->flush();
  EXPECT_FALSE(read_job().nodes[0].processes.at(0).exit.has_value());
}

TEST_F(EncoderTest, keeps_open_regions_over_a_restart) {
  restart();
  add_process(0);
  std::vector<uint8_t> bytes;
  append(&bytes, RecordKind::kBegin, 21, 0);
  append(&bytes, RecordKind::kBegin, 22, 0);
  ASSERT_TRUE(push(0, 1, bytes, 2));
  encoder_->flush();
  restart();
  ASSERT_TRUE(push_marks(0, 1, 5));
  encoder_->flush();
  const auto segments = spool::list_segments(node_folder());
  const auto index = spool::ProcessIndex::build(node_folder(), 0, segments->at(0));
  const auto blocks = index->blocks(1, 0);
  ASSERT_EQ(blocks.size(), 2u);
  auto file = open_file(index->file(blocks[1].file), O_RDONLY);
  uint8_t prefix[spool::kBlockPrefixBytes];
  ASSERT_TRUE(read_at(file->get(), prefix, sizeof(prefix), blocks[1].offset));
  spool::BlockPosition position{blocks[1].offset, {}};
  ASSERT_TRUE(spool::parse_block_prefix(prefix, &position.header));
  spool::PayloadReader reader;
  auto payload = reader.read(file->get(), position);
  ASSERT_TRUE(payload);
  spool::BlockDecoder decoder;
  ASSERT_TRUE(decoder.begin(*payload, blocks[1].record_count));
  ASSERT_EQ(decoder.open_regions().size(), 2u);
  EXPECT_EQ(decoder.open_regions()[1].region, 22u);
}

TEST_F(EncoderTest, tells_the_end_of_a_process_once_its_records_are_written) {
  restart();
  add_process(0);
  ASSERT_TRUE(push_marks(0, 1, 10));
  state_.process(0).exit_code = 3;
  end_process(0);
  encoder_->flush();
  constexpr auto kFinished = static_cast<uint32_t>(ProcessPhase::kFinished);
  EXPECT_EQ(state_.process(0).phase.load(), kFinished);
  end_process(0);  // as where it was killed before it could say so
  restart();
  EXPECT_EQ(state_.process(0).phase.load(), kFinished);
  const spool::Job job = read_job();
  ASSERT_TRUE(job.nodes[0].processes.at(0).exit.has_value());
  EXPECT_EQ(job.nodes[0].processes.at(0).exit->exit_code, 3);
}

TEST_F(EncoderTest, a_chatty_slot_fills_and_loses_segments_of_its_own) {
  settings_.limits = {60000, 8000, 10000};
  restart();
  add_process(0);
  ASSERT_TRUE(push_marks(0, 1, 100));
  for (int i = 0; i < 200; ++i) {
    std::vector<uint8_t> bytes;
    for (int k = 0; k < 100; ++k) append(&bytes, RecordKind::kSpan, 5, random_());
    ASSERT_TRUE(push(0, 2, bytes, 100));
    encoder_->flush();
  }
  const spool::Job job = read_job();
  const StreamCount quiet = count(job, 0, 1);
  const StreamCount chatty = count(job, 0, 2);
  EXPECT_GT(lost(chatty, LossReason::kEvictedByCap), 0u);
  EXPECT_EQ(chatty.decoded + lost(chatty, LossReason::kEvictedByCap), 20000u);
  EXPECT_EQ(quiet.decoded + lost(quiet, LossReason::kEvictedByCap), 100u);
}

TEST_F(EncoderTest, a_blocked_write_stops_nothing_while_staging_has_room) {
  restart();
  add_process(0);
  std::atomic<bool> is_blocked{true};
  sink_->before_write = [&] {
    while (is_blocked) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  state_.header().has_lease.store(1);
  EncodeThread thread(encoder_.get(), &state_, 10);
  thread.start();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // it hangs in its first write now
  uint64_t pushed = 0;
  while (push_marks(0, 1, 100)) pushed += 100;
  EXPECT_GT(pushed * kSlotBytes, kStagingBytes * 8 / 10);
  numbers_[{0, 1}] = pushed;
  is_blocked = false;
  thread.flush_all();
  EXPECT_TRUE(push_marks(0, 1, 100));
  thread.flush_all();
  thread.stop();
  const StreamCount marks = count(read_job(), 0, 1);
  EXPECT_EQ(marks.decoded, pushed + 100);
}

}  // namespace
}  // namespace aon::agent
