// What stands out in a job whose events are gone through by two processes.

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/profile/one_rank.h"
#include "tests/unit/writers/shares.h"
#include "writers/ledger/findings.h"

namespace aon::writers {
namespace {

constexpr uint32_t kSend = 10;  // global; local 0
constexpr uint64_t kSecond = 1'000'000'000;

/// Four ranks: rank 2 computes longest, rank 1 sends most, and most samples hit one function.
class FindingsOfShares : public testing::Test {
 protected:
  FindingsOfShares() : model_(test::make_model(4)) {
    model_.regions[kSend] = {"MPI_Send", RegionRole::kPointToPoint, Paradigm::kMpi};
    model_.functions = {{"main", "", "/bin/solver"}, {"solve", "", "/bin/solver"}};
    model_.call_paths = {{std::nullopt, 0, 0, 0}, {0, 1, 0, 1}};
    job_.nodes.resize(1);
    model_.job = &job_;
    for (Group& group : model_.groups) {
      group.call_path_map = {{5, 0}, {6, 1}};
      group.process = &process_;
    }
  }

  static uint64_t end_ns(uint32_t rank) { return (rank == 2 ? 8 : 5) * kSecond; }
  static std::vector<Event> events_of(const Location& location) {
    const uint32_t rank = location.group;
    std::vector<Event> events{test::enter(1 + rank, 0)};
    for (int32_t peer = 0; peer < 4; ++peer)
      events.push_back(test::send(kSecond, peer, rank == 1 && peer == 3 ? 1u << 30 : 64));
    for (uint32_t i = 0; i < 50; ++i) {
      events.push_back(test::event(EventKind::kCallSample, kSecond, i % 5 == 0 ? 5 : 6));
      events.back().bytes = 1;
    }
    events.push_back(test::leave(end_ns(rank), 0));
    return events;
  }
  /// As the writer of profile.h5 does.
  void add_profiles(Findings* findings, uint64_t call_ns = kSecond) const {
    for (const Location& location : model_.locations) {
      profile::RegionStatistics row;
      row.region = kSend;
      row.count = 4;
      row.exclusive_ns = call_ns + location.group;
      findings->add_profile(model_.groups[location.group], &location, {&row, 1});
    }
  }
  std::vector<std::string> states() const {
    Findings even(nullptr);
    Findings odd(nullptr);
    return test::run_shares({&even}, {&odd}, model_, events_of);
  }

  Model model_;
  spool::Job job_;
  spool::Process process_;
};

TEST_F(FindingsOfShares, are_those_of_one_process) {
  Findings whole(nullptr);
  test::run_whole({&whole}, model_, events_of);
  add_profiles(&whole);
  Findings combiner(nullptr);
  test::combine({&combiner}, model_, states());
  add_profiles(&combiner);
  const std::vector<std::string> lines = whole.lines({});
  EXPECT_EQ(lines.size(), kMaxFindings);
  EXPECT_EQ(combiner.lines({}), lines);
  ASSERT_EQ(whole.functions().size(), 2u);
  ASSERT_EQ(combiner.functions().size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(combiner.functions()[i].function, whole.functions()[i].function);
    EXPECT_EQ(combiner.functions()[i].self, whole.functions()[i].self);
  }
}

TEST_F(FindingsOfShares, a_call_without_a_share_of_the_time_is_none) {
  const auto names_the_call = [&](uint64_t call_ns) {
    Findings findings(nullptr);
    test::run_whole({&findings}, model_, [](const Location& location) {
      return std::vector<Event>{test::enter(1 + location.group, 0), test::leave(5 * kSecond, 0)};
    });
    add_profiles(&findings, call_ns);
    const std::vector<std::string> lines = findings.lines({});
    return std::any_of(lines.begin(), lines.end(),
                       [](const std::string& line) { return line.starts_with("MPI_Send takes"); });
  };
  EXPECT_TRUE(names_the_call(kSecond / 100));
  EXPECT_FALSE(names_the_call(kSecond / 1000));
}

TEST_F(FindingsOfShares, a_function_without_a_symbol_is_a_place_in_its_library) {
  const auto line_of = [&](const std::string& name) {
    model_.functions[1] = {name, "", "/lib/libuct.so.0.0.0"};
    Findings findings(nullptr);
    test::run_whole({&findings}, model_, events_of);
    for (const std::string& line : findings.lines({})) {
      if (line.find("sampled") != std::string::npos) return line;
    }
    return std::string();
  };
  const std::string begin = "80 % of the sampled time is in ";
  const std::string end = " (160 of 200 samples)";
  EXPECT_EQ(line_of("uct_poll"), begin + "uct_poll of libuct.so.0.0.0" + end);
  EXPECT_EQ(line_of("libuct.so.0.0.0+0x18430"), begin + "libuct.so.0.0.0+0x18430" + end);
}

TEST_F(FindingsOfShares, samples_of_a_script_above_the_ranks_are_not_theirs) {
  const auto events = [](const Location& location) {
    std::vector<Event> all = events_of(location);
    if (location.group != 3) return all;
    Event in_main = test::event(EventKind::kCallSample, kSecond, 5);
    in_main.bytes = 1;
    return std::vector<Event>(1000, in_main);
  };
  const auto line = [&] {
    Findings findings(nullptr);
    test::run_whole({&findings}, model_, events);
    EXPECT_EQ(findings.functions().at(0).self, 1030u) << "the job's table has all";
    for (const std::string& one : findings.lines({})) {
      if (one.find("sampled") != std::string::npos) return one;
    }
    return std::string();
  };
  model_.groups[3].rank.reset();
  process_.start.rank = -1;
  EXPECT_EQ(line(), "80 % of the sampled time is in solve of solver (120 of 150 samples)");
  process_.identity.emplace();
  EXPECT_EQ(line(), "90 % of the sampled time is in main of solver (1 030 of 1 150 samples)")
      << "it said something itself";
}

TEST_F(FindingsOfShares, damage_is_harmless) {
  const auto make = [] { return std::make_unique<Findings>(nullptr); };
  test::expect_damage_is_harmless(make, model_, states()[1]);
}

}  // namespace
}  // namespace aon::writers
