#include "writers/ledger/unrecorded.h"

#include <gtest/gtest.h>

namespace aon::writers::ledger {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;

class Unrecorded : public testing::Test {
 protected:
  Unrecorded() {
    for (uint32_t id = 0; id < 2; ++id) {
      Group group{};
      group.id = id;
      group.name = "MPI Rank " + std::to_string(id);
      model_.groups.push_back(group);
    }
  }
  void add(uint32_t group, GapCause cause, uint64_t total_ns) {
    uint64_t sum_ns = total_ns;
    for (const UnrecordedTime& row : devices_.unrecorded)
      sum_ns += row.group == group ? row.total_ns : 0;
    devices_.unrecorded.push_back({group, cause, 1, total_ns, sum_ns});
    for (UnrecordedTime& row : devices_.unrecorded) {
      if (row.group == group) row.process_ns = sum_ns;
    }
  }
  UnrecordedText told() const { return unrecorded_text(model_, devices_); }

  Model model_;
  DeviceSummary devices_;
};

TEST_F(Unrecorded, nothing_is_not_told) {
  EXPECT_EQ(told().text, "");
  EXPECT_FALSE(told().is_loss);
}

TEST_F(Unrecorded, each_cause_has_its_time_and_its_remedy) {
  add(0, GapCause::kDropped, kSecondNs / 2);
  add(1, GapCause::kBudget, 3 * kSecondNs);
  add(1, GapCause::kPoolFull, kSecondNs);
  add(0, GapCause::kRing, kSecondNs / 4);
  EXPECT_EQ(told().text,
            "work of GPUs may be missing in 4.8 s: 3.0 s above --budget (a larger --budget), 1.0 s "
            "without a buffer for CUPTI (a larger --cupti-memory), 500 ms dropped by CUPTI (less "
            "work under way at a time), 250 ms lost in the ring (a larger --memory); in 2 "
            "processes, most in MPI Rank 1");
  EXPECT_TRUE(told().is_loss);
}

TEST_F(Unrecorded, causes_of_one_time_are_no_longer_time) {
  add(0, GapCause::kBudget, 2 * kSecondNs);
  add(0, GapCause::kDropped, 3 * kSecondNs);
  for (UnrecordedTime& row : devices_.unrecorded) row.process_ns = 3 * kSecondNs;
  EXPECT_NE(told().text.find("work of GPUs may be missing in 3.0 s: 3.0 s dropped"),
            std::string::npos)
      << told().text;
}

TEST_F(Unrecorded, what_was_asked_for_is_no_loss) {
  add(0, GapCause::kPause, 2 * kSecondNs);
  EXPECT_EQ(told().text, "work of GPUs may be missing in 2.0 s: 2.0 s paused by the program");
  EXPECT_FALSE(told().is_loss);
}

TEST_F(Unrecorded, launches_without_a_kernel_are_told_once_for_all_devices) {
  for (uint32_t device = 0; device < 2; ++device) {
    DeviceUse use;
    use.device = device;
    use.missing_launch_count = 1234;
    devices_.uses.push_back(use);
  }
  EXPECT_EQ(told().text, "1 234 launches of a kernel have no kernel");
  EXPECT_TRUE(told().is_loss);
}

/// A window of the budget begins and ends between a launch and its kernel.
TEST_F(Unrecorded, a_few_launches_without_a_kernel_are_no_loss) {
  DeviceUse use;
  use.kernel_count = 1000;
  use.missing_launch_count = 1;
  devices_.uses.push_back(use);
  EXPECT_EQ(told().text, "1 launch of a kernel has no kernel");
  EXPECT_FALSE(told().is_loss);
}

}  // namespace
}  // namespace aon::writers::ledger
