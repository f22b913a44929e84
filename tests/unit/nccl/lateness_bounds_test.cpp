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

constexpr uint64_t kOperations = 16;

/// One is early, and the others are late together: by their GPUs, but for two.
class LateTogether : public NcclLateness {
 public:
  explicit LateTogether(uint32_t ranks) : NcclLateness(ranks) {
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      const uint64_t queued_ns = rank == 2 ? 0 : rank == 3 ? 16'385 : 1'000'000;
      for (uint64_t sequence = 0; sequence < kOperations; ++sequence)
        tell(rank, sequence, {.gpu_ns = rank == 5 ? 1'000'000u : 1000u, .queued_ns = queued_ns});
    }
  }

  /// CPU time of looking for who was late.
  double finish_s() {
    EXPECT_TRUE(analysis_.begin(model_));
    for (const Location& location : model_.locations) give(location);
    const double begin_s = cpu_s();
    EXPECT_TRUE(analysis_.finish({}));
    return cpu_s() - begin_s;
  }
  const LatenessSummary& summary() { return *analysis_.summary(); }

 private:
  void TestBody() override {}
  static double cpu_s() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }
};

TEST(ManyRanks, that_are_late_together_are_looked_at_once) {
  constexpr uint32_t kRanks = 16384;
  LateTogether some(kRanks / 8);
  LateTogether many(kRanks);
  const double some_s = some.finish_s();
  EXPECT_LT(many.finish_s(), 3 * 8 * some_s) << "64 times as long where each is held against each";
  const LatenessSummary& summary = many.summary();
  ASSERT_EQ(summary.causes.size(), kRanks - 1);
  for (const auto& [key, causes] : summary.causes) {
    const uint32_t rank = summary.members[std::get<2>(key)].group;
    const uint64_t gpu_ns = rank == 2 ? 0 : rank == 3 ? 16'385 / (kRanks - 1) : 60;
    EXPECT_EQ(causes.gpu_ns, kOperations * gpu_ns) << rank;
    EXPECT_EQ(causes.host_ns + causes.gpu_ns, kOperations * (rank == 0 ? 60 + 16'020 : 60)) << rank;
  }
}

}  // namespace
}  // namespace aon::writers::nccl
