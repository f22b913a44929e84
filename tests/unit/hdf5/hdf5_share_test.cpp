// Shares of a profile.h5: the rest of what readers_test.py says of whole files.
#include "writers/hdf5/hdf5_share.h"

#include <gtest/gtest.h>

#include <bit>
#include <fstream>

#include "tests/unit/profile/one_rank.h"
#include "tests/unit/temporary_folder.h"
#include "tests/unit/writers/feed_group.h"
#include "tests/unit/writers/two_shares.h"
#include "writers/hdf5/event_sums.h"
#include "writers/hdf5/hdf5_writer.h"

namespace aon::writers {
namespace {

namespace fs = std::filesystem;

class Hdf5Shares : public testing::Test {
 protected:
  Hdf5Shares() : model_(test::make_model(4)) {
    job_.nodes.resize(1);
    job_.nodes[0].host = "node0";
    process_.counts[{9, 2}] = 4;  // of a thread that only counted
    model_.job = &job_;
    model_.groups[3].process = &process_;
    model_.metrics.push_back({"load", "1", "", "example", MetricMode::kAbsolute, false});
    Location series = model_.locations[2];
    series.id = uint64_t{7} << 32 | 2;
    series.type = LocationType::kMetric;
    model_.locations.push_back(series);
  }

  /// Rank r: r + 1 calls; one sample on the location for these.
  std::vector<Event> events_of(const Location& location) const {
    if (location.type == LocationType::kMetric) {
      Event sample = test::event(EventKind::kSample, 5, 0);
      sample.bytes = std::bit_cast<uint64_t>(1.5);
      return {sample};
    }
    std::vector<Event> events;
    for (uint32_t i = 0; i <= location.group; ++i) {
      events.push_back(test::enter(10 * i, 0));
      events.push_back(test::leave(10 * i + 3, 0));
    }
    return events;
  }

  std::unique_ptr<Writer> make_share(const std::string& name) const {
    auto share = make_hdf5_share(folder_ / "series" / name, "series/" + name);
    EXPECT_TRUE(share->begin(model_));
    return share;
  }
  void feed(Writer* writer, const Group& group) const {
    const Status status = test::feed_group(
        writer, model_, group, [this](const Location& location) { return events_of(location); });
    EXPECT_TRUE(status) << status.error().message;
  }
  std::vector<std::string> saved() const {
    const auto first = make_share("a.h5");
    const auto second = make_share("b.h5");
    return test::saved_by_two(model_, first.get(), second.get(),
                              [this](Writer* share, const Group& group) { feed(share, group); });
  }

  aon::test::TemporaryFolder temporary_;
  const fs::path& folder_ = temporary_.path();
  spool::Job job_{};
  spool::Process process_{};
  Model model_;
};

/// What a listener is told: location (-1 none) and calls, with the process in the hundreds.
using Told = std::vector<std::pair<int64_t, uint64_t>>;
ProfileListener listener_to(Told* told) {
  return [told](const Group& group, const Location* location,
                std::span<const profile::RegionStatistics> rows) {
    for (const auto& row : rows) {
      const int64_t id = location == nullptr ? -1 : static_cast<int64_t>(location->id);
      told->emplace_back(id, 100 * group.id + row.count);
    }
  };
}
const Told kWhole = {{0, 1}, {1, 102}, {2, 203}, {3, 304}, {-1, 304}};

TEST_F(Hdf5Shares, tell_the_listener_where_they_are_combined) {
  Told of_whole;
  const auto whole = make_hdf5_writer(folder_ / "whole.h5", listener_to(&of_whole));
  ASSERT_TRUE(whole->begin(model_));
  for (const Group& group : model_.groups) feed(whole.get(), group);
  ASSERT_TRUE(whole->finish({}));
  EXPECT_EQ(of_whole, kWhole);
  Told of_shares;
  const auto combined = make_hdf5_writer(folder_ / "profile.h5", listener_to(&of_shares));
  ASSERT_TRUE(combined->begin(model_));
  test::load_all(saved(), [&](StateIn* in) { return combined->load(in); });
  ASSERT_TRUE(combined->finish({}));
  EXPECT_EQ(of_shares, kWhole);
}

TEST_F(Hdf5Shares, leave_a_file_only_where_they_have_series) {
  saved();
  EXPECT_TRUE(fs::exists(folder_ / "series/a.h5"));
  EXPECT_FALSE(fs::exists(folder_ / "series/b.h5"));
  EXPECT_EQ(fs::status(folder_ / "series").permissions(), fs::perms::owner_all);
}

TEST_F(Hdf5Shares, may_be_all_but_one_process) {
  const std::vector<std::string> bytes = saved();
  Told told;
  const auto combined = make_hdf5_writer(folder_ / "profile.h5", listener_to(&told));
  ASSERT_TRUE(combined->begin(model_));
  feed(combined.get(), model_.groups[0]);
  for (size_t i = 1; i < bytes.size(); ++i) {
    StateIn in(bytes[i]);
    ASSERT_TRUE(combined->load(&in));
  }
  ASSERT_TRUE(combined->finish({}));
  EXPECT_EQ(told, kWhole);
}

TEST_F(Hdf5Shares, that_are_damaged_are_refused) {
  const std::vector<std::string> bytes = saved();
  test::expect_beginnings_to_fail(bytes[2], [&](StateIn* in) {
    hdf5::EventSums sums(model_, [](const Location&, hdf5::RegionRows, hdf5::CounterRows) {});
    Status status = sums.load(in);
    if (!status) return status;
    std::string file;
    std::vector<std::pair<std::string, std::string>> places;
    (void)(in->get(&file) && in->get(&places));
    return in->status();
  });
  const auto combined = make_hdf5_writer(folder_ / "profile.h5");
  ASSERT_TRUE(combined->begin(model_));
  const std::string beginning = bytes[2].substr(0, bytes[2].size() - 1);
  StateIn in(beginning);
  const Status status = combined->load(&in);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kDamaged);
}

TEST_F(Hdf5Shares, of_another_job_are_refused) {
  const std::vector<std::string> bytes = saved();
  Model other = test::make_model(4);
  other.job = &job_;
  other.regions.resize(8);
  const auto combined = make_hdf5_writer(folder_ / "profile.h5");
  ASSERT_TRUE(combined->begin(other));
  StateIn in(bytes[2]);
  const Status status = combined->load(&in);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kDamaged);
  Model fewer = test::make_model(1);
  fewer.job = &job_;
  hdf5::EventSums sums(fewer, [](const Location&, hdf5::RegionRows, hdf5::CounterRows) {});
  StateIn again(bytes[2]);
  EXPECT_FALSE(sums.load(&again));
}

TEST_F(Hdf5Shares, say_which_file_they_cannot_write) {
  std::ofstream(folder_ / "series") << "no folder";
  const auto share = make_share("a.h5");
  ASSERT_TRUE(share->begin_location(model_.locations.back()));
  const Status status = share->events(events_of(model_.locations.back()));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kIo);
  EXPECT_NE(status.error().message.find("series/a.h5"), std::string::npos)
      << status.error().message;
}

TEST_F(Hdf5Shares, have_no_result_of_their_own) {
  EXPECT_FALSE(make_share("a.h5")->finish({}));
  StateOut out;
  EXPECT_FALSE(make_hdf5_writer(folder_ / "profile.h5")->save(&out));
}

}  // namespace
}  // namespace aon::writers
