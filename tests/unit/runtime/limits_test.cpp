// First events where the program has left the runtime little: it is not hurt, and what cannot be
// recorded is said.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/unit/runtime/life.h"
#include "tests/unit/temporary_folder.h"

namespace aon::test {
namespace {

namespace fs = std::filesystem;

TEST(Limits, a_thread_is_not_cancelled_in_its_first_event) {
  WholeRun run("cancelled_thread", {}, {{"AON_ATTACH_MS", "1000"}});
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.child->number_behind("cancelled"), 0);
  EXPECT_EQ(run.taken.counted(), 2u);
}

TEST(Limits, a_lock_function_of_the_programs_may_annotate) {
  WholeRun run("annotated_lock");
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.taken.counted(), 2u);
}

TEST(Limits, threads_that_pause_at_once_leave_no_half_of_it) {
  WholeRun run("pauses_at_once");
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.child->number_behind("halves"), 0);
}

TEST(Limits, a_place_beyond_a_chunk_is_no_room) {
  WholeRun run("beyond_a_chunk");
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.child->number_behind("same chunk"), 0);
}

class WithFewDescriptors : public testing::TestWithParam<const char*> {};
TEST_P(WithFewDescriptors, the_low_ones_are_the_programs) {
  WholeRun run(GetParam());
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.child->number_behind("moved"), 0);
}
INSTANTIATE_TEST_SUITE_P(Limits, WithFewDescriptors,
                         testing::Values("with_1000_descriptors", "with_high_descriptors_taken"),
                         [](const auto& one) { return std::string(one.param); });

/// Which the program closed in the call that asked the agent, as one does that closes all.
TEST(Limits, a_descriptor_that_was_the_agents_is_the_programs) {
  FakeAgentOptions options;
  options.welcomes = false;
  FakeAgent agent(options);
  Child child({kLifeChild, "with_the_agents_descriptor_taken"},
              environment(agent, {{"AON_ATTACH_MS", "1000"}}));
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(child.number_behind("replaced"), 1);
  EXPECT_EQ(child.number_behind("left"), 4);
}

class WithoutRing : public testing::TestWithParam<const char*> {};
TEST_P(WithoutRing, a_process_is_counted_as_not_recorded) {
  const TemporaryOutput output;
  FakeAgent agent;
  Child child({kLifeChild, GetParam()}, environment(agent, {{"AON_OUTPUT", output.path()}}));
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(output.unrecorded_count(), 1u);
}
INSTANTIATE_TEST_SUITE_P(Limits, WithoutRing,
                         testing::Values("without_keys", "with_one_descriptor",
                                         "without_descriptors", "without_memory", "old_kernel"),
                         [](const auto& one) { return std::string(one.param); });

/// Its filter has a handler of its own for SIGSYS.
TEST(Limits, a_call_that_a_filter_traps_kills_nothing) {
  const TemporaryOutput output;
  FakeAgent agent;
  Child child({kLifeChild, "trapped_calls"},
              environment(agent, {{"AON_OUTPUT", output.path()}, {"AON_MEMORY", "2M"}}));
  EXPECT_EQ(child.wait(), 0);
  EXPECT_GT(child.number_behind("trapped"), 0);
}

TEST(Limits, nothing_is_noted_of_a_program_that_is_not_to_be_recorded) {
  for (const char* name : {"first_in_vfork", "without_memory", "without_descriptors"}) {
    const TemporaryOutput output;
    FakeAgent agent;
    const Environment variables = {{"AON_OUTPUT", output.path()}, {"AON_DISABLE", "1"}};
    Child child({kLifeChild, name}, environment(agent, variables));
    EXPECT_EQ(child.wait(), 0) << name;
    EXPECT_EQ(output.unrecorded_count(), 0u) << name;
  }
}

class OwnFile : public testing::TestWithParam<const char*> {};
TEST_P(OwnFile, can_be_read_whatever_the_umask_is) {
  const TemporaryOutput output;
  const Environment variables = {
      {"AON_OUTPUT", output.path()}, {"AON_SOCKET", "/nonexistent"}, {"AON_MEMORY", "2M"}};
  Child child({kLifeChild, GetParam()}, variables);
  EXPECT_EQ(child.wait(), 0);
  size_t count = 0;
  for (const auto& entry : fs::directory_iterator(output.node())) {
    EXPECT_EQ(entry.status().permissions(), fs::perms(0600));
    ++count;
  }
  EXPECT_EQ(count, 1u);
}
INSTANTIATE_TEST_SUITE_P(Limits, OwnFile, testing::Values("umask", "umask_without_keys"),
                         [](const auto& one) { return std::string(one.param); });

TEST(Limits, a_small_stack_is_enough_for_a_file_of_its_own) {
  const TemporaryFolder folder;
  const Environment variables = {{"AON_OUTPUT", folder.path()},
                                 {"AON_SOCKET", "/nonexistent"},
                                 {"AON_DOOR", "/nonexistent"},
                                 {"PMI_RANK", "0"},
                                 {"AON_MEMORY", "2M"}};
  Child child({kLifeChild, "small_signal_stack"}, variables);
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(child.number_behind("emitted"), 1);
}

}  // namespace
}  // namespace aon::test
