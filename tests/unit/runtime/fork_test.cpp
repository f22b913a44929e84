// Children of a process, by fork, clone and vfork, and its next program: whose their events are.
#include <gtest/gtest.h>
#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/unit/runtime/life.h"

namespace aon::test {
namespace {

/// Without it a raw clone() of a process without events may be a child in its parent's memory.
bool may_compare_processes() { return syscall(SYS_kcmp, getpid(), getpid(), KCMP_VM, 0, 0) == 0; }

class Forks : public testing::TestWithParam<const char*> {};
TEST_P(Forks, make_a_new_process_and_leave_the_parents_stream_alone) {
  for (int attempt = 0; attempt < 20; ++attempt) {
    WholeRun run(GetParam());
    EXPECT_EQ(run.code, 0);
    expect_complete(numbers(run.taken)[0], 2);
    if (run.child->output().find(" 11\n") != std::string::npos) continue;  // a late answer
    const auto child_pid = static_cast<int32_t>(run.child->number_behind(GetParam()));
    EXPECT_EQ(run.agent.finish(child_pid).counted(), 1u);  // it attached for itself
    return;
  }
  FAIL() << "the child's event was refused each time";
}
INSTANTIATE_TEST_SUITE_P(Life, Forks, testing::Values("fork", "clone"),
                         [](const auto& one) { return std::string(one.param); });

TEST(Life, a_child_that_leaves_its_parents_regions_loses_nothing) {
  WholeRun run("fork_in_regions");
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.taken.counted(), 4u);
  const auto child = static_cast<int32_t>(run.child->number_behind("fork"));
  const TakenProcess taken = run.agent.finish(child);
  EXPECT_EQ(taken.counted(), 1u);
  EXPECT_EQ(taken.refused(), 0u);
}

TEST(Life, a_child_does_not_take_its_parents_pause_for_its_own) {
  WholeRun run("fork_in_pause");
  EXPECT_EQ(run.code, 0);
  EXPECT_GT(run.child->number_behind("fork"), 0);
  EXPECT_EQ(run.child->output().find(" 12\n"), std::string::npos) << run.child->output();
}

TEST(Life, children_of_children_have_one_connection_each) {
  WholeRun run("generations");
  EXPECT_EQ(run.code, 0);
  EXPECT_GT(run.child->number_behind("first child"), 0);
  EXPECT_EQ(run.child->number_behind("last child"), run.child->number_behind("first child"));
}

TEST(Life, a_child_of_a_process_without_a_ring_is_counted_too) {
  const TemporaryOutput output;
  FakeAgent agent;
  Child child({kLifeChild, "fork_without_ring"},
              environment(agent, {{"AON_OUTPUT", output.path()}}));
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(output.unrecorded_count(), 2u);
}

TEST(Life, a_raw_clone_of_a_process_that_records_does_so_where_kcmp_is_forbidden) {
  WholeRun run("clone_without_kcmp");
  EXPECT_EQ(run.code, 0);
  expect_complete(numbers(run.taken)[0], 2);
  const auto child = static_cast<int32_t>(run.child->number_behind("clone"));
  EXPECT_EQ(run.agent.finish(child).counted(), 1u);
}

TEST(Life, a_raw_clone_that_may_be_a_guest_is_counted_as_not_recorded) {
  const TemporaryOutput output;
  WholeRun run("first_in_clone_without_kcmp", {}, {{"AON_OUTPUT", output.path()}});
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.taken.counted(), 1u);
  EXPECT_EQ(output.unrecorded_count(), 1u);
}

TEST(Life, a_vforked_child_writes_for_its_parent_which_goes_on) {
  WholeRun run("vfork");
  EXPECT_EQ(run.code, 0);
  expect_complete(numbers(run.taken)[0], 3);
}

class Guests : public testing::TestWithParam<const char*> {};
TEST_P(Guests, do_not_attach_and_their_parent_records_what_it_does) {
  const TemporaryOutput output;
  WholeRun run(GetParam(), {}, {{"AON_OUTPUT", output.path()}});
  EXPECT_EQ(run.code, 0);
  if (run.child->number_behind("clone") < 0 && run.child->number_behind("vfork") < 0)
    GTEST_SKIP() << "no such child may be made here";
  EXPECT_EQ(run.agent.process_count(), 0u);  // the parent's is taken
  EXPECT_GE(run.taken.counted(), 1000u);
  EXPECT_EQ(run.taken.refused(), 1u);  // the child's
  EXPECT_EQ(output.unrecorded_count(), 1u);
  const std::vector<std::string> told = provider_texts(run.taken);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].rfind(std::string("children\0", 9), 0), 0u) << told[0];
}
INSTANTIATE_TEST_SUITE_P(Life, Guests,
                         testing::Values("first_in_vfork", "first_in_shared_memory",
                                         "first_in_pid_namespace", "first_of_a_thread_in_vfork"),
                         [](const auto& one) { return std::string(one.param); });

TEST(Life, a_raw_clone_makes_a_process_of_its_own_at_its_first_event) {
  if (!may_compare_processes()) GTEST_SKIP() << "kcmp(2) is forbidden here";
  WholeRun run("first_in_clone");
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.taken.counted(), 1u);
  const auto child = static_cast<int32_t>(run.child->number_behind("clone"));
  EXPECT_EQ(run.agent.finish(child).counted(), 1u);
}

TEST(Life, exec_begins_a_new_process_with_the_same_pid) {
  WholeRun run("exec");  // what it leaves first is the second program
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.taken.counted(), 1u);
  EXPECT_EQ(run.agent.finish(run.child->pid()).hello.pid, run.child->pid());
}

}  // namespace
}  // namespace aon::test
