#include "plugins/gpu_counters/child.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace aon::gpu_counters {
namespace {

constexpr const char* kShell = "/bin/sh";

/// Reads until it has ended.
std::string all_of(Child* child) {
  std::string bytes;
  while (child->read(&bytes)) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  return bytes;
}

TEST(GpuCountersChild, says_what_it_says_and_how_it_ended) {
  Child child;
  ASSERT_EQ(child.start({kShell, "-c", "echo hello; exit 3"}), 0);
  EXPECT_EQ(all_of(&child), "hello\n");
  EXPECT_EQ(child.ending(), "exit code 3");
}

TEST(GpuCountersChild, a_signal_is_told) {
  Child child;
  ASSERT_EQ(child.start({kShell, "-c", "kill -11 $$"}), 0);
  all_of(&child);
  EXPECT_EQ(child.ending(), "signal 11");
}

TEST(GpuCountersChild, that_cannot_be_started_is_an_error) {
  Child child;
  EXPECT_EQ(child.start({"/none/program"}), ENOENT);
  std::string bytes;
  EXPECT_FALSE(child.read(&bytes));
}

TEST(GpuCountersChild, ends_when_its_input_does) {
  Child child;
  ASSERT_EQ(child.start({"/bin/cat"}), 0);
  child.stop();
  EXPECT_EQ(child.ending(), "exit code 0");
}

TEST(GpuCountersChild, that_does_not_end_is_killed) {
  Child child;
  ASSERT_EQ(child.start({kShell, "-c", "trap '' TERM; while :; do sleep 1; done"}), 0);
  const pid_t pid = child.pid();
  child.stop();
  EXPECT_EQ(child.ending(), "signal 9");
  EXPECT_EQ(kill(pid, 0), -1);
}

TEST(GpuCountersChild, that_writes_without_end_is_stopped_all_the_same) {
  Child child;
  ASSERT_EQ(child.start({kShell, "-c", "yes & cat >/dev/null; kill $!"}), 0);
  child.stop();
  EXPECT_NE(child.ending(), "");
}

TEST(GpuCountersChild, gets_nothing_that_would_profile_it) {
  setenv("LD_PRELOAD", "", 1);
  setenv("CUDA_INJECTION64_PATH", "/some/library.so", 1);
  setenv("CUDA_VISIBLE_DEVICES", "1", 1);
  setenv("AON_TEST_VARIABLE", "kept", 1);
  Child child;
  ASSERT_EQ(
      child.start({kShell, "-c",
                   "echo \"$CUDA_INJECTION64_PATH|$CUDA_VISIBLE_DEVICES|$AON_TEST_VARIABLE\""}),
      0);
  EXPECT_EQ(all_of(&child), "||kept\n");
}

}  // namespace
}  // namespace aon::gpu_counters
