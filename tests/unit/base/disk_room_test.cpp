#include "core/base/disk_room.h"

#include <gtest/gtest.h>

namespace aon {
namespace {

TEST(DiskRoom, is_a_part_of_a_small_disk_and_a_number_of_a_large_one) {
  EXPECT_EQ(left_by_spool_bytes(0), 0u);
  EXPECT_EQ(left_by_spool_bytes(1000), 50u);
  EXPECT_EQ(left_by_spool_bytes(uint64_t{1} << 50), uint64_t{1} << 30);
}

TEST(DiskRoom, is_there_for_an_assembly_where_the_spool_has_filled_a_disk) {
  for (const uint64_t all_bytes : {uint64_t{1000}, uint64_t{1} << 34, uint64_t{1} << 50}) {
    EXPECT_GT(left_by_assembly_bytes(all_bytes), 0u);
    EXPECT_GE(left_by_spool_bytes(all_bytes) - left_by_assembly_bytes(all_bytes),
              left_by_assembly_bytes(all_bytes));
  }
}

}  // namespace
}  // namespace aon
