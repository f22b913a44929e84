// What the analysis of late ranks costs in long jobs and in large ones.

#include <time.h>

#include "tests/unit/nccl/lateness_case.h"

namespace aon::writers::nccl {
namespace {

class ManyOperations : public NcclLateness {
 protected:
  static constexpr uint32_t kRanks = 64;
  ManyOperations() : NcclLateness(kRanks) {}
};

/// Functions stand for communicators here, of which programs may make any number.
TEST_F(ManyOperations, causes_are_of_the_rows_that_there_are) {
  constexpr uint32_t kRows = kMaxLatenessRows / kRanks;
  constexpr uint32_t kFirst = 20;
  model_.regions.resize(kFirst + kRows + 3, model_.regions[kAllReduce]);
  for (uint32_t region = kFirst; region < model_.regions.size(); ++region) {
    for (Group& group : model_.groups) {
      group.region_map[10 - region] = region;
      tell(group.id, 1, {.gpu_ns = 100 + group.id, .region = region});
    }
  }
  const LatenessSummary& summary = run();
  EXPECT_EQ(summary.table.left_out_count(), 3 * kRanks);
  EXPECT_EQ(summary.table.rows().size(), kMaxLatenessRows);
  uint64_t caused_ns = 0;
  for (const LatenessRow& row : summary.table.rows()) caused_ns += row.caused_ns;
  uint64_t told_ns = 0;
  for (const auto& [key, causes] : summary.causes) told_ns += causes.host_ns + causes.gpu_ns;
  EXPECT_EQ(told_ns, caused_ns);
}

}  // namespace
}  // namespace aon::writers::nccl
