/// A group's locations and events, for a writer.
#pragma once

#include <vector>

#include "writers/writer.h"

namespace aon::writers::test {

/// All locations of `group` with the events that `events_of(location)` makes up.
template <class EventsOf>
Status feed_group(Writer* writer, const Model& model, const Group& group, EventsOf events_of) {
  for (const Location& location : model.locations) {
    if (location.group != group.id) continue;
    const std::vector<Event> events = events_of(location);
    Status status = writer->begin_location(location);
    if (status) status = writer->events(events);
    if (status) status = writer->end_location();
    if (!status) return status;
  }
  return {};
}

}  // namespace aon::writers::test
