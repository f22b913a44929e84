// Which part of a job's time has no more than so many records: against counting all of them.

#include "writers/assemble/record_load.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "tests/unit/writers/spool_fixture.h"
#include "writers/assemble/model.h"

namespace aon::writers {
namespace {

TEST(RecordLoad, whole_when_there_is_room) {
  RecordLoad load;
  EXPECT_EQ(load.window_start(0).latest_ns, 0u);
  load.add(1000, 2000, 10);
  EXPECT_EQ(load.record_count(), 10u);
  EXPECT_EQ(load.window_start(10).earliest_ns, 0u);
  EXPECT_EQ(load.window_start(10).latest_ns, 0u);
}

TEST(RecordLoad, bounds_hold_wherever_the_records_of_a_run_stand) {
  RecordLoad load;
  load.add(1000, 2000, 100);
  load.add(2000, 3000, 100);
  EXPECT_EQ(load.window_start(150).earliest_ns, 1001u);
  EXPECT_EQ(load.window_start(150).latest_ns, 2001u);
  EXPECT_EQ(load.window_start(100).latest_ns, 2001u);
  EXPECT_EQ(load.window_start(99).earliest_ns, 2001u);
  EXPECT_EQ(load.window_start(99).latest_ns, 3001u);
}

TEST(RecordLoad, single_instants_are_exact) {
  RecordLoad load;
  for (const uint64_t time : {1000, 9000, 0}) load.add(time, time, 5);
  for (const auto& [count, start] : {std::pair{12, 1}, {7, 1001}, {4, 9001}}) {
    const RecordLoad::Bounds bounds = load.window_start(static_cast<uint64_t>(count));
    EXPECT_EQ(bounds.earliest_ns, static_cast<uint64_t>(start)) << count;
    EXPECT_EQ(bounds.latest_ns, static_cast<uint64_t>(start)) << count;
  }
}

/// Ends of the calls of one stream, ascending from 0 (ns).
using Ends = std::vector<uint64_t>;

class WindowStart : public testing::Test {
 protected:
  /// A stream is `slot` of `process`.
  void add_stream(uint32_t process, uint16_t slot, const Ends& ends) {
    std::vector<Record> records;
    uint64_t start = 1;
    for (const uint64_t end : ends) {
      records.push_back(test::span_record(1, start, end));
      start = end;
    }
    if (processes_.insert(process).second)
      node_.add_process(process, static_cast<int32_t>(process), 4,
                        {{"MPI_Send", RegionRole::kPointToPoint}});
    node_.add_records(process, slot, records);
  }

  std::unique_ptr<JobModel> model() {
    node_.finish();
    auto parts = build_model(job_.path(), kDefaultOtf2Locations);
    EXPECT_TRUE(parts.has_value());
    return std::move(*parts);
  }

  /// By the times of all records.
  static uint64_t counted_start_ns(const JobModel& parts, std::vector<Ends> streams,
                                   uint64_t record_count) {
    std::vector<uint64_t> all;
    for (const Ends& ends : streams) {
      for (const uint64_t end : ends) all.push_back(parts.clocks[0].to_ns(end));
    }
    std::sort(all.begin(), all.end(), std::greater<>());
    return record_count >= all.size() ? 0 : all[record_count] + 1;
  }

  void expect_exact(const std::vector<Ends>& streams) {
    uint32_t stream = 0;
    uint64_t sum = 0;
    for (const Ends& ends : streams) {
      add_stream(stream % 4, static_cast<uint16_t>(1 + stream / 4), ends);
      sum += ends.size();
      ++stream;
    }
    const auto parts = model();
    int beats = 0;
    for (const uint64_t room : {uint64_t{0}, uint64_t{1}, uint64_t{400}, sum / 3, sum - 1, sum}) {
      const auto start_ns = window_start_ns(*parts, room, [&beats] { ++beats; });
      ASSERT_TRUE(start_ns.has_value());
      EXPECT_EQ(*start_ns, counted_start_ns(*parts, streams, room)) << room << " of " << sum;
    }
    EXPECT_GT(beats, 0);
  }

  test::TemporaryFolder job_;
  test::NodeSpool node_{job_.path(), "n1"};
  std::set<uint32_t> processes_;
};

/// A wait, and then in a hundredth of the block's time all that it has.
TEST_F(WindowStart, is_exact_where_a_block_is_a_burst_after_a_wait) {
  std::vector<Ends> streams(4);
  for (uint32_t stream = 0; stream < 4; ++stream) {
    for (uint64_t i = 0; i < 7500; ++i)
      streams[stream].push_back(2'000'000'000 + 7 * stream + i * 2000);
  }
  expect_exact(streams);
}

TEST_F(WindowStart, is_exact_where_a_stream_ends_long_before_the_others) {
  std::vector<Ends> streams(6);
  for (uint32_t stream = 0; stream < 6; ++stream) {
    for (uint64_t i = 1; i <= 20'000; ++i)
      streams[stream].push_back(i * (stream == 0 ? 10'000 : 100'003) + stream);
  }
  expect_exact(streams);
}

/// Bursts, pauses and calls of all lengths, in blocks that are full and others that are not.
TEST_F(WindowStart, is_exact_for_any_pace) {
  std::mt19937_64 random(4711);
  std::vector<Ends> streams(8);
  for (Ends& ends : streams) {
    uint64_t time = 1 + random() % 1000;
    const uint64_t count = 1 + random() % 30'000;
    uint64_t pace = 1000;
    for (uint64_t i = 0; i < count; ++i) {
      if (random() % 1000 == 0) pace = uint64_t{1} << (5 + random() % 16);
      time += 1 + random() % pace;
      ends.push_back(time);
    }
  }
  expect_exact(streams);
}

/// Nobody knows when its records ended: as late as they can have.
TEST_F(WindowStart, a_block_that_cannot_be_read_counts_as_its_header_tells) {
  Ends ends;
  for (uint64_t i = 0; i < 5000; ++i) ends.push_back(1000 + i * 100);
  add_stream(0, 1, ends);
  const auto parts = model();
  {
    std::fstream file(node_.segment(0), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(std::filesystem::file_size(node_.segment(0))) - 64);
    file.write("damage", 6);
  }
  const auto start_ns = window_start_ns(*parts, 100, [] {});
  ASSERT_TRUE(start_ns.has_value());
  EXPECT_EQ(*start_ns, parts->clocks[0].to_ns(ends.back()) + 1);
}

}  // namespace
}  // namespace aon::writers
