#include "core/agent/polled_pids.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace aon::agent {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;

TEST(PolledPids, end_before_their_parent_asks_for_them) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  PolledPids pids;
  ASSERT_TRUE(pids.add(3, child));
  EXPECT_TRUE(pids.take_ended(kSecondNs).empty());
  kill(child, SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(pids.take_ended(2 * kSecondNs), std::vector<uint32_t>{3});
  EXPECT_TRUE(pids.empty());
  EXPECT_FALSE(pids.add(4, child)) << "a zombie";
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(pids.add(5, child));
}

}  // namespace
}  // namespace aon::agent
