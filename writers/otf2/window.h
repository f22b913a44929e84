/// The newest part of a location's events, as a whole of its own: regions, collectives and losses
/// that are open when the window begins are entered there, files that are open are opened there,
/// completions of requests that started before it are made to stand alone, and of a device's work
/// that was left out up to some time in it the rest is shown. What completes one-sided transfers
/// from before it, or releases such locks, is left out.
/// Owner: Otf2Writer.   Thread: one.   Cost: nothing without a window, else a copy of each event.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include "writers/writer.h"

namespace aon::writers::otf2 {

/// More that are live at once have completions without a start.
constexpr size_t kMaxOldRequests = size_t{1} << 20;

class Window {
 public:
  /// `start_ns` 0: everything.
  void begin_location(uint64_t start_ns);

  /// The events of the window among `events`; lives until the next call.
  std::span<const Event> filter(std::span<const Event> events);

 private:
  void follow(const Event& event);
  void follow_io(const Event& event);
  void follow_rma(const Event& event);
  void enter_open();
  void add(const Event& event);
  bool is_old_io(const Event& event) const {
    const bool has_begun_apart =
        (event.io_flags() & (kIoNonblocking | kIoSplitBegin | kIoSplitEnd)) != 0;
    return has_begun_apart && event.request <= last_old_io_;
  }
  /// Transfers to one target share an id, so one from before the window may be used again in it.
  bool is_old_transfer(const Event& event) const {
    return event.request <= last_old_transfer_ && used_again_.count(event.request) == 0;
  }
  void add_rma(const Event& event);
  /// The request of a completion was live as the window began. What other threads have begun stays:
  /// their start may be in the window.
  bool is_old(const Event& event) {
    return old_requests_.erase(event.request) != 0 || event.request < old_request_end_;
  }
  /// It begins before the window, and lasts.
  bool reaches_window(const Event& event) const {
    return event.kind == EventKind::kDeviceGap && event.time_ns + event.bytes_received > start_ns_;
  }

  uint64_t start_ns_ = 0;
  bool is_inside_ = true;
  std::vector<Event> open_;  ///< events that opened what is open, in order
  /// Begun before the window on this location, and not ended; at most kMaxOldRequests.
  std::unordered_set<uint64_t> old_requests_;
  uint64_t old_request_end_ = 0;    ///< behind those for which there was no room
  std::vector<Event> files_;        ///< the events that opened the files that are open
  uint64_t last_old_io_ = 0;        ///< ids of transfers grow; 0: there was none
  uint64_t last_old_transfer_ = 0;  ///< the same of one-sided ones
  std::set<uint64_t> used_again_;
  std::set<std::pair<uint32_t, int32_t>> old_locks_;  ///< window and target; held as it begins
  std::optional<Event> counters_;                     ///< the last ones before the window
  std::vector<Event> out_;
};

}  // namespace aon::writers::otf2
