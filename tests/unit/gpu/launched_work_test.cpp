// Work and the calls that launched it, in memory and in temporary files.
#include "writers/devices/launched_work.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/unit/writers/spool_fixture.h"

namespace aon::writers::devices {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr size_t kStoreBytes = 64 * sizeof(Item);

Item work(uint32_t correlation, uint64_t start_ns, uint32_t device = 0) {
  Item item{};
  item.start_ns = start_ns;
  item.end_ns = start_ns + 10;
  item.correlation = correlation;
  item.device = device;
  item.is_kernel = true;
  return item;
}

Call launch(uint32_t correlation, uint64_t start_ns, uint64_t end_ns) {
  return {correlation, 7, 0, 1, start_ns, end_ns};
}

class LaunchedWorkTest : public testing::Test {
 protected:
  void make(uint64_t max_file_bytes = UINT64_MAX) {
    launched_.emplace(folder_.path(), max_file_bytes, kStoreBytes);
  }
  std::vector<LaunchedItem> join() {
    std::vector<LaunchedItem> items;
    Result<LaunchedWork::Reader> reader = launched_->join(Captures(), &missing_, &totals_);
    EXPECT_TRUE(reader.has_value());
    while (reader) {
      const Result<const LaunchedItem*> item = reader->next();
      EXPECT_TRUE(item.has_value());
      if (!item || *item == nullptr) break;
      items.push_back(**item);
    }
    return items;
  }
  /// Begin of its call, 0: not known.
  static uint64_t called_ns(const LaunchedItem& launched) {
    return launched.known_call() != nullptr ? launched.known_call()->start_ns : 0;
  }

  test::TemporaryFolder folder_;
  std::optional<LaunchedWork> launched_;
  MissingLaunches missing_;
  ExternalIdTotals totals_;
};

TEST_F(LaunchedWorkTest, comes_by_device_and_time_whatever_the_order_of_its_calls) {
  make();
  constexpr uint32_t kCount = 1000;
  for (uint32_t i = kCount; i > 0; --i) {
    ASSERT_TRUE(launched_->add(launch(i, 100 * i, 100 * i + 50)));
    if (i == 500) continue;
    ASSERT_TRUE(launched_->add(work(i, 1'000'000 - 100 * i, i % 2)));
  }
  const std::vector<LaunchedItem> items = join();
  ASSERT_EQ(items.size(), kCount - 1);
  for (size_t i = 0; i < items.size(); ++i) {
    EXPECT_EQ(called_ns(items[i]), 100u * items[i].item.correlation);
    EXPECT_EQ(items[i].call.thread, 7u);
    EXPECT_TRUE(i == 0 || items[i - 1] < items[i]);
  }
  ASSERT_EQ(missing_.all().size(), 1u);
  EXPECT_EQ(missing_.all()[0], 50'000u);
}

/// "CUSTOM0=5: 2 calls, 3 pieces of 30 ns".
std::string text_of(const ExternalIdTotals& totals) {
  std::string text;
  for (const ExternalIdRow& row : totals.rows(4)) {
    EXPECT_EQ(row.group, 4u);
    text += text.empty() ? "" : "; ";
    text += std::string(external_kind_name(row.kind)) + "=" + std::to_string(row.id) + ": " +
            std::to_string(row.call_count) + " calls, " + std::to_string(row.count) +
            " pieces of " + std::to_string(row.total_ns) + " ns";
  }
  return text;
}

TEST_F(LaunchedWorkTest, is_summed_up_by_the_external_ids_of_its_calls) {
  make();
  constexpr uint32_t kCount = 1000;  // with files
  for (uint32_t i = kCount; i > 0; --i) {
    ASSERT_TRUE(launched_->add(launch(i, 100 * i, 100 * i + 50)));
    ASSERT_TRUE(launched_->add(work(i, 100 * i + 60)));
    if (i % 4 == 0) {
      ASSERT_TRUE(launched_->add(CallId{i, ExternalKind::kCustom0, 100 * i, 5}));
    }
    if (i % 8 == 0) {
      ASSERT_TRUE(launched_->add(CallId{i, ExternalKind::kUnknown, 100 * i, i % 16}));
    }
  }
  ASSERT_TRUE(launched_->add(CallId{8, ExternalKind::kCustom1, 99, 6}));     // of no call
  ASSERT_TRUE(launched_->add(CallId{2000, ExternalKind::kCustom1, 99, 6}));  // the same
  EXPECT_EQ(join().size(), kCount);
  EXPECT_EQ(text_of(totals_),
            "UNKNOWN=0: 62 calls, 62 pieces of 620 ns; UNKNOWN=8: 63 calls, 63 pieces of 630 ns; "
            "CUSTOM0=5: 250 calls, 250 pieces of 2500 ns");
  EXPECT_EQ(totals_.left_out_call_count(), 0u);
  EXPECT_EQ(launched_->left_out_id_count(), 0u);
}

TEST_F(LaunchedWorkTest, an_external_id_of_two_calls_in_one_counts_once_and_has_all_their_work) {
  make();
  ASSERT_TRUE(launched_->add(launch(1, 120, 180)));
  ASSERT_TRUE(launched_->add(launch(1, 100, 200)));
  ASSERT_TRUE(launched_->add(launch(1, 5 * kSecond, 5 * kSecond + 100)));
  for (const uint64_t start_ns : {100ull, 120ull})
    ASSERT_TRUE(launched_->add(CallId{1, ExternalKind::kCustom0, start_ns, 5}));
  ASSERT_TRUE(launched_->add(CallId{1, ExternalKind::kCustom0, 5 * kSecond, 6}));
  for (const uint64_t start_ns : {uint64_t{150}, uint64_t{300}, 5 * kSecond + 50})
    ASSERT_TRUE(launched_->add(work(1, start_ns)));
  join();
  EXPECT_EQ(text_of(totals_),
            "CUSTOM0=5: 1 calls, 2 pieces of 20 ns; CUSTOM0=6: 1 calls, 1 pieces of 10 ns");
}

TEST_F(LaunchedWorkTest, external_ids_beyond_the_rows_are_counted) {
  make();
  constexpr uint32_t kCount = ExternalIdTotals::kMaxRows + 10;
  for (uint32_t i = 1; i <= kCount; ++i) {
    ASSERT_TRUE(launched_->add(launch(i, 100 * i, 100 * i + 50)));
    ASSERT_TRUE(launched_->add(work(i, 100 * i + 60)));
    ASSERT_TRUE(launched_->add(CallId{i, ExternalKind::kCustom0, 100 * i, i}));
  }
  EXPECT_EQ(join().size(), kCount);
  EXPECT_EQ(totals_.rows(0).size(), ExternalIdTotals::kMaxRows);
  EXPECT_EQ(totals_.left_out_call_count(), 10u);
}

TEST_F(LaunchedWorkTest, external_ids_give_way_to_work_and_calls) {
  constexpr uint32_t kCount = 1000;
  make(kCount * (DeviceAnalysis::kItemBytes + sizeof(Call)) + 2 * kStoreBytes);
  for (uint32_t i = 1; i <= kCount; ++i) {
    ASSERT_TRUE(launched_->add(CallId{i, ExternalKind::kCustom0, 100 * i, i}));
    ASSERT_TRUE(launched_->add(launch(i, 100 * i, 100 * i + 50)));
    ASSERT_TRUE(launched_->add(work(i, 100 * i + 60)));
  }
  EXPECT_EQ(launched_->left_out_id_count(), kCount);
  EXPECT_EQ(launched_->left_out_call_count(), 0u);
  EXPECT_EQ(called_ns(join().at(0)), 100u);
  EXPECT_TRUE(totals_.rows(0).empty());
}

TEST_F(LaunchedWorkTest, has_the_outer_of_two_calls_of_one_id) {
  make();
  ASSERT_TRUE(launched_->add(launch(1, 120, 180)));
  ASSERT_TRUE(launched_->add(launch(1, 100, 200)));
  ASSERT_TRUE(launched_->add(work(1, 300)));
  const std::vector<LaunchedItem> items = join();
  ASSERT_EQ(items.size(), 1u);
  EXPECT_EQ(called_ns(items[0]), 100u);
  EXPECT_TRUE(missing_.is_empty());
}

TEST_F(LaunchedWorkTest, is_of_the_call_of_its_time_where_ids_come_again) {
  make();
  for (const uint64_t at_ns : {100 * kSecond, 2000 * kSecond}) {
    ASSERT_TRUE(launched_->add(launch(1, at_ns, at_ns + 100)));
    ASSERT_TRUE(launched_->add(work(1, at_ns + kSecond)));
  }
  ASSERT_TRUE(launched_->add(work(1, 1500 * kSecond)));
  ASSERT_TRUE(launched_->add(work(1, 2000 * kSecond - 1000)));
  ASSERT_TRUE(launched_->add(work(0, 3000 * kSecond)));
  ASSERT_TRUE(launched_->add(work(2, 3001 * kSecond)));
  const std::vector<LaunchedItem> items = join();
  ASSERT_EQ(items.size(), 6u);
  EXPECT_EQ(called_ns(items[0]), 100 * kSecond);
  EXPECT_EQ(called_ns(items[1]), 0u) << "far behind the call of its id";
  EXPECT_EQ(called_ns(items[2]), 2000 * kSecond) << "clocks differ by a moment";
  EXPECT_EQ(called_ns(items[3]), 2000 * kSecond);
  EXPECT_EQ(called_ns(items[4]), 0u);
  EXPECT_EQ(called_ns(items[5]), 0u);
}

TEST_F(LaunchedWorkTest, may_wait_for_minutes_until_it_begins) {
  make();
  ASSERT_TRUE(launched_->add(launch(7, 100, 150)));
  ASSERT_TRUE(launched_->add(work(7, 540 * kSecond)));
  const std::vector<LaunchedItem> items = join();
  ASSERT_EQ(items.size(), 1u);
  EXPECT_EQ(called_ns(items[0]), 100u) << "behind other work of its stream";
}

TEST_F(LaunchedWorkTest, is_there_without_its_calls_where_the_room_is_for_it_alone) {
  make(3 * 64 * DeviceAnalysis::kItemBytes);
  for (uint32_t i = 1; i <= 200; ++i) {
    ASSERT_TRUE(launched_->add(launch(i, 100 * i, 100 * i + 50)));
    ASSERT_TRUE(launched_->add(work(i, 100 * i + 60)));
  }
  EXPECT_FALSE(launched_->has_no_room());
  EXPECT_EQ(launched_->left_out_call_count(), 200u);
  const std::vector<LaunchedItem> items = join();
  ASSERT_EQ(items.size(), 200u);
  for (const LaunchedItem& item : items) EXPECT_EQ(called_ns(item), 0u);
  EXPECT_TRUE(missing_.is_empty());
}

TEST_F(LaunchedWorkTest, that_needs_more_room_than_there_is_is_told) {
  make(64 * DeviceAnalysis::kItemBytes);
  for (uint32_t i = 1; i <= 127; ++i) ASSERT_TRUE(launched_->add(work(i, i)));
  EXPECT_FALSE(launched_->has_no_room());
  ASSERT_TRUE(launched_->add(work(128, 128)));
  EXPECT_TRUE(launched_->has_no_room());
  EXPECT_FALSE(launched_->has_work());
  launched_->clear();
  EXPECT_FALSE(launched_->has_no_room());
}

}  // namespace
}  // namespace aon::writers::devices
