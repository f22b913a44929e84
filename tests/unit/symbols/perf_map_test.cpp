// The text file of JIT compilers.
#include "writers/symbols/perf_map.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/unit/symbols/made.h"

namespace aon::symbols {
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

TEST(PerfMap, reads_a_file_up_to_its_limit_and_says_so) {
  const test::Folder folder;
  test::write_content(folder / "perf-1.map", "1000 10 one\n2000 10 two\n");
  const Result<PerfMap> whole = PerfMap::read(folder / "perf-1.map");
  ASSERT_TRUE(whole.has_value());
  EXPECT_FALSE(whole->is_cut());
  EXPECT_EQ(whole->find(0x2000), "two");
  const Result<PerfMap> part = PerfMap::read(folder / "perf-1.map", 12);
  ASSERT_TRUE(part.has_value());
  EXPECT_TRUE(part->is_cut());
  EXPECT_EQ(part->find(0x1000), "one");
  EXPECT_EQ(part->find(0x2000), "");
}

TEST(PerfMap, refuses_what_is_no_file) {
  const test::Folder folder;
  EXPECT_EQ(PerfMap::read(folder / "none").error().code, Code::kNotFound);
  EXPECT_EQ(PerfMap::read(folder / "").error().code, Code::kInvalid);
  ASSERT_EQ(mkfifo((folder / "fifo").c_str(), 0600), 0);
  EXPECT_EQ(PerfMap::read(folder / "fifo").error().code, Code::kInvalid);
}

}  // namespace
}  // namespace aon::symbols
