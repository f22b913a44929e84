/// Ranks that are made up of calls, and what the analysis of their waits says.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/profile/one_rank.h"
#include "tests/unit/waits/in_shares.h"
#include "writers/waits/waits.h"

namespace aon::writers {

using test::enter;
using test::event;
using test::leave;

constexpr uint32_t kSend = 0;  // local regions; the global ones are 10 - these
constexpr uint32_t kRecv = 1;
constexpr uint32_t kWaitall = 2;
constexpr uint32_t kCollective = 3;
constexpr uint32_t kOther = 4;

struct Row {
  uint32_t location;
  uint32_t region;  ///< local
  WaitKind kind;
  uint64_t count;
  uint64_t wait_ns;
  uint64_t max_ns;
  bool operator==(const Row&) const = default;
};
inline void PrintTo(const Row& row, std::ostream* out) {
  *out << "location " << row.location << " region " << row.region << " " << wait_kind_name(row.kind)
       << " count " << row.count << " wait " << row.wait_ns << " max " << row.max_ns;
}

/// Events of one rank.
class Rank {
 public:
  Rank& call(uint32_t region, uint64_t enter_ns, uint64_t leave_ns,
             std::vector<Event> inside = {}) {
    events_.push_back(enter(enter_ns, region));
    for (Event& e : inside) {
      if (e.time_ns == 0) e.time_ns = is_at_start(e.kind) ? enter_ns : leave_ns;
      events_.push_back(e);
    }
    events_.push_back(leave(leave_ns, region));
    return *this;
  }
  Rank& add(const Event& e) {
    events_.push_back(e);
    return *this;
  }
  const std::vector<Event>& events() const { return events_; }

 private:
  static bool is_at_start(EventKind kind) {
    return kind == EventKind::kSend || kind == EventKind::kSendRequest ||
           kind == EventKind::kCollectiveBegin;
  }
  std::vector<Event> events_;
};

inline Event message(EventKind kind, int32_t peer, int32_t tag = 0, uint64_t request = 0) {
  Event e = event(kind, 0, 0);
  e.communicator = 7;
  e.peer = peer;
  e.tag = tag;
  e.request = request;
  return e;
}
inline Event request(EventKind kind, uint64_t number) {
  Event e = message(kind, -1, 0, number);
  if (kind == EventKind::kRequestCancelled) e.flags = kCancelled;
  return e;
}
inline Event collective(CollectiveOperation operation, int32_t root = -1) {
  Event e = message(EventKind::kCollectiveEnd, root);
  e.operation = operation;
  return e;
}

inline Event started(CollectiveOperation operation, uint64_t request) {
  Event e = message(EventKind::kCollectiveRequest, -1, 0, request);
  e.operation = operation;
  return e;
}

inline Event completed(CollectiveOperation operation, uint64_t request, int32_t root = -1) {
  Event e = collective(operation, root);
  e.kind = EventKind::kCollectiveComplete;
  e.request = request;
  return e;
}

/// All regions are MPI calls; that of kOther is named `name` and exchanges nothing.
inline Model make_model(uint32_t ranks, const std::string& name = "MPI_Call") {
  Model model = test::make_model(ranks);
  for (GlobalRegion& region : model.regions) region.paradigm = Paradigm::kMpi;
  for (const uint32_t region : {kSend, kRecv, kWaitall, kCollective}) {
    model.regions[10 - region].role = RegionRole::kPointToPoint;
  }
  model.regions[10 - kOther].name = name;
  return model;
}

/// By one process; two shares say the same.
inline WaitSummary analyse(const Model& model, const std::vector<Rank>& ranks) {
  const auto analysis = make_wait_analysis(testing::TempDir());
  EXPECT_TRUE(analysis->begin(model));
  for (size_t i = 0; i < ranks.size(); ++i) {
    EXPECT_TRUE(analysis->begin_location(model.locations[i]));
    EXPECT_TRUE(analysis->events(ranks[i].events()));
    EXPECT_TRUE(analysis->end_location());
  }
  EXPECT_EQ(analysis->summary(), nullptr);
  EXPECT_TRUE(analysis->finish({}));
  std::vector<std::vector<Event>> events;
  for (const Rank& rank : ranks) events.push_back(rank.events());
  EXPECT_EQ(test::figures(test::analyse_in_shares(model, events)),
            test::figures(*analysis->summary()));
  return *analysis->summary();
}
inline WaitSummary analyse(const std::vector<Rank>& ranks) {
  return analyse(make_model(static_cast<uint32_t>(ranks.size())), ranks);
}

inline std::vector<Row> rows(const WaitSummary& summary) {
  std::vector<Row> result;
  for (const WaitRow& row : summary.rows) {
    result.push_back({row.location, 10 - row.region, row.kind, row.count, row.wait_ns, row.max_ns});
  }
  return result;
}

}  // namespace aon::writers
