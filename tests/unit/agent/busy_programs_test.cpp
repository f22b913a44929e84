#include "core/agent/busy_programs.h"

#include <gtest/gtest.h>

namespace aon::agent {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;
uint64_t cpu_ns[128];  ///< by pid

uint64_t cpu_time_of(pid_t pid) noexcept { return cpu_ns[pid]; }

using Numbers = std::vector<uint32_t>;

class Busy : public testing::Test {
 protected:
  Busy() {
    for (uint64_t& one : cpu_ns) one = 0;
  }
  BusyPrograms programs_{&cpu_time_of};
};

TEST_F(Busy, is_who_has_used_a_second_of_cpu_time) {
  programs_.add(7, 1);
  programs_.add(8, 2);
  cpu_ns[1] = kBusyCpuNs - 1;
  cpu_ns[2] = kBusyCpuNs;
  EXPECT_EQ(programs_.due(kSecondNs), Numbers{8});
}

TEST_F(Busy, is_looked_for_once_a_second) {
  programs_.add(7, 1);
  EXPECT_EQ(programs_.due(kSecondNs), Numbers{});
  cpu_ns[1] = kBusyCpuNs;
  EXPECT_EQ(programs_.due(2 * kSecondNs - 1), Numbers{});
  EXPECT_EQ(programs_.due(2 * kSecondNs), Numbers{7});
}

TEST_F(Busy, who_is_put_off_has_to_use_as_much_again) {
  programs_.add(7, 1);
  cpu_ns[1] = 5 * kBusyCpuNs;
  EXPECT_EQ(programs_.due(kSecondNs), Numbers{7});
  programs_.put_off(7);
  cpu_ns[1] += kBusyCpuNs - 1;
  EXPECT_EQ(programs_.due(2 * kSecondNs), Numbers{});
  cpu_ns[1] += 1;
  EXPECT_EQ(programs_.due(3 * kSecondNs), Numbers{7});
}

TEST_F(Busy, who_is_refused_stays_so_until_it_becomes_another_program_or_ends) {
  programs_.add(7, 1);
  EXPECT_EQ(programs_.refused_image(7), 0u);
  programs_.refuse(7, 33);
  programs_.put_off(7);
  EXPECT_EQ(programs_.refused_image(7), 33u);
  programs_.refuse(7, 0);
  EXPECT_EQ(programs_.refused_image(7), 0u) << "nobody knows";
  programs_.refuse(7, 33);
  programs_.forget(7);
  EXPECT_FALSE(programs_.has(7));
  programs_.refuse(7, 33);
  EXPECT_FALSE(programs_.has(7)) << "an answer that came too late";
  programs_.add(7, 2);
  EXPECT_EQ(programs_.refused_image(7), 0u) << "another process";
}

TEST_F(Busy, who_spoke_or_ended_is_looked_at_no_more) {
  programs_.add(7, 1);
  programs_.add(8, 1);  // aon-run before aon-run
  programs_.add(9, 2);
  cpu_ns[1] = cpu_ns[2] = kBusyCpuNs;
  EXPECT_EQ(programs_.forget_pid(1), (Numbers{7, 8}));
  EXPECT_EQ(programs_.due(kSecondNs), Numbers{9});
  programs_.forget(9);
  EXPECT_EQ(programs_.due(2 * kSecondNs), Numbers{});
}

TEST_F(Busy, many_are_taken_a_part_at_a_time_without_a_pause) {
  for (uint32_t i = 0; i < kMostBusyAtOnce + 2; ++i) {
    programs_.add(i, static_cast<pid_t>(i));
    cpu_ns[i] = kBusyCpuNs;
  }
  const Numbers first = programs_.due(kSecondNs);
  EXPECT_EQ(first.size(), kMostBusyAtOnce);
  for (const uint32_t number : first) programs_.forget(number);
  EXPECT_EQ(programs_.due(kSecondNs).size(), 2u);
}

}  // namespace
}  // namespace aon::agent
