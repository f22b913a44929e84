#include "core/base/median.h"

#include <gtest/gtest.h>

namespace aon {
namespace {

TEST(Median, is_the_middle_one_of_an_odd_number) {
  const std::vector<int> values = {9, 1, 5};
  EXPECT_EQ(upper_median(values), 5);
  EXPECT_EQ(lower_median(values), 5);
}

TEST(Median, is_the_one_that_is_asked_for_of_two) {
  EXPECT_DOUBLE_EQ(upper_median(std::vector<double>{4, 1, 3, 2}), 3);
  EXPECT_DOUBLE_EQ(lower_median(std::vector<double>{4, 1, 3, 2}), 2);
}

TEST(Median, is_nothing_of_none) {
  EXPECT_EQ(upper_median(std::vector<uint64_t>()), 0u);
  EXPECT_EQ(lower_median(std::vector<uint64_t>()), 0u);
}

}  // namespace
}  // namespace aon
