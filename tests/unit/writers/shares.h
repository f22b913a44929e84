/// The events of a job through writers of one process, and through those of two shares and the one
/// who combines what they hand over (two_shares.h).
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/writers/two_shares.h"
#include "writers/writer.h"

namespace aon::writers::test {

/// Writers of one process, in the order in which they get everything.
class Line {
 public:
  Line(std::initializer_list<Writer*> writers) : writers_(writers) {}

  Status begin(const Model& model) {
    return for_each([&](Writer* writer) { return writer->begin(model); });
  }
  Status give(const Location& location, std::span<const Event> events) {
    Status status = for_each([&](Writer* writer) { return writer->begin_location(location); });
    if (status) status = for_each([&](Writer* writer) { return writer->events(events); });
    return status ? for_each([](Writer* writer) { return writer->end_location(); }) : status;
  }
  Status finish() {
    return for_each([](Writer* writer) { return writer->finish({}); });
  }
  Status save(StateOut* out) {
    return for_each([&](Writer* writer) { return writer->save(out); });
  }
  Status load(StateIn* in) {
    return for_each([&](Writer* writer) { return writer->load(in); });
  }

 private:
  template <class Action>
  Status for_each(Action action) {
    for (Writer* writer : writers_) {
      if (Status status = action(writer); !status) return status;
    }
    return {};
  }

  std::vector<Writer*> writers_;
};

using EventsOf = std::function<std::vector<Event>(const Location&)>;

inline void run_whole(Line line, const Model& model, const EventsOf& events_of) {
  ASSERT_TRUE(line.begin(model));
  for (const Location& location : model.locations)
    ASSERT_TRUE(line.give(location, events_of(location)));
  ASSERT_TRUE(line.finish());
}

/// What the two hand over of each group.
inline std::vector<std::string> run_shares(Line first, Line second, const Model& model,
                                           const EventsOf& events_of) {
  EXPECT_TRUE(first.begin(model));
  EXPECT_TRUE(second.begin(model));
  return saved_by_two(model, &first, &second, [&](Line* share, const Group& group) {
    for (const Location& location : model.locations) {
      if (location.group != group.id) continue;
      EXPECT_TRUE(share->give(location, events_of(location)));
    }
  });
}

inline void combine(Line line, const Model& model, const std::vector<std::string>& saved) {
  ASSERT_TRUE(line.begin(model));
  load_all(saved, [&](StateIn* in) { return line.load(in); });
  ASSERT_TRUE(line.finish());
}

/// What ends too soon, at any place, is an error; what is wrong at any place harms nobody. `make`
/// gives a fresh writer, as a unique_ptr.
template <class Make>
void expect_damage_is_harmless(const Make& make, const Model& model, const std::string& saved) {
  const auto load = [&](StateIn* in) {
    const auto writer = make();
    Status status = writer->begin(model);
    if (status) status = writer->load(in);
    return status ? writer->finish({}) : status;
  };
  expect_beginnings_to_fail(saved, load);
  for (size_t at = 0; at < saved.size(); ++at) {
    std::string wrong = saved;
    wrong[at] = static_cast<char>(wrong[at] ^ 0x7f);
    StateIn in(wrong);
    static_cast<void>(load(&in));
  }
  StateIn in(saved);
  EXPECT_TRUE(load(&in));
}

}  // namespace aon::writers::test
