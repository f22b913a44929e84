/// Synthetic programs: the calls of ranks, written as a program would make them. Times advance by
/// what is given, so nothing depends on the machine.
#pragma once

#include <aon/mpi.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/unit/profile/one_rank.h"
#include "writers/steps/steps.h"

namespace aon::writers::test {

/// Local regions; the global ones are 10 - these.
constexpr uint32_t kIrecv = 0;
constexpr uint32_t kIsend = 1;
constexpr uint32_t kWaitall = 2;
constexpr uint32_t kAllreduce = 3;
constexpr uint32_t kStepRegion = 4;
constexpr uint32_t kTest = 5;

inline Model steps_model(uint32_t ranks) {
  Model model = make_model(ranks);
  const char* const names[] = {"MPI_Irecv", "MPI_Isend", "MPI_Waitall", "MPI_Allreduce"};
  for (uint32_t region = 0; region < 4; ++region) {
    model.regions[10 - region] = {names[region], RegionRole::kFunction, Paradigm::kMpi};
  }
  model.regions[10 - kStepRegion] = {"step", RegionRole::kStep, Paradigm::kUser};
  model.regions[10 - kTest] = {"MPI_Test", RegionRole::kFunction, Paradigm::kMpi};
  for (Group& group : model.groups) group.region_map[kTest] = 10 - kTest;
  return model;
}

/// The events of one rank.
class Program {
 public:
  Program& compute(uint64_t time_ns) {
    now_ns_ += time_ns;
    return *this;
  }
  Program& call(uint32_t region, uint64_t time_ns = 100) {
    events.push_back(enter(now_ns_, region));
    now_ns_ += time_ns;
    events.push_back(leave(now_ns_, region));
    return *this;
  }
  /// A timed one of `weight` calls.
  Program& poll(uint64_t time_ns, uint32_t weight) {
    call(kTest, time_ns);
    events[events.size() - 2].weight = weight;
    return *this;
  }
  Program& isend(int32_t peer, uint64_t bytes = 4096) {
    events.push_back(enter(now_ns_, kIsend));
    if (peer >= 0) {
      events.push_back(send(now_ns_, peer, bytes));
      events.back().kind = EventKind::kSendRequest;
    }
    now_ns_ += 100;
    events.push_back(leave(now_ns_, kIsend));
    return *this;
  }
  Program& allreduce(uint64_t bytes, uint64_t time_ns = 200) {
    events.push_back(enter(now_ns_, kAllreduce));
    now_ns_ += time_ns;
    Event end = event(EventKind::kCollectiveEnd, now_ns_, kAllreduce);
    end.communicator = 7;
    end.operation = CollectiveOperation::kAllreduce;
    end.bytes = bytes;
    events.push_back(end);
    events.push_back(leave(now_ns_, kAllreduce));
    return *this;
  }
  /// Starts a persistent collective, the only time after its preparation.
  Program& start_prepared(uint32_t preparation) {
    events.push_back(enter(now_ns_, kIsend));
    Event start = event(EventKind::kCollectiveRequest, now_ns_, kIsend);
    start.communicator = 7;
    start.bytes = pack_instance(preparation, 1);
    events.push_back(start);
    now_ns_ += 100;
    events.push_back(leave(now_ns_, kIsend));
    return *this;
  }
  /// Exchange with `left` and `right` (-1: nobody), as heat2d does.
  Program& halo(int32_t left, int32_t right) {
    call(kIrecv).call(kIrecv).isend(left).isend(right);
    return call(kWaitall, 1000);
  }
  /// Loses records for so long.
  Program& lose(uint64_t time_ns) {
    events.push_back(event(EventKind::kLostBegin, now_ns_, 0));
    now_ns_ += time_ns;
    events.push_back(event(EventKind::kLostEnd, now_ns_, 0));
    return *this;
  }
  Program& step_begin(int64_t number, uint32_t region = kStepRegion) {
    events.push_back(enter(now_ns_, region));
    events.back().set_value(static_cast<uint32_t>(ValueType::kStep), static_cast<uint64_t>(number));
    return *this;
  }
  Program& step_end(uint32_t region = kStepRegion) {
    events.push_back(leave(now_ns_, region));
    return *this;
  }
  /// Calls of many sizes, none in a pattern.
  Program& prologue(int count = 12) {
    for (int i = 0; i < count; ++i) compute(5000).allreduce(uint64_t{8} << (2 * (i % 12)));
    return *this;
  }

  std::vector<Event> events;

 private:
  uint64_t now_ns_ = 1'000'000;
};

/// Runs a writer over the ranks' events.
template <class Analysis>
void run(Analysis* analysis, const Model& model, const std::vector<Program>& ranks) {
  if (!analysis->begin(model)) throw std::string("begin");
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (!analysis->begin_location(model.locations[i])) throw std::string("begin_location");
    if (!analysis->events(ranks[i].events)) throw std::string("events");
    if (!analysis->end_location()) throw std::string("end_location");
  }
  if (!analysis->finish({})) throw std::string("finish");
}

inline StepSummary find_steps(const std::vector<Program>& ranks, uint64_t max_rows = kMaxStepRows,
                              WaitAnalysis* waits = nullptr) {
  const Model model = steps_model(static_cast<uint32_t>(ranks.size()));
  const auto finder = make_step_finder();
  run(finder.get(), model, ranks);
  if (waits != nullptr) run(waits, model, ranks);
  const auto meter = make_step_meter(finder->plan(), waits, max_rows);
  run(meter.get(), model, ranks);
  return *meter->summary();
}

}  // namespace aon::writers::test
