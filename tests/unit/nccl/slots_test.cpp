// Slots of operations in flight: who may take one, and when.

#include "plugins/nccl/slots.h"

#include <aon/annotation.h>
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace aon {

static char g_records[4096];
static ChunkHeader g_chunk;
static Writer g_writer;
/// What other threads do while a record is being written.
static std::function<void()> g_before_record;
static const Annotation g_region = {};

// What the plugin has of libaon.so: no writer is attached, so that records take the slow path.
__thread Writer* aon_thread_writer = &g_writer;
Writer* aon_annotation_writer(const Annotation*, RecordKind) noexcept {
  if (g_before_record) std::exchange(g_before_record, nullptr)();
  return &g_writer;
}
bool aon_writer_extend(Writer*, WriterContext*, uint32_t, bool, uint64_t) noexcept { return false; }
bool aon_writer_put_slow(Writer*, const char*, const Record*, uint64_t) noexcept { return false; }
Writer* aon_attach() noexcept { return &g_writer; }

/// What was defined last.
struct Told {
  NcclSumsDefinition sums;
  uint64_t counts[kNcclDurationBuckets];
};
static std::vector<Told> g_told;
bool aon_define(uint32_t type, const void* payload, uint32_t payload_bytes, const char*,
                uint32_t) noexcept {
  EXPECT_EQ(type, static_cast<uint32_t>(DefinitionType::kNcclSums));
  std::memcpy(&g_told.emplace_back(), payload, payload_bytes);
  return true;
}

}  // namespace aon

namespace aon::nccl {

State* g_state;
const Annotation* region_of(Function) { return &g_region; }
uint32_t type_bytes(NcclType) { return 4; }

namespace {

class NcclSlots : public testing::Test {
 protected:
  NcclSlots() : state_(static_cast<State*>(std::calloc(1, sizeof(State))), std::free) {
    g_state = state_.get();
    g_state->process.store(1);
    communicator().operations = operations_.data();
    communicator().slot_count.store(64);
    g_writer = {};
    g_told.clear();
    communicator().id = 5;
    g_writer.context[0].cursor = g_records;
    g_writer.context[0].end = g_records + sizeof g_records;
    g_writer.context[0].chunk = &g_chunk;
  }
  ~NcclSlots() override { g_state = nullptr; }

  Communicator& communicator() { return g_state->communicators[0]; }
  Handle open(uint64_t number, uint64_t bits = kHasWork) {
    const Facts facts = {.sequence = number, .count = number};  // of 4 bytes each
    return open_operation(communicator(), 0, facts, number, bits, Role::kWork);
  }
  /// One that took 10 ticks, and that time on the GPU; 0: not known.
  void run(uint64_t number, uint64_t gpu_ns = 0) {
    const uint64_t waits = gpu_ns == 0 ? 0 : kWaitsForGpu | kChannelsDone;
    const Handle handle = open(number, kHasWork | waits);
    Operation& operation = *operation_at(handle);
    operation.end_ticks.store(number + 10);
    operation.gpu_first_ns.store(1000);
    operation.gpu_end_ns.store(1000 + gpu_ns);
    ASSERT_TRUE(commit(communicator(), operation, handle.generation));
  }

 private:
  std::unique_ptr<State, void (*)(void*)> state_;
  std::vector<Operation> operations_ = std::vector<Operation>(kMaxOperations);
};

TEST_F(NcclSlots, are_nobody_elses_until_their_record_is_written) {
  const Handle ending = open(7);
  g_before_record = [&] {
    for (uint64_t i = 0; i < 64; ++i) EXPECT_NE(open(1000 + i).slot, ending.slot);
  };
  Operation& operation = *operation_at(ending);
  ASSERT_TRUE(commit(communicator(), operation, ending.generation));
  RecordHead head;
  uint64_t sequence;
  std::memcpy(&head, g_records, sizeof head);
  std::memcpy(&sequence, g_records + sizeof head, sizeof sequence);
  EXPECT_EQ(sequence, 7u);
  EXPECT_EQ(head.a64, 4u * 7);
  EXPECT_EQ(head.start_ticks, 7u);
}

TEST_F(NcclSlots, are_free_again_for_another_generation) {
  const Handle first = open(1);
  Operation& operation = *operation_at(first);
  ASSERT_TRUE(commit(communicator(), operation, first.generation));
  EXPECT_FALSE(commit(communicator(), operation, first.generation));
  Handle next = first;
  for (uint64_t i = 0; i < 64; ++i) next = open(2 + i);
  EXPECT_EQ(next.slot, first.slot);
  EXPECT_EQ(next.generation, first.generation + 1);
  EXPECT_EQ(operation.control.load(), next.generation | kLive | kHasWork);
}

/// Once there were many in flight, all slots stay in use: who waits in vain for work is not early.
TEST_F(NcclSlots, are_taken_early_only_from_what_may_still_go_on) {
  communicator().slot_count.store(kMaxOperations);
  const Handle waits_in_vain = open(1, 0);
  communicator().group_count.fetch_add(1000);
  const Handle goes_on = open(2, 0);
  communicator().next_slot.store(0);
  EXPECT_EQ(open(3).slot, waits_in_vain.slot);
  EXPECT_EQ(g_state->crowded_out.load(), 0u);
  EXPECT_EQ(open(4).slot, goes_on.slot);
  EXPECT_EQ(g_state->crowded_out.load(), 1u);
}

/// ncclCommAbort in one thread while another one calls.
TEST_F(NcclSlots, of_a_communicator_that_has_gone_are_nobodys) {
  communicator().generation.fetch_add(1);
  EXPECT_EQ(open(1).pointer(), nullptr);
  EXPECT_EQ(g_state->unplaced.load(), 1u);
  EXPECT_EQ(communicator().call_count.load(), 0u);
  communicator().generation.store(0);
  for (uint64_t i = 0; i < 64; ++i) open(2 + i);
  EXPECT_EQ(communicator().slot_count.load(), 64u) << "none stays taken";
}

TEST_F(NcclSlots, that_are_being_filled_are_waited_for_but_not_for_ever) {
  std::atomic<uint64_t>& control = communicator().operations[3].control;
  control.store(kClaimed);
  std::thread filler([&] {
    const timespec moment = {0, 2'000'000};
    nanosleep(&moment, nullptr);
    control.store(kLive);
  });
  EXPECT_EQ(wait_for_claims(communicator()), 64u);
  EXPECT_EQ(control.load(), kLive);
  filler.join();
  control.store(kClaimed);
  EXPECT_EQ(wait_for_claims(communicator()), 64u);
}

TEST_F(NcclSlots, count_more_calls_than_32_bits_do) {
  communicator().call_count.store(UINT32_MAX);
  communicator().tells_channels.store(true);
  const Facts facts = {.flags = kNcclReplayed, .peer = 3};
  const auto open_next = [&] {
    return open_operation(communicator(), 0, facts, 1, kHasWork | kWaitsForGpu, Role::kWork);
  };
  Operation& last = *operation_at(open_next());
  const Handle first = open_next();
  Operation& next = *operation_at(first);
  EXPECT_EQ(call_of(last), uint64_t{UINT32_MAX});
  EXPECT_EQ(call_of(next), uint64_t{1} << 32);
  note_done(communicator(), last);
  EXPECT_TRUE(is_abandoned(communicator(), next, next.control.load()));
  ASSERT_TRUE(commit(communicator(), next, first.generation));
  uint64_t words[8];
  std::memcpy(words, g_records + sizeof(RecordHead), sizeof words);
  EXPECT_EQ(words[1] & UINT32_MAX, 0u);
  EXPECT_EQ(words[5] >> kNcclHighCallShift, 1u);
  EXPECT_NE(words[5] >> 32 & kNcclReplayed, 0u);
  EXPECT_EQ(words[5] & UINT32_MAX, 3u);
}

TEST_F(NcclSlots, whose_records_are_refused_are_summed_up) {
  run(64, 100);  // there is room for this one
  g_writer.context[0].end = g_writer.context[0].cursor;
  run(64, 100);
  run(96, 300);
  run(127);
  run(1);
  tell_refused(*g_state, 6);
  EXPECT_EQ(g_told.size(), 0u);  // of another communicator
  tell_refused(*g_state, 5);
  ASSERT_EQ(g_told.size(), 2u);
  const Told& small = g_told[g_told[0].sums.log2_bytes == 2 ? 0 : 1];
  const Told& large = g_told[g_told[0].sums.log2_bytes == 2 ? 1 : 0];
  EXPECT_EQ(small.sums.count, 1u);
  EXPECT_EQ(small.sums.timed_count + small.sums.bucket_count + small.sums.min_ns, 0u);
  EXPECT_EQ(large.sums.communicator_id, 5u);
  EXPECT_EQ(large.sums.log2_bytes, 8u);
  EXPECT_EQ(large.sums.count, 3u);
  EXPECT_EQ(large.sums.bytes, 4u * (64 + 96 + 127));
  EXPECT_EQ(large.sums.host_ns, 30u);
  EXPECT_EQ(large.sums.timed_count, 2u);
  EXPECT_EQ(large.sums.timed_bytes, 4u * (64 + 96));
  EXPECT_EQ(large.sums.gpu_ns, 400u);
  EXPECT_EQ(large.sums.min_ns, 100u);
  EXPECT_EQ(large.sums.max_ns, 300u);
  EXPECT_EQ(large.sums.first_bucket, 6u);
  EXPECT_EQ(large.sums.bucket_count, 3u);
  EXPECT_EQ(std::vector<uint64_t>(large.counts, large.counts + 4),
            (std::vector<uint64_t>{1, 0, 1, 0}));
}

TEST_F(NcclSlots, that_were_told_in_flight_are_counted_among_the_refused) {
  for (const uint64_t bits : {uint64_t{0}, kAbandoned}) {
    const Handle handle = open(64, kHasWork | kWaitsForGpu);
    Operation& operation = *operation_at(handle);
    g_writer.context[0].end = g_records + sizeof g_records;
    ASSERT_TRUE(put_in_flight(communicator(), operation, handle.generation));
    uint64_t control;
    ASSERT_TRUE(set_bits(operation, handle.generation, kToldInFlight | bits, &control));
    g_writer.context[0].end = g_writer.context[0].cursor;
    EXPECT_FALSE(put_in_flight(communicator(), operation, handle.generation));
    ASSERT_TRUE(commit(communicator(), operation, handle.generation));
  }
  run(64, 100);
  tell_refused(*g_state, 0);
  ASSERT_EQ(g_told.size(), 1u);
  EXPECT_EQ(g_told[0].sums.count, 2u);  // what was given up is told by its record in flight
  EXPECT_EQ(g_told[0].sums.in_flight_count, 1u);
}

/// A program that makes communicators all the time: earlier ones have the rows.
TEST_F(NcclSlots, whose_records_are_refused_cost_little_where_no_row_is_left) {
  g_writer.context[0].end = g_writer.context[0].cursor;
  const auto least_ns = [this] {
    int64_t least = INT64_MAX;
    for (int round = 0; round < 9; ++round) {
      timespec begin{};
      timespec end{};
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
      for (int i = 0; i < 2000; ++i) run(64, 100);
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
      const int64_t ns = (end.tv_sec - begin.tv_sec) * 1'000'000'000 + end.tv_nsec - begin.tv_nsec;
      least = std::min(least, ns);
    }
    return least;
  };
  const int64_t in_first_row_ns = least_ns();
  for (uint32_t i = 0; i < kMaxRefusedSums; ++i)
    g_state->refused_sums[i].key.store(uint64_t{1000 + i} << 32);
  EXPECT_EQ(g_state->refused_unsummed.load(), 0u);
  run(1);
  EXPECT_EQ(g_state->refused_unsummed.load(), 1u);
  EXPECT_LT(least_ns(), 8 * in_first_row_ns) << "30 times where all rows are looked at";
}

TEST_F(NcclSlots, sums_of_the_refused_are_told_when_they_have_grown) {
  g_writer.context[0].end = g_writer.context[0].cursor;
  run(64);
  tell_refused(*g_state, 0);
  tell_refused(*g_state, 0);
  EXPECT_EQ(g_told.size(), 1u);
  run(64);
  tell_refused(*g_state, 0);
  ASSERT_EQ(g_told.size(), 2u);
  EXPECT_EQ(g_told[1].sums.count, 2u);
}

}  // namespace
}  // namespace aon::nccl
