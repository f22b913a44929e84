#include "plugins/cupti/cost.h"

#include <gtest/gtest.h>

#include "tests/unit/cupti/made_record.h"

namespace aon::cupti {
namespace {

using test::made_kernel;
using test::MadeRecord;

constexpr Quirks kQuirks = quirks_of(130001);

uint64_t cost_of_record(const MadeRecord& record, Parsed wanted) {
  Work work;
  const Parsed parsed = parse(record.data(), kQuirks, &work);
  EXPECT_EQ(parsed, wanted);
  return cost_of(parsed, work);
}

TEST(Cost, of_work_is_by_its_kind) {
  EXPECT_EQ(cost_of_record(made_kernel("a", 1000, 3000), Parsed::kWork), kLaunchNs);
  MadeRecord node = made_kernel("a", 1000, 3000);
  node.set(kernel::kGraph, uint32_t{5});
  EXPECT_EQ(cost_of_record(node, Parsed::kWork), kNodeNs);
  Work graph = {};
  graph.operation = DeviceOperation::kGraph;
  EXPECT_EQ(cost_of(Parsed::kWork, graph), kGraphNs);
  Work call = {};
  call.row = Row::kCalls;
  EXPECT_EQ(cost_of(Parsed::kWork, call), kOtherNs);
}

TEST(Cost, of_work_whose_times_were_lost_is_the_same) {
  EXPECT_EQ(cost_of_record(made_kernel("a", 0, 0), Parsed::kZeroTimes), kLaunchNs);
  EXPECT_EQ(cost_of_record(made_kernel("a", 3000, 1000), Parsed::kDamaged), kLaunchNs);
}

TEST(Cost, of_a_kind_that_nobody_asked_for_is_small) {
  EXPECT_EQ(cost_of(Parsed::kIgnored, {}), kOtherNs);
}

TEST(Cost, of_calls_is_spared_with_their_share_of_the_threads) {
  const RecordCounts counts = {.all = 1000, .calls = 400};
  EXPECT_EQ(spared_ns(counts, 10'000), 400 * kOtherNs + 4'000);
  EXPECT_EQ(spared_ns({}, 10'000), 0u);
}

}  // namespace
}  // namespace aon::cupti
