/// Synthetic ranks of which some are in a call for long, for tests of what is said of them.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/unit/profile/one_rank.h"
#include "tests/unit/writers/shares.h"
#include "writers/hang/hang.h"

namespace aon::writers::test {

constexpr uint32_t kBarrier = 0;  // local regions; the global ones are 10 - these
constexpr uint32_t kAllreduce = 1;
constexpr uint32_t kRecv = 2;
constexpr uint32_t kFileOpen = 3;
constexpr uint32_t kControl = 4;
constexpr uint64_t kSecond = 1'000'000'000;

/// Ranks of a world, each with some finished collectives, and what they do now.
class Job {
 public:
  explicit Job(uint32_t ranks) : model_(test::make_model(ranks)), events_(ranks) {
    const std::pair<const char*, RegionRole> regions[] = {{"MPI_Barrier", RegionRole::kBarrier},
                                                          {"MPI_Allreduce", RegionRole::kAllToAll},
                                                          {"MPI_Recv", RegionRole::kPointToPoint}};
    for (uint32_t i = 0; i < std::size(regions); ++i)
      model_.regions[10 - i] = {regions[i].first, regions[i].second, Paradigm::kMpi};
    job_.nodes.resize(1);
    job_.nodes[0].host = "n1";
    model_.job = &job_;
    model_.end_ns = 100 * kSecond;
    processes_.resize(ranks);
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      processes_[rank].start.pid = static_cast<int32_t>(100 + rank);
      processes_[rank].regions[1] = {"MPI_Init", RegionRole::kFunction, Paradigm::kMpi};
      model_.groups[rank].process = &processes_[rank];
    }
  }

  Job& finish(uint32_t rank, uint64_t time_ns, uint32_t region = kBarrier) {
    events_[rank].push_back(test::enter(time_ns, region));
    Event end = test::event(EventKind::kCollectiveEnd, time_ns + 10, region);
    end.communicator = 7;
    end.operation = CollectiveOperation::kBarrier;
    events_[rank].push_back(end);
    events_[rank].push_back(test::leave(time_ns + 10, region));
    return *this;
  }
  Job& open(uint32_t rank, uint64_t since_ns, uint32_t region, int32_t peer = kNoPeer) {
    model_.open_calls.push_back({.group = rank,
                                 .slot = 1,
                                 .tid = 1,
                                 .region = 10 - region,
                                 .communicator = 0,
                                 .peer = peer,
                                 .start_ns = since_ns});
    return *this;
  }
  Job& open_in(uint32_t rank, uint64_t since_ns, uint32_t region, uint32_t communicator) {
    open(rank, since_ns, region);
    model_.open_calls.back().communicator = communicator;
    return *this;
  }
  Job& add(uint32_t rank, const Event& event) {
    events_[rank].push_back(event);
    return *this;
  }
  /// Calls of which one in many is recorded.
  Job& count(uint32_t rank, uint32_t region, uint64_t call_count) {
    processes_[rank].counts[{1, region}] = call_count;
    return *this;
  }
  Job& end(uint32_t rank) {
    processes_[rank].exit.emplace();
    return *this;
  }
  Job& damage_definitions() {
    job_.has_damaged_definitions = true;
    return *this;
  }
  Job& name(uint32_t region, const char* name) {
    model_.regions[10 - region].name = name;
    return *this;
  }
  Job& call(uint32_t region, const char* name, RegionRole role) {
    model_.regions[10 - region] = {name, role, Paradigm::kMpi};
    return *this;
  }
  /// Of the thread that open() tells of.
  Job& look(uint32_t rank, const std::vector<std::string>& frames, const char* remark) {
    model_.stacks.push_back({rank, 1, 99 * kSecond, 0, frames, remark});
    return *this;
  }
  Job& forget(uint32_t rank) {
    model_.groups[rank].process = nullptr;
    return *this;
  }
  /// The agent has followed it from outside: it recorded nothing itself.
  Job& follow(uint32_t rank) {
    processes_[rank].regions.clear();
    return *this;
  }
  /// Of all ranks; its local id is 8.
  Job& add_communicator(const char* name) {
    const auto id = static_cast<uint32_t>(model_.communicators.size());
    model_.communicators.push_back(model_.communicators[0]);
    model_.communicators.back().name = name;
    for (Group& group : model_.groups) group.communicator_map[8] = id;
    return *this;
  }
  Job& leave_world(uint32_t rank) {
    auto& members = model_.communicators[0].members;
    members.erase(members.begin() + rank);
    return *this;
  }
  /// A second thread of a rank; its events are behind all others.
  Job& add_thread(uint32_t rank) {
    Location location = model_.locations[rank];
    location.id |= uint64_t{1} << 32;
    location.slot = 2;
    model_.locations.push_back(location);
    events_.emplace_back();
    return *this;
  }
  Job& finish_in(size_t location, uint32_t rank, uint64_t time_ns) {
    finish(rank, time_ns);
    auto& from = events_[rank];
    events_[location].assign(from.end() - 3, from.end());
    from.resize(from.size() - 3);
    return *this;
  }
  Job& end(uint32_t rank, int32_t code, int32_t signal) {
    processes_[rank].exit = ProcessExitDefinition{rank, code, signal, 0, 0, 0, 0};
    return *this;
  }

  const HangReport& report() {
    if (is_done_) return finder_.report();
    is_done_ = true;
    EXPECT_TRUE(finder_.begin(model_));
    for (size_t i = 0; i < events_.size(); ++i) {
      EXPECT_TRUE(finder_.begin_location(model_.locations[i]));
      EXPECT_TRUE(finder_.events(events_[i]));
      EXPECT_TRUE(finder_.end_location());
    }
    EXPECT_TRUE(finder_.finish({}));
    return finder_.report();
  }
  std::vector<std::string> lines() {
    const HangReport& found = report();
    return hang_lines(model_, found, 100 * kSecond);
  }
  std::string finding() { return hang_finding(model_, report()); }

  /// What a combiner says to whom two shares have told.
  std::vector<std::string> combined_lines() {
    HangFinder combiner;
    test::combine({&combiner}, model_, states());
    std::vector<std::string> lines = hang_lines(model_, combiner.report(), 100 * kSecond);
    lines.push_back(hang_finding(model_, combiner.report()));
    return lines;
  }
  std::vector<std::string> states() {
    HangFinder even;
    HangFinder odd;
    return test::run_shares({&even}, {&odd}, model_, [this](const Location& location) {
      return events_[static_cast<size_t>(&location - model_.locations.data())];
    });
  }
  const Model& model() const { return model_; }

 private:
  spool::Job job_;
  std::vector<spool::Process> processes_;
  Model model_;
  std::vector<std::vector<Event>> events_;
  HangFinder finder_;
  bool is_done_ = false;
};

}  // namespace aon::writers::test
