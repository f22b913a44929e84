// The text file of JIT compilers.
#include "plugins/perf/sampling/perf_map.h"

#include <gtest/gtest.h>

#include <string>

namespace aon::perf {
namespace {

TEST(PerfMap, finds_names_with_spaces) {
  const PerfMap map = PerfMap::parse(
      "7f0010000000 40 py::solve:/a b/solve.py\n"
      "7f0010000040 20 LazyCompile:~step :3\n");
  EXPECT_EQ(map.find(0x7f0010000000), "py::solve:/a b/solve.py");
  EXPECT_EQ(map.find(0x7f001000003f), "py::solve:/a b/solve.py");
  EXPECT_EQ(map.find(0x7f0010000040), "LazyCompile:~step :3");
  EXPECT_EQ(map.find(0x7f0010000060), "");
  EXPECT_EQ(map.find(0x7f000fffffff), "");
  EXPECT_EQ(map.bad_line_count(), 0u);
}

TEST(PerfMap, takes_0x_and_line_ends_of_windows_and_no_line_end) {
  const PerfMap map = PerfMap::parse("0x1000 0x10 one\r\n2000 10 two");
  EXPECT_EQ(map.find(0x1000), "one");
  EXPECT_EQ(map.find(0x2000), "two");
}

TEST(PerfMap, a_later_line_replaces_what_it_overlaps) {
  const PerfMap map = PerfMap::parse("1000 100 old\n1040 20 new\n1000 10 newest\n");
  EXPECT_EQ(map.find(0x1000), "newest");
  EXPECT_EQ(map.find(0x1010), "old");
  EXPECT_EQ(map.find(0x1040), "new");
  EXPECT_EQ(map.find(0x105f), "new");
  EXPECT_EQ(map.find(0x1060), "old");
  EXPECT_EQ(map.find(0x10ff), "old");
  EXPECT_EQ(map.find(0x1100), "");
}

TEST(PerfMap, counts_lines_it_cannot_read) {
  const PerfMap map = PerfMap::parse(
      "zz 10 a\n1000 b\n1000 10\n1000 0 c\nffffffffffffffff 10 d\n11111111111111111 1 e\n\n"
      "1000 10 good\n");
  EXPECT_EQ(map.bad_line_count(), 6u);
  EXPECT_EQ(map.range_count(), 1u);
  EXPECT_EQ(map.find(0x1000), "good");
}

TEST(PerfMap, gives_what_was_hit_once_and_as_far_as_it_holds) {
  const PerfMap map = PerfMap::parse("1000 100 old\n1040 20 new\n2000 10 never\n");
  const auto symbols = map.find_all({0x1050, 0x1010, 0x1011, 0x3000, 0x1045});
  ASSERT_EQ(symbols.size(), 2u);
  EXPECT_EQ(symbols[0].name, "old");
  EXPECT_EQ(symbols[0].start, 0x1000u);
  EXPECT_EQ(symbols[0].end, 0x1040u);
  EXPECT_EQ(symbols[1].name, "new");
}

TEST(PerfMap, cuts_long_names) {
  const PerfMap map = PerfMap::parse("1000 10 " + std::string(100'000, 'x') + "\n");
  EXPECT_EQ(map.find_all({0x1000}).at(0).name.size(), 1024u);
}

}  // namespace
}  // namespace aon::perf
