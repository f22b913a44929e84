#include "writers/assemble/sample_sorter.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/writers/spool_fixture.h"

namespace aon::writers {
namespace {

std::vector<uint64_t> times_of(const std::vector<Record>& records) {
  std::vector<uint64_t> times;
  for (const Record& record : records) times.push_back(record.head.start_ticks);
  return times;
}

TEST(SampleSorter, brings_late_samples_to_their_place) {
  SampleSorter sorter;
  const Record first[] = {test::sample_record(1, 10, 0), test::sample_record(1, 30, 0)};
  const Record late[] = {test::sample_record(2, 20, 0)};
  sorter.add(first);
  EXPECT_TRUE(sorter.take(false).empty());
  sorter.add(late);
  EXPECT_EQ(times_of(sorter.take(true)), (std::vector<uint64_t>{10, 20, 30}));
  EXPECT_TRUE(sorter.take(true).empty());
}

TEST(SampleSorter, samples_of_one_time_stay_in_order) {
  SampleSorter sorter;
  const Record records[] = {test::sample_record(7, 10, 0), test::sample_record(3, 10, 0)};
  sorter.add(records);
  const std::vector<Record> ready = sorter.take(true);
  EXPECT_EQ(ready[0].head.id, 7u);
  EXPECT_EQ(ready[1].head.id, 3u);
}

TEST(SampleSorter, holds_back_no_more_than_its_window) {
  SampleSorter sorter;
  std::vector<Record> ready;
  const uint64_t count = 3 * SampleSorter::kWindow;
  for (uint64_t time = 0; time < count; ++time) {
    // Each pair comes the wrong way round.
    const Record records[] = {test::sample_record(1, time ^ 1, 0)};
    sorter.add(records);
    for (const Record& record : sorter.take(false)) ready.push_back(record);
  }
  EXPECT_EQ(ready.size(), 2 * SampleSorter::kWindow);
  for (const Record& record : sorter.take(true)) ready.push_back(record);
  const std::vector<uint64_t> times = times_of(ready);
  EXPECT_EQ(times.size(), count);
  EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
}

}  // namespace
}  // namespace aon::writers
