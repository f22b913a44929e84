// Jobs of several nodes whose clocks differ: one time for all, and what the ledger says of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/unit/writers/spool_fixture.h"
#include "writers/assemble/assemble.h"
#include "writers/assemble/model.h"

namespace aon::writers {
namespace {

using nlohmann::json;
using test::NodeSpool;
using test::SpoolClock;

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kRunSeconds = 40;
constexpr uint32_t kSend = 1;  // regions
constexpr uint32_t kReceive = 2;
constexpr uint32_t kBarrier = 3;

/// Four nodes with a rank each. Nodes 1 and 2 ping node 0, node 3 pings node 2.
class FourNodes {
 public:
  explicit FourNodes(double back_ns = 10'000) : back_ns_(back_ns) {
    for (uint32_t n = 0; n < 4; ++n) {
      nodes_.emplace_back(job_.path(), "n" + std::to_string(n), kRunSeconds, clocks_[n]);
      nodes_[n].add_process(0, static_cast<int32_t>(n), 4,
                            {{"MPI_Send", RegionRole::kPointToPoint},
                             {"MPI_Recv", RegionRole::kPointToPoint},
                             {"MPI_Barrier", RegionRole::kBarrier}});
    }
  }

  void ping_all() {
    for (const auto& [node, peer] : {std::pair{1u, 0u}, std::pair{2u, 0u}, std::pair{3u, 2u}}) {
      for (uint64_t second = 0; second <= kRunSeconds; second += 10) burst(node, peer, second);
    }
  }

  /// Each rank sends to the next one, and all meet. A receive returns `way_ns` after its send
  /// began.
  void communicate(uint64_t way_ns) {
    for (uint32_t n = 0; n < 4; ++n) {
      std::vector<Record> records;
      const auto next = static_cast<int32_t>((n + 1) % 4);
      const auto last = static_cast<int32_t>((n + 3) % 4);
      for (uint64_t time = kSecond / 2; time < kRunSeconds * kSecond; time += kSecond / 4) {
        const auto at = [&](uint64_t after) { return clocks_[n].ticks(time + after); };
        records.push_back(test::message_record(kSend, at(0), at(way_ns), kOutgoing, next, 1, 8));
        records.push_back(
            test::message_record(kReceive, at(way_ns), at(way_ns + 1), kIncoming, last, 1, 8));
        records.push_back(test::collective_record(kBarrier, at(50'000 + n * 10'000), at(90'000),
                                                  CollectiveOperation::kBarrier, -1, 0));
      }
      nodes_[n].add_records(0, 1, records);
      nodes_[n].add_exit(0, clocks_[n].ticks(kRunSeconds * kSecond), 0, 0);
      nodes_[n].finish();
    }
  }

  uint64_t ticks(uint32_t node, uint64_t time_ns) const { return clocks_[node].ticks(time_ns); }
  const std::filesystem::path& path() const { return job_.path(); }
  json ledger() const {
    std::ifstream file(job_.path() / "aon.json");
    return json::parse(file);
  }

 private:
  void burst(uint32_t node, uint32_t peer, uint64_t second) {
    std::exponential_distribution<double> delay(1.0 / 800);
    double time = static_cast<double>(second * kSecond + 1000);
    for (int i = 0; i < 40; ++i) {
      const double received = time + 10'000 + delay(random_);
      const double sent = received + 700;
      const double back = sent + back_ns_ + delay(random_);
      const auto at = [&](uint32_t n, double t) { return clocks_[n].ticks(uint64_t(t)); };
      nodes_[node].define(
          spool::kNodeProcess, DefinitionType::kClockPing,
          ClockPingDefinition{at(node, time), at(peer, received), at(peer, sent), at(node, back)},
          {"n" + std::to_string(peer)});
      time = back + 1000;
    }
  }

  const SpoolClock clocks_[4] = {{1, 0, 0},
                                 {500'000'000'000, 12e-6, 3'000'000},
                                 {7'000'000'000'000, -20e-6, -1'500'000},
                                 {90'000'000'000'000, 25e-6, 800'000}};
  double back_ns_;
  std::mt19937_64 random_{5};
  test::TemporaryFolder job_;
  std::deque<NodeSpool> nodes_;
};

double apart_ns(const JobModel& parts, const FourNodes& job, uint32_t node, uint64_t time_ns) {
  const uint64_t told = parts.clocks[node].to_ns(job.ticks(node, time_ns));
  const uint64_t truth = parts.clocks[0].to_ns(job.ticks(0, time_ns));
  return std::abs(static_cast<double>(static_cast<int64_t>(told - truth)));
}

TEST(Clocks, all_nodes_tell_the_time_of_rank_0s_within_the_bound) {
  FourNodes job;
  job.ping_all();
  job.communicate(20'000);
  const auto parts = build_model(job.path(), kDefaultOtf2Locations);
  ASSERT_TRUE(parts.has_value());
  for (uint32_t n = 1; n < 4; ++n) {
    const uint64_t bound_ns = (*parts)->model.clock_error_ns[n];
    EXPECT_LE(bound_ns, 5'000u);
    for (uint64_t time = 0; time < kRunSeconds * kSecond; time += kSecond / 7) {
      ASSERT_LE(apart_ns(**parts, job, n, time), static_cast<double>(bound_ns)) << n;
    }
  }
}

TEST(Clocks, ledger_has_the_tree_and_nothing_runs_backwards) {
  FourNodes job;
  job.ping_all();
  job.communicate(20'000);
  ASSERT_TRUE(assemble(job.path()).has_value());
  const json ledger = job.ledger();
  const json& clock = ledger["clock"];
  EXPECT_EQ(clock["reference"], "n0");
  ASSERT_EQ(clock["pairs"].size(), 3u);
  EXPECT_EQ(clock["pairs"][0]["nodes"], json({"n0", "n1"}));
  EXPECT_EQ(clock["pairs"][2]["nodes"], json({"n2", "n3"}));
  EXPECT_EQ(clock["pairs"][1]["pings"], 200);
  EXPECT_NEAR(clock["pairs"][1]["drift_ppb"].get<double>(), 20'000, 100);
  EXPECT_GE(clock["pairs"][1]["worst_case_ns"].get<int>(), 10'000);
  EXPECT_EQ(clock["nodes"][0]["error_ns"], clock["nodes"][0]["own_error_ns"]);
  EXPECT_GT(clock["nodes"][3]["error_ns"].get<int>(), clock["pairs"][2]["error_ns"].get<int>());
  EXPECT_EQ(clock["max_error_ns"], clock["nodes"][3]["error_ns"]);
  EXPECT_EQ(clock["violations"], json({{"messages", 0}, {"collectives", 0}, {"max_ns", 0}}));
  EXPECT_EQ(ledger["waits"]["messages"], 4 * 158);
  EXPECT_TRUE(ledger["assembly"]["warnings"].empty()) << ledger["assembly"]["warnings"];
}

TEST(Clocks, messages_that_take_no_time_are_early_by_less_than_the_bound) {
  FourNodes job;
  job.ping_all();
  job.communicate(1);
  ASSERT_TRUE(assemble(job.path()).has_value());
  const json ledger = job.ledger();
  EXPECT_GT(ledger["clock"]["violations"]["messages"], 0);
  EXPECT_LE(ledger["clock"]["violations"]["max_ns"], ledger["clock"]["max_error_ns"]);
  EXPECT_TRUE(ledger["assembly"]["warnings"].empty());
}

TEST(Clocks, messages_raise_a_bound_that_was_too_small) {
  FourNodes job(40'000);  // the way back is longer than pings can see: all are 15 us wrong
  job.ping_all();
  job.communicate(5'000);
  ASSERT_TRUE(assemble(job.path()).has_value());
  const json ledger = job.ledger();
  const json& clock = ledger["clock"];
  EXPECT_GT(clock["violations"]["messages"], 0);
  EXPECT_GE(clock["violations"]["max_ns"], 9'000);
  EXPECT_GE(clock["pairs"][0]["error_ns"], 9'000);
  EXPECT_GE(clock["max_error_ns"], clock["violations"]["max_ns"]);
  ASSERT_FALSE(ledger["assembly"]["warnings"].empty());
  EXPECT_THAT(ledger["assembly"]["warnings"][0].get<std::string>(),
              testing::HasSubstr("the bound was raised"));
}

/// A node's snapshots from `second` to kRunSeconds, with REALTIME and ticks ahead of those before.
void add_snapshots(NodeSpool* node, uint64_t second, uint64_t realtime_ns, uint64_t ticks) {
  for (; second <= kRunSeconds; ++second) {
    ClockDefinition pairing{};
    pairing.monotonic_raw_ns = 1 + second * kSecond;
    pairing.ticks = pairing.monotonic_raw_ns + ticks;
    pairing.realtime_ns = test::kEpochNs + 1 + second * kSecond + realtime_ns;
    pairing.bracket_ticks = 40;
    node->define(spool::kNodeProcess, DefinitionType::kClock, pairing);
  }
}

/// One rank on a host whose clock goes on from second 10 as add_snapshots() says.
class OneNode {
 public:
  OneNode(const std::filesystem::path& job, const std::string& host, int32_t rank, uint32_t world,
          uint64_t realtime_ns, uint64_t ticks)
      : node_(job, host, 9) {
    add_snapshots(&node_, 10, realtime_ns, ticks);
    node_.add_process(0, rank, world, {{"MPI_Recv", RegionRole::kPointToPoint}});
    node_.add_records(0, 1, {test::span_record(1, kFrom, kTo)});
    node_.add_exit(0, 20 * kSecond, 0, 0);
    node_.finish();
  }

  static constexpr uint64_t kFrom = 9'800'000'000;  ///< ticks
  static constexpr uint64_t kTo = 10'200'000'000;

 private:
  NodeSpool node_;
};

std::string first_warning(const std::filesystem::path& job) {
  std::ifstream file(job / "aon.json");
  const json warnings = json::parse(file)["assembly"]["warnings"];
  return warnings.empty() ? "" : warnings[0].get<std::string>();
}

TEST(Clocks, of_one_host_go_on_when_realtime_is_set) {
  test::TemporaryFolder job;
  const OneNode node(job.path(), "n0", 0, 1, 30 * kSecond, 0);
  const auto parts = build_model(job.path(), kDefaultOtf2Locations);
  ASSERT_TRUE(parts.has_value());
  const clock::ClockMap& clock = (*parts)->clocks[0];
  EXPECT_NEAR(static_cast<double>(clock.to_ns(OneNode::kTo) - clock.to_ns(OneNode::kFrom)),
              static_cast<double>(OneNode::kTo - OneNode::kFrom), 10);
  ASSERT_TRUE(assemble(job.path()).has_value());
  EXPECT_THAT(first_warning(job.path()),
              testing::AllOf(testing::HasSubstr("REALTIME of n0 was set"),
                             testing::HasSubstr("times go on")));
}

TEST(Clocks, of_two_hosts_that_were_not_compared_follow_realtime) {
  test::TemporaryFolder job;
  const OneNode steady(job.path(), "n0", 0, 2, 0, 0);
  const OneNode set(job.path(), "n1", 1, 2, 30 * kSecond, 0);
  const auto parts = build_model(job.path(), kDefaultOtf2Locations);
  ASSERT_TRUE(parts.has_value());
  const uint64_t late = 15 * kSecond;  // ticks
  EXPECT_NEAR(static_cast<double>((*parts)->clocks[1].to_ns(late)),
              static_cast<double>((*parts)->clocks[0].to_ns(late) + 30 * kSecond), 1000);
  ASSERT_TRUE(assemble(job.path()).has_value());
  EXPECT_THAT(first_warning(job.path()),
              testing::AllOf(testing::HasSubstr("REALTIME of n1 was set"),
                             testing::HasSubstr("seems to have lasted longer")));
}

TEST(Clocks, ledger_says_that_a_node_was_suspended) {
  test::TemporaryFolder job;
  // MONOTONIC_RAW stood still for 100 s, the others ran on.
  const OneNode node(job.path(), "n0", 0, 1, 100 * kSecond, 100 * kSecond);
  ASSERT_TRUE(assemble(job.path()).has_value());
  EXPECT_THAT(first_warning(job.path()), testing::HasSubstr("or the node suspended"));
}

TEST(Clocks, without_pings_the_error_is_unknown_and_the_ledger_says_so) {
  FourNodes job;
  job.communicate(20'000);
  ASSERT_TRUE(assemble(job.path()).has_value());
  const json ledger = job.ledger();
  const json& clock = ledger["clock"];
  EXPECT_TRUE(clock["max_error_ns"].is_null());
  EXPECT_TRUE(clock["nodes"][3]["error_ns"].is_null());
  EXPECT_TRUE(clock["pairs"].empty());
  ASSERT_EQ(ledger["assembly"]["warnings"].size(), 1u);
  EXPECT_THAT(ledger["assembly"]["warnings"][0].get<std::string>(),
              testing::HasSubstr("n1, n2, n3 were not compared with n0"));
}

}  // namespace
}  // namespace aon::writers
