#include "core/agent/state.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <memory>

namespace aon::agent {
namespace {

struct Value {
  uint64_t a;
  uint64_t b;
};

/// As in the memfd: all zero at first.
template <class T>
std::unique_ptr<T, void (*)(T*)> zeroed() {
  void* memory = std::calloc(1, sizeof(T));
  return {static_cast<T*>(memory), [](T* p) { std::free(p); }};
}

TEST(Versioned, shows_a_value_only_after_its_commit) {
  auto cell = zeroed<Versioned<Value>>();
  EXPECT_EQ(cell->at(0).a, 0u);
  cell->set(0, {1, 2});
  EXPECT_EQ(cell->at(0).a, 0u);
  EXPECT_EQ(cell->at(1).a, 1u);
  cell->set(1, {3, 4});
  EXPECT_EQ(cell->at(1).a, 1u);
  EXPECT_EQ(cell->at(2).a, 3u);
  EXPECT_EQ(cell->at(9).b, 4u);
}

TEST(Versioned, takes_the_last_of_several_values_of_one_commit) {
  auto cell = zeroed<Versioned<Value>>();
  cell->set(0, {1, 1});
  cell->set(1, {2, 2});
  cell->set(1, {3, 3});
  EXPECT_EQ(cell->at(1).a, 1u);
  EXPECT_EQ(cell->at(2).a, 3u);
}

TEST(Versioned, forgets_what_was_never_committed) {
  auto cell = zeroed<Versioned<Value>>();
  cell->set(0, {1, 1});
  cell->set(1, {2, 2});  // the worker dies before commit 2
  cell->discard_after(1);
  EXPECT_EQ(cell->at(1).a, 1u);
  EXPECT_EQ(cell->at(2).a, 1u) << "commit 2 of the next worker must not bring it back";
}

TEST(PositionCell, replaces_the_position_as_a_whole) {
  auto cell = zeroed<PositionCell>();
  EXPECT_EQ(cell->get().has_chunk, 0u);
  ring::StreamPosition position{};
  position.has_chunk = 1;
  for (uint32_t i = 0; i < 10; ++i) {
    position.chunk = i;
    position.taken = i * 100;
    cell->set(position);
    EXPECT_EQ(cell->get().chunk, i);
    EXPECT_EQ(cell->get().taken, i * 100u);
  }
}

TEST(State, gives_each_stream_one_cell) {
  auto fd = State::create();
  ASSERT_TRUE(fd);
  auto state = State::map(fd->get());
  ASSERT_TRUE(state);
  const uint32_t first = state->find_or_add_stream(0, 1, 0);
  const uint32_t second = state->find_or_add_stream(0, 1, 1);
  EXPECT_NE(first, second);
  EXPECT_EQ(state->find_or_add_stream(0, 1, 0), first);
  auto again = State::map(fd->get());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->find_or_add_stream(0, 1, 1), second);
}

TEST(State, has_fewer_cells_where_files_may_not_be_large) {
  constexpr uint64_t kMiB = 1u << 20;
  constexpr uint64_t kMostBytes = 20 * kMiB;
  const auto size_of = [](const UniqueFd& fd) {
    struct stat status {};
    ::fstat(fd.get(), &status);
    return static_cast<uint64_t>(status.st_size);
  };
  const UniqueFd whole = State::create().value();
  EXPECT_EQ(State::map(whole.get()).value().sizes().processes, kMaxProcesses);
  EXPECT_GT(size_of(whole), 10 * kMostBytes);
  const UniqueFd fd = State::create(kMostBytes).value();
  EXPECT_LE(size_of(fd), kMostBytes);
  const State state = State::map(fd.get()).value();
  const StateSizes sizes = state.sizes();
  EXPECT_EQ(sizes.processes, kMaxProcesses / 16);
  EXPECT_EQ(sizes.streams, kMaxStreams / 16);
  // Each has a place of its own, up to the end of the file.
  state.process(sizes.processes - 1).pid = 1;
  state.stream(sizes.streams - 1).process = 2;
  state.file(sizes.files - 1).process = 3;
  state.metric(sizes.metrics - 1).process = 4;
  state.sample(sizes.samples - 1).process = 5;
  state.earlier_metric(sizes.metrics - 1).process = 6;
  EXPECT_EQ(state.process(sizes.processes - 1).pid, 1);
  EXPECT_EQ(state.stream(sizes.streams - 1).process, 2u);
  EXPECT_EQ(state.file(sizes.files - 1).process, 3u);
  EXPECT_EQ(state.metric(sizes.metrics - 1).process, 4u);
  EXPECT_EQ(state.sample(sizes.samples - 1).process, 5u);
  for (uint32_t i = 0; i < sizes.streams; ++i)
    ASSERT_NE(state.add_stream(1 + i, 1, 0), kNoCell) << i;
  EXPECT_EQ(state.add_stream(0, 1, 0), kNoCell);
  EXPECT_GT(size_of(State::create(kMiB).value()), 8 * kMiB) << "the least";
}

TEST(State, counts_the_time_of_a_process_once_however_many_programs_it_was) {
  auto fd = State::create();
  ASSERT_TRUE(fd);
  auto state = State::map(fd->get());
  ASSERT_TRUE(state);
  const auto add = [&](uint32_t index, int32_t pid, uint64_t start, uint64_t cpu_ns) {
    ProcessCell& cell = state->process(index);
    cell.pid = pid;
    cell.start_time_ticks = start;
    cell.cpu_time_ns = cpu_ns;
    state->header().process_count = index + 1;
  };
  EXPECT_EQ(state->sum_cpu_time_ns(), 0u);
  add(0, 7, 1, 100);
  add(1, 8, 1, 30);
  add(2, 7, 1, 250);  // after exec()
  add(3, 7, 9, 5);    // the pid of another
  EXPECT_EQ(state->sum_cpu_time_ns(), 285u);
}

}  // namespace
}  // namespace aon::agent
