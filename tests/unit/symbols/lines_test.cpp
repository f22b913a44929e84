// Source lines and inlined functions, DWARF 4, 5 and split.
#include <gmock/gmock.h>

#include "tests/unit/symbols/made.h"

namespace aon::symbols::test {
namespace {

/// Every address of a function, so that no test knows what the compiler does with it.
std::vector<uint64_t> all_of(const std::string& path, const std::string& symbol) {
  const std::string line = output_of("nm -S '" + path + "' | grep ' " + symbol + "$'");
  unsigned long long address = 0, bytes = 0;
  EXPECT_EQ(std::sscanf(line.c_str(), "%llx %llx", &address, &bytes), 2) << symbol;
  std::vector<uint64_t> offsets;
  const Segments segments(path);
  for (uint64_t i = 0; i < bytes; ++i) offsets.push_back(segments.offset_of(address + i));
  return offsets;
}

class Lines : public testing::TestWithParam<const char*> {};

TEST_P(Lines, gives_inlined_functions_innermost_first) {
  const std::string path = made(GetParam());
  const Seen seen = resolve({path, {}}, all_of(path, "_ZN4grid6Solver5sweepEi"));
  ASSERT_EQ(seen.error, "");
  EXPECT_EQ(seen.report.remark, "");
  size_t chains = 0;
  for (const std::vector<SeenFrame>& frames : seen.frames) {
    ASSERT_FALSE(frames.empty());
    EXPECT_EQ(frames.back().function, "grid::Solver::sweep(int)");
    EXPECT_FALSE(frames.back().is_inlined);
    if (frames.size() != 3) continue;
    ++chains;
    EXPECT_EQ(frames[0].function, "void grid::innermost<long>(long)");
    EXPECT_EQ(frames[0].line, line_of("inlined.cpp", "sink = sink +"));
    EXPECT_TRUE(frames[0].is_inlined);
    EXPECT_EQ(frames[1].function, "grid::middle(int)");
    EXPECT_EQ(frames[1].line, line_of("inlined.cpp", "innermost<long>(value)"));
    EXPECT_TRUE(frames[1].is_inlined);
    EXPECT_EQ(frames[2].line, line_of("inlined.cpp", " middle(value)"));
    for (const SeenFrame& frame : frames)
      EXPECT_EQ(frame.file, std::string(kPrograms) + "/inlined.cpp");
  }
  EXPECT_GT(chains, 0u);
}

INSTANTIATE_TEST_SUITE_P(dwarf, Lines, testing::Values("cpp_dwarf4", "cpp_dwarf5", "cpp_split"),
                         [](const auto& form) { return std::string(form.param); });

TEST(LineOptions, leaves_lines_out_when_not_wanted) {
  const std::string path = made("cpp_dwarf5");
  ResolverOptions options;
  options.wants_lines = false;
  const Seen seen = resolve({path, {}}, all_of(path, "_ZN4grid6Solver5sweepEi"), options);
  EXPECT_EQ(seen.report.line_count, 0u);
  EXPECT_EQ(seen.frames.at(0).size(), 1u);
  EXPECT_EQ(seen.report.remark, "");
}

TEST(LineOptions, say_how_to_get_lines_that_are_not_there) {
  const std::string path = made("c_now");  // compiled without -g
  const Seen seen =
      resolve({path, {}}, {offset_of(path, "plain")}, {.search = {.directories = {}}});
  EXPECT_EQ(seen.name(0), "plain");
  EXPECT_THAT(seen.report.remark, testing::HasSubstr("no lines"));
  EXPECT_THAT(seen.report.remark, testing::HasSubstr("build with -g"));
}

TEST(LineOptions, a_call_is_found_at_its_return_address_less_one) {
  const std::string path = made("c_pie");
  // Behind the call of printf in main, as objdump shows it.
  const std::string call = output_of("objdump -d --no-show-raw-insn '" + path +
                                     "' | sed -n '/<main>:/,/^$/p' | grep -A1 'printf' | tail -1");
  const uint64_t after = Segments(path).offset_of(std::strtoull(call.c_str(), nullptr, 16));
  const Seen seen = resolve({path, {}}, {after - 1});
  const SeenFrame& frame = seen.frames.at(0).at(0);
  EXPECT_EQ(frame.function, "main");
  EXPECT_EQ(frame.line, line_of("calls.c", "printf("));
}

}  // namespace
}  // namespace aon::symbols::test
