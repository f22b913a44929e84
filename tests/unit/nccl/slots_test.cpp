// Slots of operations in flight: who may take one, and when.

#include "plugins/nccl/slots.h"

#include <aon/annotation.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
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
bool aon_writer_put_nested(Writer*, const char*, const Record*) noexcept { return false; }

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
    g_writer.context[0].cursor = g_records;
    g_writer.context[0].end = g_records + sizeof g_records;
    g_writer.context[0].chunk = &g_chunk;
  }
  ~NcclSlots() override { g_state = nullptr; }

  Communicator& communicator() { return g_state->communicators[0]; }
  Handle open(uint64_t number) {
    const Facts facts = {.sequence = number, .count = number};  // of 4 bytes each
    return open_operation(communicator(), facts, number, kHasWork, Role::kWork);
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

}  // namespace
}  // namespace aon::nccl
