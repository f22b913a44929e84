#include "plugins/node/text.h"

#include <gtest/gtest.h>

namespace aon::node {
namespace {

TEST(NodeText, numbers_are_decimal_or_hexadecimal) {
  EXPECT_EQ(number_in(" 42\n"), 42u);
  EXPECT_EQ(number_in("0x1C7"), 0x1c7u);
  EXPECT_EQ(number_in("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(number_in("12 kB"), 12u);
  for (const char* text : {"", "max", "-1", "<unsupported>", "18446744073709551616"}) {
    EXPECT_FALSE(number_in(text)) << text;
  }
}

TEST(NodeText, fractions_do_not_depend_on_the_locale) {
  EXPECT_DOUBLE_EQ(*fraction_in("2.3283064365386962890625e-10\n"), 1.0 / 4294967296.0);
  EXPECT_DOUBLE_EQ(*fraction_in("3.50 2.00"), 3.5);
  EXPECT_FALSE(fraction_in(""));
}

TEST(NodeText, key_ends_where_its_line_says) {
  const char* text = "MemTotalX: 1\nMemTotal:   22 kB\npgfault 7\npgfault_more 8\n";
  EXPECT_EQ(field_of(text, "MemTotal"), 22u);
  EXPECT_EQ(field_of(text, "pgfault"), 7u);
  EXPECT_FALSE(field_of(text, "Mem"));
  EXPECT_FALSE(field_of("", "Mem"));
  EXPECT_EQ(field_of("a 1", "a"), 1u);
}

TEST(NodeText, lists_of_cpus_have_ranges) {
  EXPECT_EQ(cpus_in("0-2,8\n"), (std::vector<int>{0, 1, 2, 8}));
  EXPECT_EQ(cpus_in("5"), (std::vector<int>{5}));
  for (const char* text : {"", "\n", "x", "3-1", "0-99999999999"}) {
    EXPECT_TRUE(cpus_in(text).empty()) << text;
  }
}

}  // namespace
}  // namespace aon::node
