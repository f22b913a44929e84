/// Ranks with one communicator of NCCL each, and what its operations took there.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "tests/unit/profile/one_rank.h"
#include "tests/unit/writers/shares.h"
#include "writers/nccl/lateness.h"

namespace aon::writers::nccl {

constexpr uint32_t kAllReduce = 6;  // global; local 10 - that
constexpr uint32_t kSend = 7;
constexpr uint32_t kReceive = 8;
constexpr uint32_t kBroadcast = 9;

template <class T>
std::string bytes_of(const std::vector<T>& rows) {
  StateOut out;
  out.put(rows);
  return out.bytes();
}

/// Ranks with one communicator of NCCL each (local 7), on one node.
class NcclLateness : public testing::Test {
 protected:
  explicit NcclLateness(uint32_t ranks = 4) : model_(test::make_model(ranks)), analysis_("/tmp") {
    model_.regions[kAllReduce] = {"ncclAllReduce", RegionRole::kAllToAll, Paradigm::kNccl};
    model_.regions[kSend] = {"ncclSend", RegionRole::kPointToPoint, Paradigm::kNccl};
    model_.regions[kReceive] = {"ncclRecv", RegionRole::kPointToPoint, Paradigm::kNccl};
    model_.regions[kBroadcast] = {"ncclBroadcast", RegionRole::kOneToAll, Paradigm::kNccl};
    model_.communicators[0].rank_count = ranks;
    job_.nodes.resize(1);
    job_.nodes[0].host = "n1";
    model_.job = &job_;
    processes_.resize(ranks);
    for (Group& group : model_.groups) {
      spool::Process& process = processes_[group.id];
      CommunicatorDefinition definition{};
      definition.kind = CommunicatorKind::kNccl;
      definition.rank = group.id;
      definition.reserved[kNcclDevice] = static_cast<uint8_t>(group.id + 1);
      process.communicators[7].definition = definition;
      group.process = &process;
    }
  }

  struct Told {
    uint64_t gpu_ns = 0;
    uint64_t queued_ns = 0;
    uint32_t region = kAllReduce;
    int32_t peer = kNoPeer;
    uint64_t bytes = 4096;
    uint32_t flags = kNcclGpuTimed;
    uint64_t launch_ns = 1000;
    uint64_t start_ns = 0;  ///< of the call
    uint32_t call = 1;
    NcclType type = NcclType::kFloat32;
  };
  void tell(uint32_t rank, uint64_t sequence, const Told& told) {
    NcclOperation operation;
    operation.communicator = 7;
    operation.region = 10 - told.region;
    operation.sequence = sequence;
    operation.start_ns = told.start_ns;
    operation.call = told.call;
    operation.launch_ns = told.launch_ns;
    operation.gpu_begin_ns = (told.launch_ns == 0 ? 1000 : told.launch_ns) + told.queued_ns;
    operation.gpu_ns = told.gpu_ns;
    operation.bytes = told.bytes;
    operation.flags = told.flags;
    operation.peer = told.peer;
    operation.type = told.type;
    told_[rank].push_back(operation);
  }

  /// Of what `rank` sends for its call: two records of a channel, and half as much on another one.
  struct Sent {
    uint64_t network_ns = 0;
    uint64_t gpu_ns = 0;
    uint64_t peer_ns = 0;
    uint32_t to = UINT32_MAX;  ///< the next rank
    uint32_t steps = 16;       ///< 0: level net
    bool is_send = true;
    uint32_t first_channel = 0;
    uint64_t end_ns = 0;
    uint64_t longest_ns = 0;
  };
  void send(uint32_t rank, uint32_t call, const Sent& sent) {
    const auto ranks = static_cast<uint32_t>(model_.groups.size());
    processes_[rank].regions[kNcclStepSite];
    for (const uint32_t channel : {0u, 1u, 0u}) {
      NcclProxyWork work;
      work.communicator = 7;
      work.call = call;
      work.peer = static_cast<int32_t>(sent.to == UINT32_MAX ? (rank + 1) % ranks : sent.to);
      work.channel = static_cast<uint8_t>(sent.first_channel + channel);
      work.network_ns = sent.network_ns / 2;
      work.gpu_ns = sent.gpu_ns / 2;
      work.peer_ns = sent.peer_ns / 2;
      work.step_count = sent.steps / 2;
      work.end_ns = sent.end_ns;
      work.longest_ns = sent.longest_ns;
      work.is_send = sent.is_send;
      sent_[rank].push_back(work);
    }
  }

  const std::deque<NcclOperation>& operations_of(const Location& location) {
    static const std::deque<NcclOperation> kNone;
    return location.type == LocationType::kThread ? told_[location.group] : kNone;
  }
  /// The proxies' records come first: their order is that of threads.
  std::vector<Event> events_of(const Location& location) {
    std::vector<Event> events;
    if (location.type == LocationType::kThread) {
      for (const NcclProxyWork& work : sent_[location.group]) {
        events.push_back(test::event(EventKind::kNcclProxy, 1, 0));
        events.back().request = reinterpret_cast<uint64_t>(&work);
      }
    }
    for (const NcclOperation& operation : operations_of(location)) {
      events.push_back(test::event(EventKind::kNcclCall, 1, operation.region));
      events.back().request = reinterpret_cast<uint64_t>(&operation);
    }
    return events;
  }
  /// Of each rank, behind all threads: 4 to 7.
  void add_timelines() {
    for (const Group& group : model_.groups) {
      Location timeline = model_.locations[group.id];
      timeline.type = LocationType::kAcceleratorStream;
      timeline.device_stream = 7;
      model_.locations.push_back(timeline);
    }
  }
  static std::vector<TimelineWait> waits_of(LatenessAnalysis* analysis) {
    std::vector<TimelineWait> waits;
    EXPECT_TRUE(analysis->has_waits());
    Result<TimelineWaits::Reader> reader = analysis->read_waits();
    EXPECT_TRUE(reader);
    while (reader) {
      const Result<const TimelineWait*> next = reader->next();
      EXPECT_TRUE(next);
      if (!next || *next == nullptr) break;
      waits.push_back(**next);
    }
    return waits;
  }

  void give(const Location& location) {
    EXPECT_TRUE(analysis_.begin_location(location));
    for (const Event& event : events_of(location)) EXPECT_TRUE(analysis_.events({&event, 1}));
    EXPECT_TRUE(analysis_.end_location());
  }
  const LatenessSummary& run() {
    EXPECT_TRUE(analysis_.begin(model_));
    for (const Location& location : model_.locations) give(location);
    EXPECT_EQ(analysis_.summary(), nullptr);
    EXPECT_TRUE(analysis_.finish({}));
    return *analysis_.summary();
  }

  std::vector<std::string> states() {
    LatenessAnalysis even("/tmp");
    LatenessAnalysis odd("/tmp");
    return test::run_shares({&even}, {&odd}, model_,
                            [this](const Location& location) { return events_of(location); });
  }

  Model model_;
  spool::Job job_;
  std::deque<spool::Process> processes_;
  std::map<uint32_t, std::deque<NcclOperation>> told_;
  std::map<uint32_t, std::deque<NcclProxyWork>> sent_;
  LatenessAnalysis analysis_;
};

}  // namespace aon::writers::nccl
