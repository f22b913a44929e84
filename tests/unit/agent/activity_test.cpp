// What the records of a process cost it, for the budget.

#include <aon/nccl.h>
#include <gtest/gtest.h>

#include <memory>

#include "core/agent/budget.h"
#include "core/agent/stream_log.h"

namespace aon::agent {
namespace {

TEST(Activity, counts_the_sites_of_calls_and_of_steps_of_nccls_proxy) {
  const auto activity = std::make_unique<Activity>();
  activity->add({RecordKind::kSpan, 7, 3});
  activity->add({RecordKind::kMark, 7, 5});
  activity->add({RecordKind::kNcclCall, kNcclStepSite, 40});
  activity->add({RecordKind::kNcclCall, kNcclProxySite, 2});
  activity->add({RecordKind::kNcclCall, kMaxSites + 1, 8});  // operations: their function
  activity->add({RecordKind::kMark, kNcclStepSite, 9});
  EXPECT_EQ(activity->site_count[7].load(), 3u);
  EXPECT_EQ(activity->site_count[kNcclStepSite].load(), 40u);
  EXPECT_EQ(activity->site_count[kNcclProxySite].load(), 0u);
  EXPECT_EQ(activity->kind_count[static_cast<size_t>(RecordKind::kNcclCall)].load(), 50u);
}

/// Without the steps' own cost the records would be within the budget.
TEST(Activity, of_steps_alone_lowers_the_level) {
  constexpr uint32_t kRecords = 30'000;  // a second: 3.6 ms as records, 30 ms more as steps
  const auto activity = std::make_unique<Activity>();
  activity->add({RecordKind::kNcclCall, kNcclStepSite, kRecords});
  const auto steps = static_cast<double>(activity->site_count[kNcclStepSite].load());
  const auto lowered = [](double cost_ns) {
    Budget budget(1);
    const std::vector<SiteLoad> sites{{0, kNcclProxySite, kModeSample, cost_ns, kNcclLowestPeriod}};
    return budget.step({1, cost_ns, 0, 1e9}, sites);
  };
  EXPECT_TRUE(lowered(nccl_cost_ns(kRecords, 0)).empty());
  const std::vector<ModeChange> changes = lowered(nccl_cost_ns(kRecords, steps));
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].new_mode, static_cast<uint32_t>(kModeSample + 1));
}

}  // namespace
}  // namespace aon::agent
