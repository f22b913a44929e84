// Archives that do not fit: a limit on the size of files stands for a disk that is full, for the
// writes fail in the same way. Where the first of them fails, while events come or when a file is
// closed, depends on how many there are: OTF2 writes 4 MiB at once.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include "tests/unit/writers/feed_group.h"
#include "tests/unit/writers/spool_fixture.h"
#include "writers/assemble/model.h"
#include "writers/otf2/otf2_writer.h"
#include "writers/otf2/samples_writer.h"

namespace aon::writers {
namespace {

namespace fs = std::filesystem;

/// Files of at most `bytes`, while it lives.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) : handler_(signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~FileLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, handler_);
  }

 private:
  sighandler_t handler_;
  rlimit before_{};
};

class FullDisk : public testing::Test {
 protected:
  FullDisk() {
    aon::test::NodeSpool node(job_.path(), "n1");
    node.add_process(0, 0, 1, {{"MPI_Send", RegionRole::kPointToPoint}});
    node.add_records(0, 1, {aon::test::span_record(1, 1000, 1500)});
    MappingDefinition mapping{};
    mapping.id = 7;
    mapping.start = 0x1000;
    mapping.end = 0x11000;
    node.define(0, DefinitionType::kMapping, mapping, {"/nowhere/solver"});
    const Path path{{0, 100, 1, 0}, {kNoCallPath, 7, 0x10}};
    node.define(0, DefinitionType::kCallPaths, path);
    node.finish();
    auto parts = build_model(job_.path(), kDefaultOtf2Locations);
    EXPECT_TRUE(parts.has_value());
    parts_ = std::move(parts).value();
    Model& model = parts_->model;
    model.locations.push_back(
        {uint64_t{5} << 32, 0, LocationType::kSamples, "samples", 0, 9, false});
  }

  /// Of one writer that is given `count` events of `kind` at the locations that are `type`.
  Status write(LocationType type, EventKind kind, uint64_t count) const {
    const fs::path folder = job_.path() / "archive";
    fs::remove_all(folder);
    fs::create_directory(folder);
    const Model& model = parts_->model;
    const auto writer =
        type == LocationType::kSamples ? make_samples_writer(folder) : make_otf2_writer(folder);
    Status status = writer->begin(model);
    if (!status) return status;
    status = test::feed_group(writer.get(), model, model.groups[0], [&](const Location& location) {
      return location.type == type ? events(kind, count) : std::vector<Event>();
    });
    return status ? writer->finish({}) : status;
  }

  static std::vector<Event> events(EventKind kind, uint64_t count) {
    std::vector<Event> events;
    for (uint64_t i = 0; i < count; ++i) {
      Event event{};
      event.kind = kind == EventKind::kEnter && i % 2 == 1 ? EventKind::kLeave : kind;
      event.time_ns = 1000 + 10 * i;
      event.region = kind == EventKind::kEnter ? 1 : 100;
      event.peer = 5000;
      events.push_back(event);
    }
    return events;
  }

  void expect_failure(LocationType type, EventKind kind, uint64_t count,
                      const std::string& file = ".evt") const {
    SCOPED_TRACE(count);
    const Status whole = write(type, kind, count);
    ASSERT_TRUE(whole) << whole.error().message;
    const FileLimit limit(16384);
    const Status status = write(type, kind, count);
    ASSERT_FALSE(status);
    EXPECT_NE(status.error().message.find("too large"), std::string::npos)
        << status.error().message;
    EXPECT_NE(status.error().message.find(file), std::string::npos) << status.error().message;
  }

 private:
  struct Path {
    CallPathsDefinition definition;
    CallPathNode node;
  };

  aon::test::TemporaryFolder job_;
  std::unique_ptr<JobModel> parts_;
};

/// Of all counts some fail while events come, and some when the file is closed.
TEST_F(FullDisk, archive_of_events_fails_with_the_reason) {
  for (const uint64_t count : {10'000u, 280'000u, 320'000u, 360'000u, 400'000u, 440'000u, 900'000u})
    expect_failure(LocationType::kThread, EventKind::kEnter, count);
}

TEST_F(FullDisk, archive_of_samples_fails_with_the_reason) {
  for (const uint64_t count : {10'000u, 280'000u, 320'000u, 360'000u, 400'000u, 440'000u})
    expect_failure(LocationType::kSamples, EventKind::kCallSample, count);
  expect_failure(LocationType::kSamples, EventKind::kCallSample, 900'000, "temporary file");
}

}  // namespace
}  // namespace aon::writers
