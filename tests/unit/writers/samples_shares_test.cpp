// The archive of samples of a job whose events are gone through by two processes, and of one with
// many threads.

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>

#include "tests/unit/writers/shares.h"
#include "tests/unit/writers/spool_fixture.h"
#include "writers/assemble/model.h"
#include "writers/otf2/archive.h"
#include "writers/otf2/samples_writer.h"

namespace aon::writers {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kProcesses = 4;

/// What otf2-print says of an archive, without its identity, which is random.
std::string print(const fs::path& anchor) {
  FILE* pipe = popen(
      (std::string(aon::test::kOtf2Print) + ("-A " + anchor.string() + " 2>&1")).c_str(), "r");
  std::string text;
  std::array<char, 4096> line;
  while (pipe != nullptr && fgets(line.data(), line.size(), pipe) != nullptr) {
    if (std::string(line.data()).find("dentifier") == std::string::npos) text += line.data();
  }
  EXPECT_EQ(pclose(pipe), 0) << text;
  return text;
}

class SamplesShares : public testing::Test {
 protected:
  struct Paths {
    CallPathsDefinition definition;
    CallPathNode nodes[2];
  };

  SamplesShares() {
    aon::test::NodeSpool node(job_.path(), "n1");
    for (uint32_t process = 0; process < kProcesses; ++process) {
      node.add_process(process, static_cast<int32_t>(process), kProcesses, {});
      MappingDefinition mapping{};
      mapping.process = process;
      mapping.id = 7;
      mapping.start = 0x1000;
      mapping.end = 0x11000;
      node.define(process, DefinitionType::kMapping, mapping, {"/nowhere/solver"});
      const Paths paths{{process, 100, 2, 0}, {{kNoCallPath, 7, 0x10}, {100, 7, 0x20}}};
      node.define(process, DefinitionType::kCallPaths, paths);
    }
    node.finish();
    auto parts = build_model(job_.path(), kDefaultOtf2Locations);
    EXPECT_TRUE(parts.has_value());
    parts_ = std::move(parts).value();
    Model& model = parts_->model;
    model.locations.clear();
    for (uint32_t group = 0; group < kProcesses; ++group)
      model.locations.push_back(
          {uint64_t{5} << 32 | group, group, LocationType::kSamples, "samples", group, 9, false});
  }

  /// Two threads of each process but the last one.
  static std::vector<Event> events_of(const Location& location) {
    std::vector<Event> events;
    for (uint32_t i = 0; i < 100 * (kProcesses - 1 - location.group); ++i) {
      Event event{};
      event.kind = EventKind::kCallSample;
      event.time_ns = 1000 + 10 * i + location.group;
      event.region = 100 + i % 2;
      event.peer = static_cast<int32_t>(5000 + i / 3 % 2);
      events.push_back(event);
    }
    return events;
  }
  std::unique_ptr<Writer> writer(const std::string& folder) const {
    fs::create_directories(job_.path() / folder);
    return make_samples_writer(job_.path() / folder);
  }
  fs::path samples(const std::string& folder) const { return job_.path() / folder / "samples"; }
  std::vector<std::string> states() const {
    const auto even = writer("even");
    const auto odd = writer("odd");
    return test::run_shares({even.get()}, {odd.get()}, parts_->model, events_of);
  }
  void take_files() const {
    for (const char* share : {"even", "odd"})
      ASSERT_TRUE(otf2::take_event_files(samples(share), samples("combined")));
  }
  std::string whole() const {
    test::run_whole({writer("whole").get()}, parts_->model, events_of);
    return print(samples("whole") / "traces.otf2");
  }

  aon::test::TemporaryFolder job_;
  std::unique_ptr<JobModel> parts_;
};

TEST_F(SamplesShares, archive_is_that_of_one_process) {
  test::combine({writer("combined").get()}, parts_->model, states());
  take_files();
  const std::string text = whole();
  EXPECT_NE(text.find("CALLING_CONTEXT_SAMPLE"), std::string::npos);
  EXPECT_EQ(print(samples("combined") / "traces.otf2"), text);
}

TEST_F(SamplesShares, files_may_come_before_the_definitions) {
  const auto combiner = writer("combined");
  ASSERT_TRUE(combiner->begin(parts_->model));
  test::load_all(states(), [&](StateIn* in) { return combiner->load(in); });
  take_files();
  ASSERT_TRUE(combiner->finish({}));
  EXPECT_EQ(print(samples("combined") / "traces.otf2"), whole());
}

TEST_F(SamplesShares, nothing_is_made_of_no_samples) {
  const auto none = [](const Location&) { return std::vector<Event>(); };
  const auto even = writer("even");
  const auto odd = writer("odd");
  const auto told = test::run_shares({even.get()}, {odd.get()}, parts_->model, none);
  test::combine({writer("combined").get()}, parts_->model, told);
  take_files();
  EXPECT_FALSE(fs::exists(samples("combined")));
}

TEST_F(SamplesShares, a_file_of_the_same_location_is_not_overwritten) {
  states();
  fs::create_directories(samples("combined") / "traces");
  const fs::path name = fs::directory_iterator(samples("even") / "traces")->path().filename();
  std::ofstream(samples("combined") / "traces" / name) << "other";
  EXPECT_FALSE(otf2::take_event_files(samples("even"), samples("combined")));
  EXPECT_EQ(fs::file_size(samples("combined") / "traces" / name), 5u);
}

TEST_F(SamplesShares, threads_beyond_the_limit_share_a_location_and_all_take_little_memory) {
  constexpr uint32_t kThreads = 2 * kMaxThreadLocations;
  constexpr uint32_t kEach = 3;
  std::vector<Event> events;
  for (uint32_t i = 0; i < kThreads * kEach; ++i) {
    Event event{};
    event.kind = EventKind::kCallSample;
    event.time_ns = 1000 + i;
    event.region = 100 + i / kThreads % 2;
    event.peer = static_cast<int32_t>(5000 + i % kThreads);
    events.push_back(event);
  }
  const auto in_use = [] {
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
  };
  const auto one = writer("one");
  ASSERT_TRUE(one->begin(parts_->model));
  ASSERT_TRUE(one->begin_location(parts_->model.locations[0]));
  const size_t before_bytes = in_use();
  ASSERT_TRUE(one->events(events));
  EXPECT_LT(in_use() - before_bytes, 2u << 20);  // 256 open event files: 64 MiB at the least
  ASSERT_TRUE(one->end_location());
  ASSERT_TRUE(one->finish({}));
  const std::string text = print(samples("one") / "traces.otf2");
  size_t at = 0;
  uint32_t samples_count = 0;
  for (; (at = text.find("CALLING_CONTEXT_SAMPLE ", at)) != std::string::npos; ++at)
    ++samples_count;
  EXPECT_EQ(samples_count, kThreads * kEach);
  const auto files = fs::directory_iterator(samples("one") / "traces");
  EXPECT_EQ(std::count_if(begin(files), end(files),
                          [](const auto& file) { return file.path().extension() == ".evt"; }),
            static_cast<ptrdiff_t>(kMaxThreadLocations) + 1);
}

TEST_F(SamplesShares, damage_is_harmless) {
  int count = 0;
  const auto make = [&] { return writer("damage" + std::to_string(count++)); };
  test::expect_damage_is_harmless(make, parts_->model, states()[1]);
}

}  // namespace
}  // namespace aon::writers
