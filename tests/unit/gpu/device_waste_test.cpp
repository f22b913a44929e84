#include "writers/ledger/device_waste.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

namespace aon::writers::ledger {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;

class Waste : public testing::Test {
 protected:
  Waste() {
    job_.nodes.resize(2);
    job_.nodes[0].host = "one";
    job_.nodes[1].host = "two";
    model_.job = &job_;
  }
  /// A process on node 0 with a device of this UUID.
  void add_process(uint8_t uuid) {
    const auto id = static_cast<uint32_t>(model_.groups.size());
    spool::Process& process = processes_[id];
    std::fill(std::begin(process.devices[0].definition.uuid),
              std::end(process.devices[0].definition.uuid), uuid);
    Group group{};
    group.id = id;
    group.process = &process;
    group.name = "MPI Rank " + std::to_string(id);
    model_.groups.push_back(group);
  }
  /// Of the latest process, from `begin_s` on.
  DeviceUse& add_use(uint64_t begin_s, uint64_t span_s, uint64_t busy_s) {
    DeviceUse& use = uses_.emplace_back();
    use.group = static_cast<uint32_t>(model_.groups.size()) - 1;
    use.begin_ns = begin_s * kSecondNs;
    use.times.span_ns = span_s * kSecondNs;
    use.times.busy_ns = busy_s * kSecondNs;
    use.times.idle_ns[static_cast<size_t>(IdleReason::kHostWait)] = (span_s - busy_s) * kSecondNs;
    return use;
  }
  std::string text() const { return waste_text(model_, device_waste(model_, uses_)); }

  spool::Job job_;
  Model model_;
  std::map<uint32_t, spool::Process> processes_;
  std::vector<DeviceUse> uses_;
};

TEST_F(Waste, a_host_that_is_late_is_named) {
  add_process(1);
  add_use(0, 10, 2);
  EXPECT_EQ(text(),
            "GPUs have nothing to do in 80 % of the time from their first to their last work; most "
            "in GPU 0 of MPI Rank 0 (GPU-01010101-0101-0101-0101-010101010101): the host launches "
            "too late");
}

/// Two seconds of idle time in so many gaps before work that had been launched.
TEST_F(Waste, gaps_between_short_pieces_of_work_are_no_waiting) {
  constexpr auto kStarved = static_cast<size_t>(IdleReason::kStarved);
  add_process(1);
  DeviceUse& use = add_use(0, 10, 8);
  std::swap(use.times.idle_ns[kStarved],
            use.times.idle_ns[static_cast<size_t>(IdleReason::kHostWait)]);
  const std::string told =
      "GPUs have nothing to do in 20 % of the time from their first to their last work; most in "
      "GPU 0 of MPI Rank 0 (GPU-01010101-0101-0101-0101-010101010101): ";
  use.idle[kStarved].count = 1000;
  EXPECT_EQ(text(), told + "work that was launched waits for other work");
  use.idle[kStarved].count = 2'000'000;
  EXPECT_EQ(text(), told + "its work is short beside the gap between two pieces");
}

TEST_F(Waste, a_gpu_that_always_works_is_not_called_idle) {
  add_process(1);
  add_use(0, 10, 10).times.exposed_ns = 5 * kSecondNs;
  EXPECT_EQ(text(),
            "GPUs compute nothing in 50 % of the time from their first to their last work: in 50 % "
            "communication runs without computing beside it; most in GPU 0 of MPI Rank 0 "
            "(GPU-01010101-0101-0101-0101-010101010101)");
}

TEST_F(Waste, short_kernels_do_not_hide_what_takes_the_time) {
  add_process(1);
  DeviceUse& use = add_use(0, 100, 98);
  use.times.exposed_ns = 40 * kSecondNs;
  use.times.only_copying_ns = 10 * kSecondNs;
  use.bound = Bound::kLaunch;  // its median kernel is shorter than its median launch
  EXPECT_EQ(text(),
            "GPUs compute nothing in 52 % of the time from their first to their last work: in 40 % "
            "communication runs without computing beside it, in 10 % copies run with nothing "
            "beside them, in 2 % they have nothing to do; most in GPU 0 of MPI Rank 0 "
            "(GPU-01010101-0101-0101-0101-010101010101)");
}

TEST_F(Waste, a_gpu_that_ranks_share_is_idle_when_none_uses_it) {
  for (int rank = 0; rank < 4; ++rank) {
    add_process(1);
    add_use(0, 10, 2).times.exposed_ns = 2 * kSecondNs;
  }
  const std::vector<DeviceWaste> devices = device_waste(model_, uses_);
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(uses_by_device(model_, uses_)[0].size(), 4u);
  EXPECT_EQ(devices[0].process_count, 4u);
  EXPECT_EQ(devices[0].span_ns, 10 * kSecondNs);
  EXPECT_EQ(devices[0].sum_ns(), 2 * kSecondNs);
  EXPECT_EQ(
      text(),
      "GPUs have nothing to do in 20 % of the time from their first to their last work; most "
      "in GPU 0 of MPI Rank 0 (GPU-01010101-0101-0101-0101-010101010101), which 4 processes use");
  for (DeviceUse& use : uses_) use.times.busy_ns = 9 * kSecondNs;
  EXPECT_EQ(text(), "");
}

TEST_F(Waste, one_process_after_the_other_is_not_sharing) {
  add_process(1);
  add_use(0, 10, 5);
  add_process(1);
  add_use(60, 10, 5);
  const std::vector<DeviceWaste> devices = device_waste(model_, uses_);
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(devices[0].span_ns, 20 * kSecondNs);
  EXPECT_EQ(devices[0].idle_ns, 10 * kSecondNs);
  EXPECT_EQ(devices[0].late_ns, 10 * kSecondNs);
}

TEST_F(Waste, gpus_without_a_uuid_and_those_of_other_nodes_are_others) {
  for (const uint8_t uuid : {0, 0, 7, 7}) {
    add_process(uuid);
    add_use(0, 10, 5);
  }
  model_.groups.back().node = 1;
  EXPECT_EQ(device_waste(model_, uses_).size(), 4u);
}

TEST_F(Waste, a_process_with_a_file_of_its_own_shares_the_gpu_of_its_machine) {
  for (int rank = 0; rank < 2; ++rank) {
    add_process(7);
    add_use(0, 10, 5);
  }
  model_.groups.back().node = 1;
  job_.nodes[1].processes[0].start.fallback = 1;
  EXPECT_EQ(device_waste(model_, uses_).size(), 2u);
  job_.nodes[1].host = "one";
  EXPECT_EQ(device_waste(model_, uses_).size(), 1u);
}

TEST_F(Waste, containers_of_one_machine_with_an_agent_each_share_its_gpus) {
  for (int rank = 0; rank < 2; ++rank) {
    add_process(7);
    add_use(0, 10, 5);
  }
  model_.groups.back().node = 1;
  job_.nodes[1].host = "one";
  const std::vector<DeviceWaste> devices = device_waste(model_, uses_);
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(devices[0].process_count, 2u);
}

TEST_F(Waste, time_without_records_is_none_of_it) {
  add_process(1);
  DeviceUse& use = add_use(0, 10, 5);
  use.times.idle_ns[static_cast<size_t>(IdleReason::kHostWait)] = 0;
  use.times.idle_ns[static_cast<size_t>(IdleReason::kUnrecorded)] = 5 * kSecondNs;
  EXPECT_EQ(text(), "");
  use.times.busy_ns = 3 * kSecondNs;
  EXPECT_EQ(text(),
            "GPUs have nothing to do in 40 % of what is recorded from their first to their last "
            "work; most in GPU 0 of MPI Rank 0 (GPU-01010101-0101-0101-0101-010101010101)");
  use.bound = Bound::kUnrecorded;
  EXPECT_EQ(text(), "");
}

}  // namespace
}  // namespace aon::writers::ledger
