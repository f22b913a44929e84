#include "core/agent/record_cost.h"

#include <gtest/gtest.h>

namespace aon::agent {
namespace {

TEST(RecordCosts, are_what_two_reads_of_the_clock_and_one_take_at_least) {
  const RecordCosts costs = measure_record_costs(clock::TickSource::kMonotonicRaw);
  EXPECT_GT(costs.event_ns, 1);
  EXPECT_GT(costs.call_ns, costs.event_ns);
}

TEST(RecordCosts, are_those_of_the_clock_that_the_ring_has) {
  if (!clock::probe_tsc().is_suitable) GTEST_SKIP() << "no TSC to be read";
  const RecordCosts quick = measure_record_costs(clock::TickSource::kTsc);
  const RecordCosts slow = measure_record_costs(clock::TickSource::kMonotonicRaw);
  EXPECT_LT(quick.call_ns, slow.call_ns);
}

}  // namespace
}  // namespace aon::agent
