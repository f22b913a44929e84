#include "plugins/perf/proc_counter.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include "tests/unit/perf/fake_kernel.h"

namespace aon::perf {
namespace {

using test::fake;
using test::fake_kernel;

TEST(ProcCounter, counts_from_when_it_was_made) {
  fake = {};
  fake.tasks[7] = {7, 8};
  fake.task_counts = {{7, {100, 10, true}}, {8, {50, 5, true}}};
  ProcCounter counter(fake_kernel(), 7);
  EXPECT_EQ(counter.read().context_switches, 0u);
  fake.task_counts[7] = {103, 11, true};
  EXPECT_EQ(counter.read().context_switches, 3u);
  EXPECT_EQ(counter.read().migrations, 1u);
}

TEST(ProcCounter, never_decreases_when_threads_come_and_go) {
  fake = {};
  fake.tasks[7] = {7};
  fake.task_counts = {{7, {100, 0, true}}};
  ProcCounter counter(fake_kernel(), 7);
  fake.tasks[7] = {7, 9};
  fake.task_counts[9] = {40, 0, true};
  EXPECT_EQ(counter.read().context_switches, 40u);
  fake.task_counts[9] = {2, 0, true};  // another thread with the same id
  EXPECT_EQ(counter.read().context_switches, 40u);
  fake.tasks[7] = {7};
  EXPECT_EQ(counter.read().context_switches, 40u);
  fake.tasks[7].clear();  // the process has ended
  EXPECT_EQ(counter.read().context_switches, 40u);
}

TEST(ProcCounter, agrees_with_the_real_proc) {
  const Kernel& kernel = real_kernel();
  TaskCounts before{};
  ASSERT_TRUE(kernel.read_task(getpid(), gettid(), &before));
  for (int i = 0; i < 20; ++i) usleep(1000);
  TaskCounts after{};
  ASSERT_TRUE(kernel.read_task(getpid(), gettid(), &after));
  EXPECT_GE(after.context_switches, before.context_switches + 20);
  TaskCounts nobody{};
  EXPECT_FALSE(kernel.read_task(999999999, 999999999, &nobody));
}

}  // namespace
}  // namespace aon::perf
