// Which files of the spool are open, and what goes when there is no room.
#include "core/agent/segments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "core/agent/series.h"
#include "tests/unit/agent/encoder_bench.h"

namespace aon::agent {
namespace {

class SegmentsTest : public test::EncoderBench {
 protected:
  /// One flush in which the processes from `first` on have a mark each. Files opened in it.
  int flush(uint32_t first, uint32_t count) {
    for (uint32_t i = first; i < first + count; ++i) EXPECT_TRUE(push_marks(i, 1, 1));
    const int before = sink_->open_count;
    encoder_->flush();
    return sink_->open_count - before;
  }
  void start(uint32_t process_count) {
    restart();
    for (uint32_t i = 0; i < process_count; ++i) add_process(i);
  }
};

TEST_F(SegmentsTest, owners_beyond_the_limit_leave_the_files_of_the_others_open) {
  constexpr int kLimit = 256;
  constexpr int kOwners = 300;
  start(kOwners);
  EXPECT_EQ(flush(0, kOwners), kOwners);
  for (int i = 0; i < 3; ++i) EXPECT_LE(flush(0, kOwners), kOwners - kLimit + 1);
}

TEST_F(SegmentsTest, files_that_nobody_writes_make_room) {
  settings_.limits.open_files = 4;
  start(8);
  flush(0, 4);
  int opened = 0;
  for (int i = 0; i < 40; ++i) opened = flush(4, 4);
  EXPECT_EQ(opened, 0);
  EXPECT_EQ(flush(0, 1), 1);
}

/// Samples of a process come when its provider has read them, which may be behind its end.
TEST_F(SegmentsTest, the_file_of_a_process_that_has_ended_does_not_stay_open) {
  start(2);
  flush(0, 2);
  const auto open_count = [&] {
    size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code ignored;
      const std::string file = std::filesystem::read_symlink(entry.path(), ignored).string();
      count += file.ends_with("/p0.0.aon") ? 1 : 0;
    }
    return count;
  };
  end_process(0);
  encoder_->flush();
  EXPECT_EQ(open_count(), 0u);
  Series series(&state_);
  series.put(0, 7, ++ticks_, 1, 0, 0);
  encoder_->flush();
  EXPECT_EQ(open_count(), 1u);
  end_process(1);
  encoder_->flush();
  EXPECT_EQ(open_count(), 0u);
}

/// Segments are as small as many owners need: none loses all it has to keep the cap.
TEST_F(SegmentsTest, each_of_many_owners_keeps_its_newest_when_the_cap_is_reached) {
  constexpr uint32_t kOwners = 20;
  settings_.limits.total_bytes = 1u << 20;
  settings_.limits.segment_bytes = 1u << 18;
  settings_.limits.chatty_bytes = 1u << 30;
  start(kOwners);
  for (int i = 0; i < 60; ++i) {
    for (uint32_t process = 0; process < kOwners; ++process) {
      std::vector<uint8_t> bytes;
      for (int n = 0; n < 200; ++n) append(&bytes, RecordKind::kSpan, 5, random_());
      ASSERT_TRUE(push(process, 1, bytes, 200));
    }
    encoder_->flush();
  }
  const auto segments = *spool::list_segments(node_folder());
  ASSERT_EQ(segments.size(), kOwners);
  uint64_t all_bytes = 0;
  for (const auto& [process, names] : segments) {
    uint64_t bytes = 0;
    for (const auto& name : names)
      bytes += std::filesystem::file_size(std::filesystem::path(node_folder()) /
                                          spool::segment_file_name(name));
    EXPECT_GT(names.front().segment, 0u) << "the cap was not reached";
    EXPECT_GT(bytes, (uint64_t{1} << 20) / kOwners / 2) << "process " << process;
    all_bytes += bytes;
  }
  EXPECT_LT(all_bytes, (uint64_t{1} << 20) * 9 / 8);
}

/// A disk of 4 MiB, of which others use some.
class NearlyFullDisk : public SegmentsTest {
 protected:
  static constexpr uint64_t kAllBytes = 4u << 20;
  static constexpr uint64_t kFloorBytes = kAllBytes / 20;

  void SetUp() override {
    SegmentsTest::SetUp();
    sink_->all_bytes = kAllBytes;
    sink_->free_bytes = [this] {
      return kAllBytes - std::min(kAllBytes, others_ + segment_bytes());
    };
    settings_.limits.room_period = {};
    start(2);
  }
  uint64_t segment_bytes() const {
    uint64_t sum = 0;
    for (const auto& file : std::filesystem::directory_iterator(node_folder())) {
      if (file.path().filename() != spool::kDefinitionsFile) sum += file.file_size();
    }
    return sum;
  }
  size_t segment_count() const { return spool::list_segments(node_folder())->at(0).size(); }
  void write_spans(int flush_count) {
    for (int i = 0; i < flush_count; ++i) {
      for (uint32_t process = 0; process < 2; ++process) {
        std::vector<uint8_t> bytes;
        for (int n = 0; n < 100; ++n) append(&bytes, RecordKind::kSpan, 5, random_());
        ASSERT_TRUE(push(process, 1, bytes, 100));
      }
      spans_ += 100;
      encoder_->flush();
    }
  }
  uint64_t assert_law() {
    const spool::Job job = read_job();
    uint64_t evicted = 0;
    for (uint32_t process = 0; process < 2; ++process) {
      const test::StreamCount count = EncoderBench::count(job, process, 1);
      const uint64_t lost = count.lost[static_cast<size_t>(LossReason::kEvictedByCap)];
      EXPECT_EQ(count.decoded + lost, spans_);
      evicted += lost;
    }
    return evicted;
  }

  uint64_t others_ = 0;
  uint64_t spans_ = 0;  ///< of each process
};

TEST_F(NearlyFullDisk, a_disk_with_room_is_no_matter) {
  write_spans(100);
  EXPECT_EQ(assert_law(), 0u);
  EXPECT_EQ(segment_count(), 1u);
  EXPECT_EQ(read_job().nodes[0].providers.count("disk"), 0u);
}

TEST_F(NearlyFullDisk, oldest_segments_go_so_that_the_floor_stays_free) {
  others_ = kAllBytes - kFloorBytes - 200000;
  write_spans(200);
  EXPECT_GT(assert_law(), 0u);
  EXPECT_GE(sink_->free_bytes(), kFloorBytes);
  EXPECT_GT(segment_bytes(), 100000u) << "no more goes than must";
  const spool::Provider disk = read_job().nodes[0].providers.at("disk");
  EXPECT_EQ(disk.state, ProviderState::kDegraded);
  EXPECT_NE(disk.reason.find("nearly full"), std::string::npos) << disk.reason;
}

TEST_F(NearlyFullDisk, each_owner_keeps_a_segment_when_others_fill_the_disk) {
  others_ = kAllBytes - kFloorBytes - 200000;
  write_spans(100);
  others_ = kAllBytes;
  write_spans(1);
  EXPECT_GT(segment_count(), 1u) << "in steps";
  write_spans(40);
  EXPECT_GT(assert_law(), 0u);
  EXPECT_EQ(segment_count(), 1u);
  EXPECT_GT(segment_bytes(), 0u);
  others_ = 0;
  const uint64_t evicted = assert_law();
  write_spans(200);
  EXPECT_EQ(assert_law(), evicted);
}

TEST_F(NearlyFullDisk, what_could_not_be_written_is_told_apart_from_what_went_later) {
  write_spans(3);
  sink_->error = ENOSPC;
  write_spans(3);
  sink_->error = 0;
  write_spans(3);
  // A new segment: the one with the gap is not the last one.
  others_ = kAllBytes - kFloorBytes - segment_bytes() - 20000;
  write_spans(40);
  others_ = kAllBytes;
  write_spans(40);
  const spool::Job job = read_job();
  for (uint32_t process = 0; process < 2; ++process) {
    const test::StreamCount count = EncoderBench::count(job, process, 1);
    const auto lost = [&](LossReason reason) { return count.lost[static_cast<size_t>(reason)]; };
    EXPECT_EQ(lost(LossReason::kWriteFailed), 300u);
    EXPECT_GE(lost(LossReason::kEvictedByCap), 600u) << "what was written about it";
    EXPECT_EQ(lost(LossReason::kDamaged), 0u);
    EXPECT_EQ(count.decoded + lost(LossReason::kWriteFailed) + lost(LossReason::kEvictedByCap),
              spans_);
  }
}

/// Neither that nor anything else can be said of what would have to go.
TEST_F(SegmentsTest, that_the_disk_is_full_is_told_though_an_eviction_cannot_be) {
  settings_.limits = {20000, 8000, 1u << 30};
  settings_.limits.kept_bytes = 1u << 20;
  start(2);
  const auto write = [&](uint32_t process) {
    std::vector<uint8_t> bytes;
    for (int n = 0; n < 100; ++n) append(&bytes, RecordKind::kSpan, 5, random_());
    ASSERT_TRUE(push(process, 1, bytes, 100));
  };
  write(1);
  encoder_->flush();
  // Below the cap, with segments of which one can go.
  while (encoder_->disk_bytes() < 18500) {
    write(0);
    encoder_->flush();
  }
  // Of each flush: the segment of process 0, that of process 1, the definitions, and more of these.
  int number = 0;
  sink_->before_write = [&] { sink_->error = ++number == 2 || number > 3 ? ENOSPC : 0; };
  for (int i = 0; i < 8; ++i) write(0);
  write(1);
  encoder_->flush();
  EXPECT_GT(number, 3);
  sink_->before_write = {};
  sink_->error = 0;
  number = 0;
  sink_->before_write = [&] { sink_->error = ++number == 1 ? ENOSPC : 0; };
  write(1);
  encoder_->flush();
  const spool::Job job = read_job();
  ASSERT_EQ(job.nodes.at(0).providers.count("disk"), 1u);
  EXPECT_EQ(job.nodes[0].providers.at("disk").state, ProviderState::kDegraded);
}

}  // namespace
}  // namespace aon::agent
