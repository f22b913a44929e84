// Regions over a hole in the stream of their thread: what ended in it is closed where it begins.

#include "tests/unit/writers/event_order_fixture.h"
#include "writers/profile/late_begin.h"

namespace aon::writers {
namespace {

using test::begin_record;
using test::end_record;
using test::span_record;

Record hole(uint64_t start, uint64_t end, uint32_t ended, uint32_t begun) {
  return test::lost_record(LossReason::kPoolFull, start, end, 5, ended, begun);
}

class RegionHoles : public EventOrderTest {};

TEST_F(RegionHoles, region_that_ended_in_one_is_closed_at_its_begin) {
  EXPECT_EQ(run({begin_record(1, 10), hole(20, 30, 1, 0), begin_record(1, 40), end_record(1, 50)}),
            "10:enter1 20:cut 20:leave1 20:lost{ 30:}lost 40:enter1 50:leave1");
  EXPECT_EQ(outcome_.cut_region_count, 1u);
  EXPECT_EQ(outcome_.unbalanced_region_count + outcome_.open_region_count, 0u);
}

TEST_F(RegionHoles, region_that_goes_on_behind_one_keeps_its_end) {
  EXPECT_EQ(run({begin_record(1, 10), begin_record(2, 12), begin_record(3, 14), hole(20, 30, 2, 0),
                 begin_record(2, 40), end_record(2, 50), end_record(1, 60)}),
            "10:enter1 12:enter2 14:enter3 20:cut 20:leave3 20:cut 20:leave2 20:lost{ 30:}lost "
            "40:enter2 50:leave2 60:leave1");
  EXPECT_EQ(outcome_.cut_region_count, 2u);
  EXPECT_EQ(outcome_.unbalanced_region_count, 0u);
}

TEST_F(RegionHoles, nothing_is_cut_where_no_region_ended) {
  EXPECT_EQ(run({begin_record(1, 10), hole(20, 30, 0, 0), end_record(1, 40)}),
            "10:enter1 20:lost{ 30:}lost 40:leave1");
  EXPECT_EQ(outcome_.cut_region_count, 0u);
}

TEST_F(RegionHoles, end_of_a_region_that_began_in_one_is_not_taken_for_that_of_another) {
  EXPECT_EQ(run({begin_record(1, 10), begin_record(2, 12), hole(20, 30, 1, 2), end_record(1, 40),
                 end_record(2, 50), end_record(1, 60)}),
            "10:enter1 12:enter2 20:cut 20:leave2 20:lost{ 30:}lost 60:leave1");
  EXPECT_EQ(outcome_.cut_region_count, 3u);
  EXPECT_EQ(outcome_.unbalanced_region_count, 0u);
}

TEST_F(RegionHoles, region_inside_of_one_that_began_unseen_is_whole) {
  EXPECT_EQ(run({hole(20, 30, 0, 1), begin_record(2, 40), end_record(2, 50), end_record(1, 60)}),
            "20:lost{ 30:}lost 40:enter2 50:leave2");
  EXPECT_EQ(outcome_.cut_region_count, 1u);
}

TEST_F(RegionHoles, regions_that_were_never_seen_end_in_the_next_one) {
  EXPECT_EQ(run({begin_record(1, 10), hole(20, 30, 0, 2), hole(40, 50, 1, 0), hole(60, 70, 1, 1),
                 end_record(2, 80), end_record(1, 90)}),
            "10:enter1 20:lost{ 30:}lost 40:lost{ 50:}lost 60:lost{ 70:}lost 90:leave1");
  EXPECT_EQ(outcome_.cut_region_count, 1u) << "of the others not even a record is there";
}

TEST_F(RegionHoles, one_at_the_end_leaves_no_region_open) {
  EXPECT_EQ(run({begin_record(1, 10), begin_record(2, 12), hole(20, 30, kAllRegions, 0)}, 90),
            "10:enter1 12:enter2 20:cut 20:leave2 20:cut 20:leave1 20:lost{ 30:}lost");
  EXPECT_EQ(outcome_.cut_region_count, 2u);
  EXPECT_EQ(outcome_.open_region_count, 0u);
}

TEST_F(RegionHoles, one_inside_a_call_closes_nothing_around_the_call) {
  EXPECT_EQ(
      run({begin_record(1, 10), hole(22, 25, 3, 0), span_record(2, 20, 40), end_record(1, 50)}),
      "10:enter1 20:enter2 22:lost{ 25:}lost 40:leave2 50:leave1");
}

TEST_F(RegionHoles, numbers_that_make_no_sense_do_no_harm) {
  run({hole(10, 20, 7, 70'000), end_record(1, 30), test::thread_record(40, 7, false),
       hole(50, 60, 70'000, 70'000), hole(61, 62, 1, 70'000), begin_record(1, 70)},
      90);
  EXPECT_EQ(text_,
            "10:lost{ 20:}lost 50:lost{ 60:}lost 61:lost{ 62:}lost 70:enter1 "
            "90:open-at-end 90:leave1");
}

TEST_F(RegionHoles, blocks_that_are_missing_cut_what_the_next_one_does_not_have) {
  const std::vector<Record> first{begin_record(1, 10), begin_record(2, 20)};
  const std::vector<Record> second{test::lost_record(LossReason::kDamaged, 30, 50, 9),
                                   end_record(3, 60), end_record(1, 70)};
  const std::vector<spool::OpenRegion> open{{1, 10}, {3, 40}};
  EXPECT_EQ(run_batches({{first, true, {}}, {second, true, open}}),
            "10:enter1 20:enter2 30:cut 30:leave2 30:lost{ 50:}lost 50:enter3 60:leave3 70:leave1");
  EXPECT_EQ(outcome_.cut_region_count, 1u);
}

TEST_F(RegionHoles, region_that_began_in_one_tells_when) {
  const std::vector<Record> records{test::lost_record(LossReason::kEvictedByCap, 20, 50, 9),
                                    end_record(2, 60), end_record(1, 70)};
  const std::vector<spool::OpenRegion> open{{1, 10}, {2, 40}};
  EXPECT_EQ(run_batches({{records, true, open}}),
            "10:enter1 20:lost{ 50:}lost 50:enter2 60:leave2 70:leave1");
  ASSERT_EQ(events_.size(), 6u);
  EXPECT_FALSE(profile::began_in_hole(events_[0]));
  EXPECT_EQ(profile::begin_ns(events_[0]), events_[0].time_ns);
  EXPECT_EQ(profile::begin_ns(events_[3]), events_[3].time_ns - 10);
}

TEST_F(RegionHoles, block_may_begin_with_unseen_regions) {
  const std::vector<Record> records{hole(20, 30, 1, 0), end_record(2, 60), end_record(1, 70)};
  const std::vector<spool::OpenRegion> open{{1, 10}, {spool::kUnseenRegion, 2}};
  EXPECT_EQ(run_batches({{records, true, open}}), "10:enter1 20:lost{ 30:}lost 70:leave1");
  EXPECT_EQ(outcome_.cut_region_count, 1u);
}

}  // namespace
}  // namespace aon::writers
