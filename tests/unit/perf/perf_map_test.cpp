// The text file of JIT compilers.
#include "plugins/perf/sampling/perf_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "plugins/perf/sampling/sampler.h"
#include "tests/unit/perf/fake_kernel.h"
#include "tests/unit/perf/ring_writer.h"
#include "tests/unit/provider/fake_core.h"

namespace aon::perf {
namespace {

using test::fake;
using test::fake_kernel;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

PerfMap parse(const std::string& text, std::vector<uint64_t> addresses) {
  PerfMap map(std::move(addresses));
  map.add(text);
  map.finish();
  return map;
}

TEST(PerfMap, finds_names_with_spaces) {
  const PerfMap map = parse(
      "7f0010000000 40 py::solve:/a b/solve.py\n"
      "7f0010000040 20 LazyCompile:~step :3\n",
      {0x7f0010000000, 0x7f001000003f, 0x7f0010000040, 0x7f0010000060, 0x7f000fffffff});
  EXPECT_EQ(map.find(0x7f0010000000), "py::solve:/a b/solve.py");
  EXPECT_EQ(map.find(0x7f001000003f), "py::solve:/a b/solve.py");
  EXPECT_EQ(map.find(0x7f0010000040), "LazyCompile:~step :3");
  EXPECT_EQ(map.find(0x7f0010000060), "");
  EXPECT_EQ(map.find(0x7f000fffffff), "");
  EXPECT_EQ(map.bad_line_count(), 0u);
}

TEST(PerfMap, takes_0x_and_line_ends_of_windows_and_no_line_end) {
  const PerfMap map = parse("0x1000 0x10 one\r\n2000 10 two", {0x1000, 0x2000});
  EXPECT_EQ(map.find(0x1000), "one");
  EXPECT_EQ(map.find(0x2000), "two");
}

TEST(PerfMap, a_later_line_replaces_what_it_overlaps) {
  const PerfMap map = parse("1000 100 old\n1040 20 new\n1000 10 newest\n",
                            {0x1000, 0x1010, 0x1040, 0x105f, 0x1060, 0x10ff, 0x1100});
  EXPECT_EQ(map.find(0x1000), "newest");
  EXPECT_EQ(map.find(0x1010), "old");
  EXPECT_EQ(map.find(0x1040), "new");
  EXPECT_EQ(map.find(0x105f), "new");
  EXPECT_EQ(map.find(0x1060), "old");
  EXPECT_EQ(map.find(0x10ff), "old");
  EXPECT_EQ(map.find(0x1100), "");
}

TEST(PerfMap, counts_lines_it_cannot_read) {
  const PerfMap map = parse(
      "zz 10 a\n1000 b\n1000 10\n1000 0 c\nffffffffffffffff 10 d\n11111111111111111 1 e\n\n"
      "1000 10 good\n",
      {0x1000});
  EXPECT_EQ(map.bad_line_count(), 6u);
  EXPECT_EQ(map.range_count(), 1u);
  EXPECT_EQ(map.find(0x1000), "good");
}

TEST(PerfMap, gives_what_was_hit_once_and_as_far_as_it_holds) {
  const PerfMap map =
      parse("1000 100 old\n1040 20 new\n2000 10 never\n", {0x1050, 0x1010, 0x1011, 0x3000, 0x1045});
  const auto symbols = map.symbols();
  ASSERT_EQ(symbols.size(), 2u);
  EXPECT_EQ(symbols[0].name, "old");
  EXPECT_EQ(symbols[0].start, 0x1000u);
  EXPECT_EQ(symbols[0].end, 0x1040u);
  EXPECT_EQ(symbols[1].name, "new");
}

TEST(PerfMap, cuts_long_names) {
  const PerfMap map = parse("1000 10 " + std::string(100'000, 'x') + "\n", {0x1000});
  EXPECT_EQ(map.symbols().at(0).name.size(), 1024u);
}

TEST(PerfMap, takes_pieces_that_end_anywhere) {
  const std::string text =
      "1000 100 old one\n" + std::string(5000, 'z') + "\n1000 80 new one\nzz\n";
  for (size_t bytes = 1; bytes < 40; ++bytes) {
    PerfMap map({0x1000, 0x1090});
    for (size_t at = 0; at < text.size(); at += bytes) map.add(text.substr(at, bytes));
    map.finish();
    EXPECT_EQ(map.find(0x1000), "new one") << bytes;
    EXPECT_EQ(map.find(0x1090), "old one") << bytes;
    EXPECT_EQ(map.bad_line_count(), 2u) << bytes;
  }
}

TEST(PerfMap, remembers_only_what_was_hit) {
  PerfMap map({0x1000});
  for (uint64_t i = 0; i < 100'000; ++i) map.add("200000 40 never\n1000 40 again\n");
  map.finish();
  EXPECT_EQ(map.range_count(), 1u);
}

/// A process with samples in code made at run time, and its map.
class PerfMapOfProcess : public testing::Test {
 protected:
  static constexpr uint32_t kProcess = 3;
  static constexpr pid_t kPid = 70;

  void SetUp() override { fake = {}; }
  /// Names that the agent gives to its code.
  std::vector<std::string> names() {
    fake.tasks[kPid] = {kPid};
    fake.files["/proc/70/maps"] = "1000-9000 r-xp 00000000 00:00 0 \n";
    const SamplingProbe probe = probe_sampling(fake_kernel(), 100, "fp");
    Sampler sampler(
        SamplingHost{&core_, &aon::test::fake_core_api(), &fake_kernel(), *probe.event, 0},
        probe.obstacle);
    sampler.process_started(kProcess, kPid);
    test::RingWriter(fake.rings.at(kPid).data(), SamplingEvent().ring_bytes())
        .sample(kPid, 500, {0x2000, 0x2100}, 10);
    fake.now_ns = 1000;
    core_.ticks = 2000;
    sampler.process_ended(kProcess);
    std::vector<std::string> names;
    for (const aon_core::Definition& definition : core_.definitions) {
      if (definition.type != static_cast<uint32_t>(DefinitionType::kJitSymbol)) continue;
      const auto* text = reinterpret_cast<const char*>(definition.payload.data());
      names.emplace_back(text + sizeof(JitSymbolDefinition));
    }
    return names;
  }

  aon_core core_;
};

TEST_F(PerfMapOfProcess, names_its_code_by_the_last_lines) {
  fake.perf_map = {"2000 200 ol", "d\n", "2000 200 ne", "w"};
  EXPECT_THAT(names(), ElementsAre("new"));
  EXPECT_EQ(core_.states.at(kProcess).state, AON_STATE_ON);
}

TEST_F(PerfMapOfProcess, that_is_too_large_names_nothing_and_is_told) {
  fake.perf_map = {"2000 200 old\n"};
  fake.is_perf_map_whole = false;
  EXPECT_THAT(names(), IsEmpty());
  EXPECT_EQ(core_.states.at(kProcess).state, AON_STATE_DEGRADED);
  EXPECT_THAT(core_.states.at(kProcess).reason, HasSubstr(".map has more than 256 MiB"));
}

}  // namespace
}  // namespace aon::perf
