/// The newest part of a location's events, as a whole of its own: regions, collectives and losses
/// that are open when the window begins are entered there, completions of requests that started
/// before it are made to stand alone.
/// Owner: Otf2Writer.   Thread: one.   Cost: nothing without a window, else a copy of each event.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "writers/writer.h"

namespace aon::writers::otf2 {

class Window {
 public:
  /// `start_ns` 0: everything.
  void begin_location(uint64_t start_ns);

  /// The events of the window among `events`; lives until the next call.
  std::span<const Event> filter(std::span<const Event> events);

 private:
  void follow(const Event& event);
  void enter_open();
  void add(const Event& event);
  bool is_old(const Event& event) const {
    return has_old_request_ && event.request <= last_old_request_;
  }

  uint64_t start_ns_ = 0;
  bool is_inside_ = true;
  std::vector<Event> open_;  ///< events that opened what is open, in order
  bool has_old_request_ = false;
  uint64_t last_old_request_ = 0;  ///< request ids grow
  std::vector<Event> out_;
};

}  // namespace aon::writers::otf2
