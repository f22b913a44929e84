#include "core/spool/stream_reader.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "core/spool/block_reader.h"
#include "tests/unit/spool/sample_records.h"
#include "tests/unit/temporary_folder.h"

namespace aon::spool {
namespace {

using test::Bytes;

constexpr uint32_t kProcess = 4;
constexpr uint16_t kSlot = 2;

/// `count` spans of 50 ticks, one every 100 ticks; their ids number them.
Bytes spans(uint32_t first, uint32_t count) {
  Bytes bytes;
  for (uint32_t i = first; i < first + count; ++i) {
    test::append_record(&bytes, test::make_record(RecordKind::kSpan, 1, i, 1000 + i * 100, 50));
  }
  return bytes;
}

struct Replay {
  std::vector<uint32_t> ids;  ///< of the counted records
  std::vector<Record> lost;
  std::vector<size_t> resync_at;  ///< counted records before each resync
  std::vector<OpenRegion> open;   ///< at the last resync
  StreamLosses losses;
  bool in_order = true;
};

class Stream : public testing::Test {
 protected:
  void write(uint32_t segment, const Bytes& bytes) {
    test::write_file(folder_.path() / segment_file_name({kProcess, std::nullopt, segment}), bytes);
  }
  Bytes read(uint32_t segment) {
    return test::read_file(folder_.path() / segment_file_name({kProcess, std::nullopt, segment}));
  }

  Replay replay() {
    Replay result;
    const auto segments = list_segments(folder_.path());
    EXPECT_TRUE(segments.has_value());
    const auto found = segments->find(kProcess);
    if (found == segments->end()) return result;
    const auto index = ProcessIndex::build(folder_.path(), kProcess, found->second);
    EXPECT_TRUE(index.has_value());
    StreamReader reader(*index, &process_, kSlot);
    uint64_t last_end_ticks = 0;
    for (;;) {
      const Result<StreamBatch> batch = reader.next();
      EXPECT_TRUE(batch.has_value());
      if (!batch || batch->records.empty()) break;
      if (batch->is_resync) {
        result.resync_at.push_back(result.ids.size());
        result.open.assign(batch->open.begin(), batch->open.end());
      }
      for (const Record& record : batch->records) {
        result.in_order = result.in_order && end_ticks(record) >= last_end_ticks;
        last_end_ticks = end_ticks(record);
        if (record.head.kind == RecordKind::kLost) result.lost.push_back(record);
        if (is_counted(record.head.kind)) result.ids.push_back(record.head.id);
      }
    }
    result.losses = reader.losses();
    return result;
  }

  static std::vector<uint32_t> numbers(uint32_t first, uint32_t end) {
    std::vector<uint32_t> ids(end - first);
    std::iota(ids.begin(), ids.end(), first);
    return ids;
  }

  aon::test::TemporaryFolder folder_;
  Process process_{};
};

TEST_F(Stream, comes_out_whole_over_several_segments) {
  test::StreamWriter writer(kProcess, kSlot);
  for (uint32_t segment = 0; segment < 3; ++segment) {
    Bytes file;
    for (uint32_t block = 0; block < 4; ++block) {
      writer.append_block(spans((segment * 4 + block) * 1000, 1000), block, &file);
    }
    write(segment, file);
  }
  const Replay all = replay();
  EXPECT_EQ(all.ids, numbers(0, 12000));
  EXPECT_TRUE(all.in_order);
  EXPECT_TRUE(all.lost.empty());
  EXPECT_THAT(all.resync_at, testing::ElementsAre(0u));
}

TEST_F(Stream, takes_only_its_own_slot) {
  test::StreamWriter mine(kProcess, kSlot);
  test::StreamWriter other(kProcess, kSlot + 1);
  Bytes file;
  for (uint32_t block = 0; block < 6; ++block) {
    other.append_block(spans(90000, 100), block * 2, &file);
    mine.append_block(spans(block * 100, 100), block * 2 + 1, &file);
  }
  write(0, file);
  EXPECT_EQ(replay().ids, numbers(0, 600));
}

TEST_F(Stream, merges_the_two_contexts_by_end_time) {
  test::StreamWriter normal(kProcess, kSlot, 0);
  test::StreamWriter nested(kProcess, kSlot, 1);
  Bytes file;
  uint64_t block_sequence = 0;
  for (uint32_t i = 0; i < 3; ++i) {
    normal.append_block(spans(i * 700, 700), block_sequence++, &file);
    Bytes handler;
    for (uint32_t k = 0; k < 20; ++k) {
      const uint64_t start = 1000 + (i * 700 + k * 30) * 100 + 60;
      test::append_record(&handler, test::make_record(RecordKind::kSpan, 1, 100000, start, 10));
    }
    nested.append_block(handler, block_sequence++, &file);
  }
  write(0, file);
  Replay all = replay();
  EXPECT_TRUE(all.in_order);
  EXPECT_EQ(std::erase(all.ids, 100000u), 60u);
  EXPECT_EQ(all.ids, numbers(0, 2100));
}

/// What is open behind the gap was not yet open in a signal handler before it.
TEST_F(Stream, tells_what_a_handler_did_before_a_gap_before_what_is_open_behind_it) {
  test::StreamWriter normal(kProcess, kSlot, 0);
  test::StreamWriter nested(kProcess, kSlot, 1);
  Bytes file;
  Bytes lost;
  normal.append_block(spans(0, 100), 0, &file);
  normal.append_block(spans(100, 100), 1, &lost);
  normal.append_block(spans(200, 100), 2, &file);
  Bytes handler;
  test::append_record(&handler, test::make_record(RecordKind::kSpan, 1, 100000, 12000, 10));
  nested.append_block(handler, 3, &file);
  write(0, file);
  const Replay all = replay();
  EXPECT_TRUE(all.in_order);
  EXPECT_EQ(all.resync_at, (std::vector<size_t>{0, 101}));
  ASSERT_EQ(all.lost.size(), 1u);
  EXPECT_EQ(all.lost[0].head.a64, 100u);
}

TEST_F(Stream, drops_blocks_that_were_written_twice) {
  test::StreamWriter writer(kProcess, kSlot);
  Bytes first;
  writer.append_block(spans(0, 100), 0, &first);
  Bytes second;
  writer.append_block(spans(100, 100), 0, &second);
  Bytes third = second;
  writer.append_block(spans(200, 100), 1, &third);
  write(0, first);
  write(1, second);
  write(2, third);
  const Replay all = replay();
  EXPECT_EQ(all.ids, numbers(0, 300));
  EXPECT_TRUE(all.lost.empty());
}

TEST_F(Stream, drops_the_part_of_a_block_that_came_before) {
  test::StreamWriter writer(kProcess, kSlot);
  test::StreamWriter replayed(kProcess, kSlot);
  Bytes file;
  writer.append_block(spans(0, 100), 0, &file);
  replayed.skip(60);
  replayed.append_block(spans(60, 100), 1, &file);
  write(0, file);
  EXPECT_EQ(replay().ids, numbers(0, 160));
}

TEST_F(Stream, damaged_block_is_a_counted_loss_with_its_time) {
  test::StreamWriter writer(kProcess, kSlot);
  Bytes file;
  writer.append_block(spans(0, 1000), 0, &file);
  const size_t damaged_at = file.size() + kBlockPrefixBytes + 60;
  writer.append_block(spans(1000, 1000), 1, &file);
  writer.append_block(spans(2000, 1000), 2, &file);
  file[damaged_at] ^= 0xff;
  write(0, file);
  const Replay all = replay();
  EXPECT_EQ(all.ids.size(), 2000u);
  ASSERT_EQ(all.lost.size(), 1u);
  const Record& lost = all.lost[0];
  EXPECT_EQ(lost.head.id, static_cast<uint32_t>(LossReason::kDamaged));
  EXPECT_EQ(lost.head.a64, 1000u);
  EXPECT_EQ(lost.head.start_ticks, 1000u + 999 * 100 + 50);
  EXPECT_EQ(end_ticks(lost), 1000u + 2000 * 100);
  EXPECT_EQ(all.losses.damaged_blocks, 1u);
  EXPECT_EQ(all.losses.count[static_cast<uint32_t>(LossReason::kDamaged)], 1000u);
  EXPECT_THAT(all.resync_at, testing::ElementsAre(0u, 1000u));
  EXPECT_TRUE(all.in_order);
}

TEST_F(Stream, damaged_last_block_is_a_loss_also_without_a_final_count) {
  test::StreamWriter writer(kProcess, kSlot);
  Bytes file;
  writer.append_block(spans(0, 1000), 0, &file);
  const size_t damaged_at = file.size() + kBlockPrefixBytes + 60;
  writer.append_block(spans(1000, 700), 1, &file);
  file[damaged_at] ^= 0xff;
  write(0, file);
  const Replay all = replay();
  EXPECT_EQ(all.ids.size(), 1000u);
  ASSERT_EQ(all.lost.size(), 1u);
  EXPECT_EQ(all.lost[0].head.a64, 700u);
  EXPECT_EQ(all.losses.damaged_blocks, 1u);
  EXPECT_TRUE(all.in_order);
}

TEST_F(Stream, evicted_segment_has_the_reason_that_the_agent_wrote) {
  test::StreamWriter writer(kProcess, kSlot);
  Bytes evicted;
  Bytes kept;
  writer.append_block(spans(0, 500), 0, &evicted);
  writer.append_block(spans(500, 500), 0, &kept);
  write(1, kept);
  process_.start.attach_ticks = 900;
  process_.losses.push_back({kProcess, kSlot, 0, static_cast<uint32_t>(LossReason::kEvictedByCap),
                             0, 0, 400, 1000, 41000});
  const Replay all = replay();
  EXPECT_EQ(all.ids, numbers(500, 1000));
  ASSERT_EQ(all.lost.size(), 2u);
  EXPECT_EQ(all.lost[0].head.id, static_cast<uint32_t>(LossReason::kEvictedByCap));
  EXPECT_EQ(all.lost[0].head.a64, 400u);
  EXPECT_EQ(all.lost[0].head.start_ticks, 1000u);
  EXPECT_EQ(all.lost[1].head.id, static_cast<uint32_t>(LossReason::kDamaged));
  EXPECT_EQ(all.lost[1].head.a64, 100u);
  EXPECT_TRUE(all.in_order);
}

TEST_F(Stream, missing_end_is_known_from_the_final_count) {
  test::StreamWriter writer(kProcess, kSlot);
  Bytes file;
  writer.append_block(spans(0, 100), 0, &file);
  write(0, file);
  StreamDefinition state{};
  state.committed = 130;
  process_.streams[{kSlot, 0}] = state;
  process_.exit = ProcessExitDefinition{kProcess, 0, 0, 0, 50'000, 0, 0};
  const Replay all = replay();
  EXPECT_EQ(all.ids.size(), 100u);
  ASSERT_EQ(all.lost.size(), 1u);
  EXPECT_EQ(all.lost[0].head.a64, 30u);
  EXPECT_EQ(end_ticks(all.lost[0]), 50'000u);
}

TEST_F(Stream, whole_truncated_file_is_made_up_by_the_final_count) {
  test::StreamWriter writer(kProcess, kSlot);
  Bytes file;
  for (uint32_t block = 0; block < 5; ++block) {
    writer.append_block(spans(block * 100, 100), block, &file);
  }
  process_.streams[{kSlot, 0}].committed = writer.sequence();
  for (size_t bytes = 0; bytes < file.size(); bytes += 37) {
    write(0, Bytes(file.begin(), file.begin() + static_cast<ptrdiff_t>(bytes)));
    const Replay part = replay();
    const uint64_t lost = part.losses.count[static_cast<uint32_t>(LossReason::kDamaged)];
    ASSERT_EQ(part.ids.size() + lost, 500u) << "at " << bytes;
  }
}

TEST_F(Stream, tells_the_regions_open_behind_a_gap) {
  test::StreamWriter writer(kProcess, kSlot);
  Bytes file;
  Bytes records;
  test::append_record(&records, test::make_record(RecordKind::kBegin, 1, 77, 500, 0));
  writer.append_block(records, 0, &file);
  const size_t damaged_at = file.size() + kBlockPrefixBytes + 30;
  writer.append_block(spans(0, 100), 1, &file);
  writer.append_block(spans(100, 100), 2, &file);
  file[damaged_at] ^= 0x55;
  write(0, file);
  const Replay all = replay();
  EXPECT_THAT(all.resync_at, testing::ElementsAre(0u, 1u));
  ASSERT_EQ(all.open.size(), 1u);
  EXPECT_EQ(all.open[0].region, 77u);
  EXPECT_EQ(all.open[0].start_ticks, 500u);
}

TEST_F(Stream, uncounted_records_do_not_disturb_the_sequence) {
  test::StreamWriter writer(kProcess, kSlot);
  Bytes file;
  for (uint32_t block = 0; block < 4; ++block) {
    Bytes records = spans(block * 10, 10);
    const uint64_t now = 1000 + block * 1000 + 999;
    test::append_record(&records, test::make_record(RecordKind::kThread, 1, 42, now, 0));
    writer.append_block(records, block * 2, &file);
    Bytes thread_only;
    test::append_record(&thread_only, test::make_record(RecordKind::kThread, 1, 43, now, 0));
    writer.append_block(thread_only, block * 2 + 1, &file);
  }
  write(0, file);
  const Replay all = replay();
  EXPECT_EQ(all.ids, numbers(0, 40));
  EXPECT_TRUE(all.lost.empty());
}

TEST_F(Stream, vanished_segment_is_a_loss_and_no_error) {
  test::StreamWriter writer(kProcess, kSlot);
  for (uint32_t segment = 0; segment < 3; ++segment) {
    Bytes file;
    writer.append_block(spans(segment * 100, 100), 0, &file);
    write(segment, file);
  }
  const auto segments = list_segments(folder_.path());
  const auto index = ProcessIndex::build(folder_.path(), kProcess, segments->at(kProcess));
  ASSERT_TRUE(index.has_value());
  std::filesystem::remove(folder_.path() / "p4.1.aon");
  StreamReader reader(*index, nullptr, kSlot);
  uint64_t counted = 0;
  for (auto batch = reader.next(); batch && !batch->records.empty(); batch = reader.next()) {
    for (const Record& record : batch->records) counted += is_counted(record.head.kind) ? 1 : 0;
  }
  EXPECT_EQ(counted, 200u);
  EXPECT_EQ(reader.losses().count[static_cast<uint32_t>(LossReason::kDamaged)], 100u);
}

TEST_F(Stream, index_knows_slots_and_time) {
  test::StreamWriter a(kProcess, 1);
  test::StreamWriter b(kProcess, 5);
  Bytes file;
  a.append_block(spans(3, 10), 0, &file);
  b.append_block(spans(7, 10), 1, &file);
  write(0, file);
  const auto segments = list_segments(folder_.path());
  const auto index = ProcessIndex::build(folder_.path(), kProcess, segments->at(kProcess));
  ASSERT_TRUE(index.has_value());
  EXPECT_THAT(index->slots(), testing::ElementsAre(1, 5));
  EXPECT_EQ(index->tick_range(), (std::pair<uint64_t, uint64_t>{1300, 2650}));
  EXPECT_EQ(index->blocks(5, 0).size(), 1u);
  EXPECT_TRUE(index->blocks(6, 0).empty());
}

}  // namespace
}  // namespace aon::spool
