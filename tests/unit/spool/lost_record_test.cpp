#include <aon/lost_record.h>
#include <gtest/gtest.h>

namespace aon {
namespace {

TEST(LostRecord, tells_reason_count_and_times) {
  const Record record = lost_record(LossReason::kDamaged, 7, 100, uint64_t{100} + (1ull << 33));
  EXPECT_TRUE(is_valid(record.head));
  EXPECT_EQ(record.head.kind, RecordKind::kLost);
  EXPECT_EQ(record.head.id, static_cast<uint32_t>(LossReason::kDamaged));
  EXPECT_EQ(record.head.a64, 7u);
  EXPECT_EQ(end_ticks(record), uint64_t{100} + (1ull << 33));
}

TEST(LostRecord, lasts_no_time_where_the_end_comes_first) {
  const Record record = lost_record(LossReason::kPoolFull, 1, 100, 90);
  EXPECT_EQ(record.head.start_ticks, 100u);
  EXPECT_EQ(end_ticks(record), 100u);
}

}  // namespace
}  // namespace aon
