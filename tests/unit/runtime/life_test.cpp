// Life of a process: whatever a program does, its events are there, in order, whole, and those that
// are not are counted. The events are made by life_child with the real libaon.so.
#include <aon/definition.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <set>

#include "tests/unit/runtime/life.h"
#include "tests/unit/temporary_folder.h"

namespace aon::test {
namespace {

TEST(Life, one_event_arrives_in_the_main_threads_slot) {
  WholeRun run("exit");
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.taken.hello.pid, run.child->pid());
  const auto records = run.taken.streams[{kMainThreadSlot, 0}].records();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].head.kind, RecordKind::kThread);
  EXPECT_EQ(records[0].head.id, static_cast<uint32_t>(run.child->pid()));
  EXPECT_EQ(records[0].head.a32, 1u);
  EXPECT_TRUE(is_whole(records[1]));
}

TEST(Life, a_program_without_events_never_connects) {
  FakeAgent agent;
  Child child({kLifeChild, "quiet"}, environment(agent));
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(agent.process_count(), 0u);
}

TEST(Life, events_before_main_and_after_it_are_recorded) {
  WholeRun run("exit", {}, {{"LIFE_EARLY", "1"}, {"LIFE_LATE", "1"}});
  EXPECT_EQ(run.code, 0);
  expect_complete(numbers(run.taken)[0], 3);
}

class Deaths : public testing::TestWithParam<std::pair<const char*, int>> {};
TEST_P(Deaths, keep_the_last_event_and_the_exit_code) {
  WholeRun run(GetParam().first);
  EXPECT_EQ(run.code, GetParam().second);
  expect_complete(numbers(run.taken)[0], 1);
}
INSTANTIATE_TEST_SUITE_P(Life, Deaths,
                         testing::Values(std::pair("_exit", 3), std::pair("abort", 128 + SIGABRT),
                                         std::pair("segv", 128 + SIGSEGV)),
                         [](const auto& one) {
                           return std::string(one.param.first[0] == '_' ? "exit_at_once"
                                                                        : one.param.first);
                         });

class Signals : public testing::TestWithParam<const char*> {};
TEST_P(Signals, in_the_middle_of_an_event_lose_nothing) {
  WholeRun run(GetParam(), roomy());
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.taken.refused(), 0u);
  auto sequences = numbers(run.taken);
  expect_complete(sequences[0], sequences[0].size());
  EXPECT_GT(run.child->number_behind("handler"), 100);
  std::set<uint64_t> handled(sequences[3].begin(), sequences[3].end());
  EXPECT_EQ(handled.size(), static_cast<size_t>(run.child->number_behind("handler")));
}
INSTANTIATE_TEST_SUITE_P(Life, Signals, testing::Values("signals", "signals_on_stack"),
                         [](const auto& one) { return std::string(one.param); });

class Jumps : public testing::TestWithParam<const char*> {};
TEST_P(Jumps, out_of_an_event_neither_tear_a_record_nor_silence_the_thread) {
  WholeRun run(GetParam(), roomy());
  EXPECT_EQ(run.code, 0);
  unsigned long long jumps = 0, started = 0, returned = 0, refused = 0;
  unsigned depth = 9;
  sscanf(run.child->output().c_str(), "jumps %llu started %llu returned %llu refused %llu depth %u",
         &jumps, &started, &returned, &refused, &depth);
  EXPECT_EQ(refused, 0u);
  const std::vector<uint64_t> sequence = numbers(run.taken)[0];
  EXPECT_GE(sequence.size(), returned);  // every event that returned, and some that were left
  EXPECT_LE(sequence.size(), started);
  for (size_t i = 1; i < sequence.size(); ++i) ASSERT_LT(sequence[i - 1], sequence[i]);
}
INSTANTIATE_TEST_SUITE_P(Life, Jumps, testing::Values("jumps", "jumps_on_stack"),
                         [](const auto& one) { return std::string(one.param); });

TEST(Life, a_call_goes_on_in_the_stream_of_an_event_that_was_left_by_longjmp) {
  WholeRun run("jump_out_of_event");
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.child->number_behind("depth"), 0);
  uint32_t calls = 0;
  for (const Record& record : run.taken.streams[{kMainThreadSlot, 0}].records()) {
    calls += record.head.kind == RecordKind::kSpan && record.head.id == 72 ? 1 : 0;
  }
  EXPECT_EQ(calls, 1u);
}

TEST(Life, events_of_other_thread_destructors_are_recorded) {
  WholeRun run("thread_key");
  EXPECT_EQ(run.code, 0);
  expect_complete(numbers(run.taken)[1], 2);
}

TEST(Life, pthread_exit_hands_the_slot_on) {
  WholeRun run("pthread_exit");
  EXPECT_EQ(run.code, 0);
  const auto records = run.taken.streams[{kMainThreadSlot + 1, 0}].records();
  ASSERT_GE(records.size(), 3u);
  EXPECT_EQ(records.back().head.kind, RecordKind::kThread);
  EXPECT_EQ(records.back().head.a32, 0u);
}

TEST(Life, live_threads_have_a_stream_each) {
  WholeRun run("live_threads", roomy());
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.taken.slots_used, kMainThreadSlot + 1 + 256);
  EXPECT_EQ(run.taken.refused(), 0u);
  auto sequences = numbers(run.taken);
  for (uint32_t thread = 0; thread < 256; ++thread) expect_complete(sequences[thread], 1000);
}

TEST(Life, first_events_wait_for_the_attach_of_another_thread) {
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(WholeRun("first_events_at_once", roomy()).taken.refused(), 0u);
}

TEST(Life, regions_that_meet_the_attach_are_counted_with_their_ends) {
  // The other thread waits at most twice as long.
  WholeRun run("regions_that_meet_the_attach", roomy(), {{"AON_ATTACH_MS", "1000"}});
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.taken.refused(), 2u * (3 + 5));
}

TEST(Life, regions_of_threads_above_the_slots_are_counted_with_their_ends) {
  FakeAgentOptions options = roomy();
  options.slot_count = 18;
  WholeRun run("regions_without_a_slot", options);
  EXPECT_EQ(run.code, 0);
  EXPECT_GE(run.taken.refused(), 2u * (40 - 17));
}

TEST(Life, threads_that_begin_with_the_first_lack_nothing_that_nobody_asked_for) {
  WholeRun run("threads_that_begin_with_the_first");
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.taken.counted(), 3u);
  EXPECT_THAT(provider_texts(run.taken), testing::IsEmpty());
}

TEST(Life, threads_above_the_slots_are_refused_counted_and_told_of) {
  FakeAgentOptions options;
  options.slot_count = 18;  // definitions, main, 16 others
  WholeRun run("too_many_threads", options);
  EXPECT_EQ(run.code, 0);
  EXPECT_GE(run.taken.refused_no_slot, 40u - 17);
  const std::vector<std::string> told = provider_texts(run.taken);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].rfind(std::string("threads\0more than 511 threads", 29), 0), 0u) << told[0];
}

TEST(Life, sequential_threads_share_slots_and_lose_nothing) {
  WholeRun run("sequential_threads", roomy());
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.taken.refused(), 0u);
  EXPECT_EQ(run.taken.counted(), 200000u);
  EXPECT_LE(run.taken.slots_used, kMainThreadSlot + 3);
  auto sequences = numbers(run.taken);
  for (uint32_t thread = 0; thread < 20000; ++thread) expect_complete(sequences[thread], 10);
}

TEST(Life, a_thread_that_ends_inside_a_call_leaves_it_as_open) {
  WholeRun run("exit_in_call");
  const auto records = run.taken.streams[{kMainThreadSlot + 1, 0}].records();
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[1].head.kind, RecordKind::kSpan);
  EXPECT_EQ(records[1].head.id, 77u);
  EXPECT_TRUE(records[1].head.flags & kOpenAtEnd);
  EXPECT_TRUE(run.taken.open_calls.empty());
}

TEST(Life, a_process_killed_inside_calls_shows_them_as_open) {
  WholeRun run("killed_in_call");
  EXPECT_EQ(run.code, 128 + SIGKILL);
  const auto& calls = run.taken.open_calls[kMainThreadSlot];
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].head.id, 71u);
  EXPECT_EQ(calls[0].head.a32, 4u);
  EXPECT_EQ(calls[0].words[0], 5u);
  EXPECT_EQ(calls[0].head.a64, 6u);
  EXPECT_EQ(calls[1].head.id, 73u);
  EXPECT_TRUE(calls[1].head.flags & kInsideSpan);
  EXPECT_EQ(end_ticks(calls[1]), UINT64_MAX);
  const auto records = run.taken.streams[{kMainThreadSlot, 0}].records();
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[1].head.id, 70u);
  EXPECT_FALSE(records[1].head.flags & kInsideSpan);
  EXPECT_EQ(records[2].head.id, 72u);
  EXPECT_TRUE(records[2].head.flags & kInsideSpan);
}

TEST(Life, a_process_killed_in_the_call_that_asked_the_agent_shows_it_as_open) {
  FakeAgentOptions options;
  options.welcomes = false;
  FakeAgent agent(options);
  Child child({kLifeChild, "slow_call_for_ever"}, environment(agent));
  EXPECT_EQ(child.read_line(), "attached 0");
  while (agent.process_count() == 0) usleep(1000);
  child.kill(SIGKILL);
  child.wait();
  TakenProcess taken = agent.finish(child.pid());
  EXPECT_STREQ(taken.hello.begun.name, "slow_call");
  ASSERT_EQ(taken.open_calls[kMainThreadSlot].size(), 1u);
  EXPECT_EQ(taken.open_calls[kMainThreadSlot][0].head.id, 74u);
}

TEST(Life, the_call_that_asked_the_agent_is_the_processs_own_once_it_is_attached) {
  WholeRun run("slow_call");
  EXPECT_EQ(run.code, 0);
  EXPECT_STREQ(run.taken.hello.begun.name, "slow_call");
  EXPECT_TRUE(run.taken.open_calls.empty());
  EXPECT_EQ(run.taken.slots_used, kMainThreadSlot + 1);
  const TakenStream& main = run.taken.streams[{kMainThreadSlot, 0}];
  EXPECT_EQ(main.records().size(), 2u);
}

/// The calls 72 and 73 that follow those that were left are calls of their own.
void expect_left(const char* how, const std::vector<uint32_t>& left) {
  WholeRun run(how);
  const auto& calls = run.taken.open_calls[kMainThreadSlot];
  ASSERT_EQ(calls.size(), 1u) << how;
  EXPECT_EQ(calls[0].head.id, 73u);
  const auto records = run.taken.streams[{kMainThreadSlot, 0}].records();
  ASSERT_EQ(records.size(), left.size() + 2) << how;
  for (size_t i = 0; i < left.size(); ++i) {
    EXPECT_EQ(records[i + 1].head.id, left[i]) << how;
    EXPECT_EQ(records[i + 1].head.duration_ticks, 0u);
    EXPECT_TRUE(records[i + 1].head.flags & kFailed);
  }
  EXPECT_EQ(records.back().head.id, 72u) << how;
  EXPECT_FALSE(records.back().head.flags & (kInsideSpan | kFailed));
}

TEST(Life, calls_left_by_longjmp_do_not_stay_open_and_are_recorded_as_failed) {
  expect_left("jump_out_of_call", {71, 70});
  expect_left("jump_out_before_more_arguments", {70});
}

TEST(Life, a_call_left_by_longjmp_hides_none_from_deeper_in_the_stack) {
  expect_left("jump_out_of_own_call", {70});
}

TEST(Life, a_call_that_goes_on_on_another_stack_is_not_recorded_as_left) {
  expect_left("call_from_a_higher_stack", {});
}

TEST(Life, a_full_pool_refuses_counts_and_says_so_when_there_is_room_again) {
  FakeAgentOptions options;
  options.chunk_count = 64;
  options.offered = 16;
  options.drains = false;
  FakeAgent agent(options);
  Child child({kLifeChild, "overflow"}, environment(agent));
  EXPECT_EQ(child.read_line(), "full");
  agent.offer(child.pid(), 16);
  child.write("go on\n");
  EXPECT_EQ(child.wait(), 0);
  const TakenProcess taken = agent.finish(child.pid());
  EXPECT_EQ(child.number_behind("emitted"), 4010);
  EXPECT_EQ(taken.counted() + taken.refused(), 4010u);
  const TakenStream& stream = taken.streams.at({kMainThreadSlot, 0});
  uint64_t lost = 0;
  for (const Record& record : stream.records()) {
    if (record.head.kind == RecordKind::kLost) lost += record.head.a64;
  }
  EXPECT_GT(lost, 1000u);
  EXPECT_EQ(lost, stream.refused);
}

TEST(Life, a_loss_tells_of_the_regions_that_ended_and_began_in_it) {
  FakeAgentOptions options;
  options.chunk_count = 64;
  options.offered = 16;
  options.drains = false;
  FakeAgent agent(options);
  Child child({kLifeChild, "overflow_with_regions"}, environment(agent));
  EXPECT_EQ(child.read_line(), "full");
  agent.offer(child.pid(), 16);
  child.write("go on\n");
  EXPECT_EQ(child.wait(), 0);
  const TakenProcess taken = agent.finish(child.pid());
  std::vector<uint32_t> told;
  for (const Record& record : taken.streams.at({kMainThreadSlot, 0}).records()) {
    if (record.head.kind == RecordKind::kLost) told.push_back(record.head.a32);
  }
  EXPECT_EQ(told, std::vector<uint32_t>{pack_lost_regions(1, 1)});
}

/// Runs `definitions` in a small ring and says `word` to it when that is full and has room again.
TakenProcess run_definitions(const char* word) {
  FakeAgentOptions options;
  options.chunk_count = 64;
  options.offered = 16;
  options.drains = false;
  FakeAgent agent(options);
  Child child({kLifeChild, "definitions"}, environment(agent));
  std::string line;
  do {
    line = child.read_line();
  } while (!line.empty() && line != "full");
  EXPECT_EQ(line, "full");
  agent.offer(child.pid(), 32);
  child.write(word);
  EXPECT_EQ(child.wait(), 0);
  return agent.finish(child.pid());
}

TEST(Life, definitions_that_met_a_full_pool_come_with_the_next_one) {
  TakenProcess taken = run_definitions("more\n");
  uint32_t next = 0;
  for (const Definition& one : definitions(taken)) {
    if (one.type != 7) continue;
    uint32_t number = 0;
    std::memcpy(&number, one.bytes.data(), sizeof number);
    EXPECT_EQ(number, next++);
    EXPECT_EQ(one.bytes.size(), 505u);
  }
  EXPECT_EQ(next, 101u);
  EXPECT_EQ((taken.streams[{kDefinitionSlot, 0}].refused), 0u);
}

TEST(Life, definitions_without_a_next_one_are_counted) {
  TakenProcess taken = run_definitions("end\n");
  uint64_t written = 0;
  for (const Definition& one : definitions(taken)) {
    if (one.type == 7 && one.bytes.size() == 505) ++written;
  }
  EXPECT_LT(written, 100u);
  EXPECT_EQ((written + taken.streams[{kDefinitionSlot, 0}].refused), 100u);
}

TEST(Life, sites_are_defined_counted_sampled_and_paused) {
  WholeRun run("sites");
  EXPECT_EQ(run.code, 0);
  std::map<uint32_t, uint32_t> spans;
  uint64_t weight = 0;
  for (const Record& record : run.taken.streams[{kMainThreadSlot, 0}].records()) {
    if (record.head.kind != RecordKind::kSpan) continue;
    spans[record.head.id] += 1;
    if (record.head.flags & kSampledCall) weight += record.head.a64;
  }
  EXPECT_EQ(spans[5], 101u);
  EXPECT_NEAR(spans[6], 100, 2);
  EXPECT_EQ(weight, spans[6] * 10u);
  EXPECT_EQ(run.taken.counters[kMainThreadSlot][6], 1000u);
  EXPECT_EQ(run.taken.counters[kMainThreadSlot][5], 0u);

  const std::vector<Definition> defined = definitions(run.taken);
  ASSERT_EQ(defined.size(), 5u);
  RegionDefinition region = {};
  std::memcpy(&region, defined[0].bytes.data(), sizeof region);
  EXPECT_EQ(region.id, 5u);
  EXPECT_EQ(defined[0].bytes.substr(sizeof region), std::string("test_site\0", 10));
  EXPECT_EQ(defined[4].type, 7u);
  EXPECT_EQ(defined[4].bytes.size(), kMaxDefinitionBytes);
  EXPECT_EQ(defined[4].bytes.back(), '\0');
}

TEST(Life, an_agent_that_never_answers_costs_little_and_nothing_breaks) {
  FakeAgentOptions options;
  options.answers = false;
  FakeAgent agent(options);
  Child child({kLifeChild, "exit"}, environment(agent, {{"AON_ATTACH_MS", "20"}}));
  EXPECT_EQ(child.wait(), 0);
}

TEST(Life, without_an_agent_the_events_go_to_a_file_that_can_be_read) {
  const TemporaryFolder folder;
  const Environment variables = {{"AON_OUTPUT", folder.path()},
                                 {"AON_SOCKET", "/nonexistent"},
                                 {"AON_MEMORY", "2M"},
                                 {"OMPI_COMM_WORLD_RANK", "3"},
                                 {"OMPI_COMM_WORLD_SIZE", "4"}};
  Child child({kLifeChild, "exit"}, variables);
  EXPECT_EQ(child.wait(), 0);
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path())) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(std::filesystem::status(files[0]).permissions(), std::filesystem::perms(0600));
  auto image = ring::read_ring_file(files[0]);
  ASSERT_TRUE(image) << image.error().message;
  EXPECT_EQ(image->identity.pid, child.pid());
  EXPECT_EQ(image->identity.rank, 3);
  EXPECT_EQ(image->identity.world_size, 4u);
  EXPECT_GE(image->clock_last.ticks, image->clock_first.ticks);
  ring::RingReader reader(image->base(), image->geometry, false);
  struct Count : ring::Sink {
    bool take(const ring::Piece& piece) override {
      counted += piece.counted;
      return true;
    }
    void moved(uint32_t, uint32_t, const ring::StreamPosition&) override {}
    uint64_t counted = 0;
  } count;
  reader.drain(count);
  EXPECT_EQ(count.counted, 1u);
}

TEST(Life, without_an_agent_each_program_of_a_process_has_a_file) {
  const TemporaryFolder folder;
  const Environment variables = {
      {"AON_OUTPUT", folder.path()}, {"AON_SOCKET", "/nonexistent"}, {"AON_MEMORY", "2M"}};
  Child child({kLifeChild, "exec"}, variables);
  EXPECT_EQ(child.wait(), 0);
  size_t count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path())) {
    if (!entry.is_regular_file()) continue;
    ++count;
    auto image = ring::read_ring_file(entry.path());
    ASSERT_TRUE(image) << image.error().message;
    EXPECT_EQ(image->identity.pid, child.pid());
  }
  EXPECT_EQ(count, 2u);
}

}  // namespace
}  // namespace aon::test
