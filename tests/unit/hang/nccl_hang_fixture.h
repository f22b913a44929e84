/// Synthetic ranks of a communicator of NCCL, of which some have an operation in flight.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "tests/unit/profile/one_rank.h"
#include "tests/unit/writers/shares.h"
#include "writers/hang/hang.h"

namespace aon::writers {

constexpr uint32_t kAllReduce = 6;  // global; local 10 - that
constexpr uint32_t kAllGather = 7;
constexpr uint32_t kSend = 8;
constexpr uint32_t kReceive = 9;
constexpr uint32_t kPause = 10;
constexpr uint64_t kSecond = 1'000'000'000;

inline NcclMember member(uint32_t rank) { return {rank, rank}; }

constexpr uint64_t kEnd = 1000 * kSecond;

class NcclHangs : public testing::Test {
 protected:
  explicit NcclHangs(uint32_t ranks = 3) : model_(test::make_model(ranks)), events_(ranks) {
    model_.regions[kAllReduce] = {"ncclAllReduce", RegionRole::kAllToAll, Paradigm::kNccl};
    model_.regions[kAllGather] = {"ncclAllGather", RegionRole::kAllToAll, Paradigm::kNccl};
    model_.regions[kSend] = {"ncclSend", RegionRole::kPointToPoint, Paradigm::kNccl};
    model_.regions[kReceive] = {"ncclRecv", RegionRole::kPointToPoint, Paradigm::kNccl};
    model_.communicators[0].rank_count = ranks;
    model_.communicators[0].name = "world";
    model_.communicators[0].kind = CommunicatorKind::kNccl;
    model_.end_ns = kEnd;
    job_.nodes.resize(1);
    job_.nodes[0].host = "n1";
    model_.job = &job_;
    processes_.resize(ranks);
    for (Group& group : model_.groups) {
      spool::Process& process = processes_[group.id];
      CommunicatorDefinition definition{};
      definition.kind = CommunicatorKind::kNccl;
      definition.rank = group.id;
      process.communicators[7].definition = definition;
      process.start.pid = static_cast<int32_t>(100 + group.id);
      group.process = &process;
    }
  }

  struct Told {
    uint32_t region = kAllReduce;
    uint64_t sequence = 0;
    uint32_t call = 0;
    int32_t peer = kNoPeer;
    uint64_t bytes = 64;
    uint64_t time_ns = kEnd - 5 * kSecond;
  };
  void add(uint32_t rank, uint32_t flags, const Told& told) {
    NcclOperation& operation = operations_.emplace_back();
    operation.communicator = 7;
    operation.region = 10 - told.region;
    operation.sequence = told.sequence;
    operation.call = told.call;
    operation.peer = told.peer;
    operation.bytes = told.bytes;
    operation.start_ns = operation.end_ns = told.time_ns;
    operation.flags = flags;
    Event event = test::event(EventKind::kNcclCall, told.time_ns, operation.region);
    event.request = reinterpret_cast<uint64_t>(&operation);
    events_[rank].push_back(event);
  }
  void finished(uint32_t rank, const Told& told) { add(rank, kNcclGpuTimed, told); }
  void in_flight(uint32_t rank, const Told& told) { add(rank, kNcclInFlight, told); }
  void enqueued(uint32_t rank, const Told& told) { add(rank, 0, told); }  // level api

  void lose(uint32_t rank, uint64_t time_ns) {
    events_[rank].push_back(test::event(EventKind::kLostBegin, time_ns, 0));
    events_[rank].push_back(test::event(EventKind::kLostEnd, time_ns, 0));
  }

  void quiet(uint32_t rank, const std::vector<std::string>& frames = {}) {
    const auto tid = static_cast<int32_t>(100 + rank);
    model_.stacks.push_back({rank, tid, kEnd - kSecond, kEnd - 4 * kSecond, frames, "runs"});
  }

  const std::vector<NcclHang>& run() {
    EXPECT_TRUE(finder_.begin(model_));
    for (const Location& location : model_.locations) {
      EXPECT_TRUE(finder_.begin_location(location));
      EXPECT_TRUE(finder_.events(events_[location.group]));
      EXPECT_TRUE(finder_.end_location());
    }
    EXPECT_TRUE(finder_.finish({}));
    return finder_.report().nccl;
  }
  std::vector<std::string> lines() { return hang_lines(model_, finder_.report(), kEnd); }
  std::string finding() { return hang_finding(model_, finder_.report()); }

  std::vector<std::string> states() {
    HangFinder even;
    HangFinder odd;
    return test::run_shares({&even}, {&odd}, model_,
                            [this](const Location& location) { return events_[location.group]; });
  }
  /// Runs one process and two shares with a combiner, and expects that they say the same.
  void expect_same_of_shares() {
    run();
    HangFinder combiner;
    test::combine({&combiner}, model_, states());
    EXPECT_THAT(lines(), testing::Not(testing::IsEmpty()));
    EXPECT_EQ(hang_lines(model_, combiner.report(), kEnd), lines());
    EXPECT_EQ(hang_finding(model_, combiner.report()), finding());
  }

  Model model_;
  spool::Job job_;
  std::deque<spool::Process> processes_;
  std::deque<NcclOperation> operations_;
  std::vector<std::vector<Event>> events_;
  HangFinder finder_;
};

}  // namespace aon::writers
