/// Records through an EventOrder, events as text.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "tests/unit/writers/spool_fixture.h"
#include "writers/assemble/event_order.h"

namespace aon::writers {

inline const char* name_of(EventKind kind) {
  constexpr const char* kNames[] = {
      "enter",        "leave",     "send",      "receive",       "isend",       "sent",
      "irecv",        "received",  "cancelled", "collective{",   "}collective", "icollective",
      "}icollective", "sample",    "lost{",     "}lost",         "open-at-end", "cut",
      "mark",         "rma{",      "}rma",      "window",        "}window",     "transfer",
      "local",        "requested", "remote",    "group",         "lock",        "unlock",
      "sync",         "opened",    "closed",    "deleted",       "sought",      "changed",
      "io{",          "issued",    "}io",       "}io-cancelled", "call-sample", "counters"};
  if (kind == EventKind::kForeignMessage) return "foreign";
  return kind <= EventKind::kCounters ? kNames[static_cast<size_t>(kind)] : "device or nccl";
}

/// Runs records through an EventOrder with a clock of 1 tick = 1 ns; events come out as text.
class EventOrderTest : public testing::Test {
 protected:
  EventOrderTest() {
    for (uint32_t id = 1; id < 10; ++id) regions_[id] = id - 1;
    global_regions_.resize(9, {"region", RegionRole::kFunction, Paradigm::kMpi});
    communicators_[0] = 0;
    metrics_[3] = 0;
    windows_[5] = 0;
    rank_groups_[2] = 0;
    files_[1] = 0;
    file_names_[1] = file_names_[2] = 0;
  }

  std::string run(const std::vector<Record>& records, uint64_t end_ticks = 0) {
    return run_batches({{.records = records, .is_resync = false, .open = {}}}, end_ticks);
  }

  std::string run_batches(const std::vector<spool::StreamBatch>& batches, uint64_t end_ticks = 0) {
    text_.clear();
    EventOrder order(
        clock_,
        {&regions_, &global_regions_, &communicators_, &metrics_, &windows_, &rank_groups_, &files_,
         &file_names_, &global_communicators_, &global_windows_, &global_files_},
        &requests_, &open_io_, &outcome_, &tally_, [this](std::span<const Event> events) {
          for (const Event& event : events) add(event);
          return Status();
        });
    for (const spool::StreamBatch& batch : batches) {
      EXPECT_TRUE(order.add(batch).has_value());
    }
    EXPECT_TRUE(order.finish(end_ticks).has_value());
    return text_;
  }

  void add(const Event& event) {
    if (event.kind == EventKind::kLostBegin) last_loss_ = event;
    if (!text_.empty()) text_ += ' ';
    text_ += std::to_string(event.time_ns) + ':' + name_of(event.kind);
    if (event.kind == EventKind::kEnter || event.kind == EventKind::kLeave) {
      text_ += event.region == kUnknownRegion ? "?" : std::to_string(event.region);
    }
    last_ = event;
    events_.push_back(event);
  }

  clock::ClockMap clock_;
  std::unordered_map<uint32_t, uint32_t> regions_;
  std::vector<GlobalRegion> global_regions_;
  std::unordered_map<uint32_t, uint32_t> communicators_;
  std::vector<GlobalCommunicator> global_communicators_{
      {"world", CommunicatorKind::kWorld, {}, {}}};
  std::vector<GlobalWindow> global_windows_{{"window", 0, WindowFlavour::kCreate}};
  std::vector<GlobalFile> global_files_{{0, 0, 0}};
  std::unordered_map<uint32_t, uint32_t> metrics_;
  std::unordered_map<uint32_t, uint32_t> windows_;
  std::unordered_map<uint32_t, uint32_t> rank_groups_;
  std::unordered_map<uint32_t, uint32_t> files_;
  std::unordered_map<uint32_t, uint32_t> file_names_;
  OpenIo open_io_;
  GroupRequests requests_;
  Outcome outcome_;
  LocationTally tally_;
  std::string text_;
  Event last_loss_{};
  Event last_{};
  std::vector<Event> events_;
};

}  // namespace aon::writers
