// The part of a location's events behind a cut at any time: nothing in it refers to what is not.
#include "writers/otf2/window.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace aon::writers::otf2 {
namespace {

constexpr uint32_t kWindow = 3;

Event event_at(uint64_t time_ns, EventKind kind, uint64_t request = 0, int32_t peer = 1) {
  Event event{};
  event.time_ns = time_ns;
  event.kind = kind;
  event.communicator = kWindow;
  event.peer = peer;
  event.request = request;
  return event;
}

/// Two puts share id 1 up to the flush, which is told between them as done here; 2 has a request.
std::vector<Event> one_sided_events() {
  const std::pair<EventKind, uint64_t> kinds[] = {{EventKind::kRmaLock, 0},
                                                  {EventKind::kRmaTransfer, 1},
                                                  {EventKind::kRmaLocalComplete, 1},
                                                  {EventKind::kRmaTransfer, 2},
                                                  {EventKind::kRmaTransfer, 1},
                                                  {EventKind::kRmaLocalComplete, 1},
                                                  {EventKind::kRmaRequestComplete, 2},
                                                  {EventKind::kRmaRemoteComplete, 1},
                                                  {EventKind::kRmaRemoteComplete, 2},
                                                  {EventKind::kRmaUnlock, 0},
                                                  {EventKind::kRmaLock, 0},
                                                  {EventKind::kRmaTransfer, 3},
                                                  {EventKind::kRmaRemoteComplete, 3},
                                                  {EventKind::kRmaUnlock, 0}};
  std::vector<Event> events;
  uint64_t time_ns = 10;
  for (const auto& [kind, request] : kinds)
    events.push_back(event_at(time_ns += 10, kind, request));
  return events;
}

TEST(Window, of_one_sided_communication_is_whole_wherever_it_begins) {
  const std::vector<Event> events = one_sided_events();
  for (uint64_t start_ns = 0; start_ns <= 160; start_ns += 5) {
    Window window;
    window.begin_location(start_ns);
    std::set<uint64_t> transfers;
    std::set<std::pair<uint32_t, int32_t>> locks;
    size_t transfer_count = 0;
    for (const Event& event : window.filter(events)) {
      EXPECT_GE(event.time_ns, start_ns);
      if (event.kind == EventKind::kRmaTransfer) {
        transfers.insert(event.request);
        ++transfer_count;
      } else if (event.kind == EventKind::kRmaLock) {
        locks.insert({event.communicator, event.peer});
      } else if (event.kind == EventKind::kRmaUnlock) {
        EXPECT_EQ(locks.erase({event.communicator, event.peer}), 1u) << start_ns;
      } else {
        EXPECT_EQ(transfers.count(event.request), 1u) << event.request << " from " << start_ns;
      }
    }
    size_t expected = 0;
    for (const Event& event : events)
      expected += event.kind == EventKind::kRmaTransfer && event.time_ns >= start_ns ? 1 : 0;
    EXPECT_EQ(transfer_count, expected);
    EXPECT_TRUE(locks.empty());
  }
}

/// Ids come in no order where another thread has completed a request, which was read first.
TEST(Window, leaves_out_what_completes_requests_that_were_live_as_it_began) {
  const std::vector<Event> events = {
      event_at(10, EventKind::kSendRequest, 100),     event_at(20, EventKind::kSendRequest, 101),
      event_at(30, EventKind::kSendRequest, 7),       event_at(40, EventKind::kSendComplete, 101),
      event_at(60, EventKind::kSendComplete, 100),    event_at(70, EventKind::kSendComplete, 5),
      event_at(80, EventKind::kReceiveComplete, 101), event_at(90, EventKind::kReceiveComplete, 7)};
  Window window;
  window.begin_location(50);
  std::vector<std::pair<EventKind, uint64_t>> kept;
  for (const Event& event : window.filter(events)) kept.emplace_back(event.kind, event.request);
  const std::vector<std::pair<EventKind, uint64_t>> expected = {
      {EventKind::kSendComplete, 5},       // begun by another thread, perhaps in the window
      {EventKind::kReceiveComplete, 101},  // its own start has ended
      {EventKind::kReceive, 7}};
  EXPECT_EQ(kept, expected);
  window.begin_location(50);
  EXPECT_EQ(window.filter({&events[4], 1}).size(), 1u) << "of another location";
}

/// Ids of the next process begin anew.
TEST(Window, forgets_with_the_location_that_more_requests_were_live_than_it_follows) {
  std::vector<Event> events(kMaxOldRequests, event_at(10, EventKind::kSendRequest));
  for (uint64_t i = 0; i < events.size(); ++i) events[i].request = i;
  const Event send = event_at(20, EventKind::kSendRequest, kMaxOldRequests);
  events.push_back(send);
  Window window;
  window.begin_location(50);
  EXPECT_TRUE(window.filter(events).empty());
  const Event end = event_at(60, EventKind::kSendComplete, send.request);
  EXPECT_TRUE(window.filter({&end, 1}).empty()) << "its start is not there";
  window.begin_location(50);
  const std::vector<Event> others = {event_at(60, EventKind::kSendRequest, 5),
                                     event_at(70, EventKind::kSendComplete, 5)};
  EXPECT_EQ(window.filter(others).size(), 2u);
}

/// The first request of a process has the id 0.
TEST(Window, keeps_the_first_request_of_a_process_that_begins_in_it) {
  for (const auto& [start, end] :
       {std::pair(EventKind::kSendRequest, EventKind::kSendComplete),
        std::pair(EventKind::kReceiveRequest, EventKind::kReceiveComplete),
        std::pair(EventKind::kCollectiveRequest, EventKind::kCollectiveComplete)}) {
    const std::vector<Event> events = {event_at(60, start, 0), event_at(70, end, 0)};
    Window window;
    window.begin_location(50);
    const std::span<const Event> kept = window.filter(events);
    ASSERT_EQ(kept.size(), 2u);
    EXPECT_EQ(kept[1].kind, end);
  }
}

/// What could not be sorted of a stream may reach farther than the events before the window.
TEST(Window, shows_the_rest_of_work_that_was_left_out) {
  Event gap = event_at(10, EventKind::kDeviceGap);
  gap.bytes = 7;
  gap.bytes_received = 60;
  Window window;
  window.begin_location(50);
  const std::span<const Event> kept = window.filter({&gap, 1});
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].time_ns, 50u);
  EXPECT_EQ(kept[0].bytes_received, 20u);
  EXPECT_EQ(kept[0].bytes, 7u);
  window.begin_location(50);
  gap.bytes_received = 40;
  EXPECT_TRUE(window.filter({&gap, 1}).empty()) << "it was over";
  window.begin_location(50);
  gap.time_ns = 55;
  EXPECT_EQ(window.filter({&gap, 1})[0].time_ns, 55u);
}

TEST(Window, drops_nothing_of_what_begins_in_it) {
  const std::vector<Event> events = one_sided_events();
  Window window;
  window.begin_location(115);  // before the second lock
  EXPECT_EQ(window.filter(events).size(), 4u);
  window.begin_location(1);
  EXPECT_EQ(window.filter(events).size(), events.size());
}

}  // namespace
}  // namespace aon::writers::otf2
