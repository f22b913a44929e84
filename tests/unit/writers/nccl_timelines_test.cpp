// Members of communicators of NCCL as places in the archive.

#include "writers/otf2/nccl_timelines.h"

#include <gtest/gtest.h>

#include <deque>

#include "tests/unit/profile/one_rank.h"

namespace aon::writers::otf2 {
namespace {

constexpr uint32_t kLocal = 7;  // the world of the model
constexpr uint64_t kTimeline = 20;

/// Two processes in one communicator, of which the first has a timeline.
class NcclTimelinesTest : public testing::Test {
 protected:
  NcclTimelinesTest() : model_(test::make_model(2)) {
    for (Group& group : model_.groups) {
      CommunicatorDefinition definition{};
      definition.kind = CommunicatorKind::kNccl;
      definition.rank = group.id;
      processes_.emplace_back().communicators[kLocal].definition = definition;
      group.process = &processes_.back();
    }
    model_.communicators[0].kind = CommunicatorKind::kNccl;
    model_.communicators[0].members = {0, 1};
    Location location = model_.locations.front();
    location.id = kTimeline;
    location.group = 0;
    location.type = LocationType::kAcceleratorStream;
    location.device = kNoDevice;
    location.device_stream = kLocal;
    location.in_archive = true;
    model_.locations.push_back(location);
  }
  std::deque<spool::Process> processes_;
  Model model_;
};

TEST_F(NcclTimelinesTest, have_places_of_their_own) {
  const NcclTimelines timelines(model_, false);
  EXPECT_EQ(timelines.locations(), (std::vector<uint64_t>{kTimeline, 1}));
  EXPECT_EQ(timelines.members(0), (std::vector<uint64_t>{0, 1}));
}

/// Each location stands there once: the second process is at its own place already.
TEST_F(NcclTimelinesTest, as_mpis_follow_the_processes) {
  const NcclTimelines timelines(model_, true);
  EXPECT_EQ(timelines.locations(), (std::vector<uint64_t>{kTimeline}));
  EXPECT_EQ(timelines.members(0), (std::vector<uint64_t>{2, 1}));
}

}  // namespace
}  // namespace aon::writers::otf2
