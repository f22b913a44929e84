#include "plugins/cupti/stream_ids.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>

namespace aon::cupti {
namespace {

TEST(StreamIds, are_the_same_for_the_same) {
  const auto ids = std::make_unique<StreamIds>();
  const auto first = ids->find(Row::kStream, 0, 1, 7);
  EXPECT_TRUE(first.is_new);
  EXPECT_EQ(first.entry->id, 1u);
  EXPECT_TRUE(ids->find(Row::kCalls, 0, 1, 7).is_new);
  EXPECT_TRUE(ids->find(Row::kStream, 1, 1, 7).is_new);
  EXPECT_TRUE(ids->find(Row::kStream, 0, 2, 7).is_new);
  const auto again = ids->find(Row::kStream, 0, 1, 7);
  EXPECT_FALSE(again.is_new);
  EXPECT_EQ(again.entry->id, 1u);
}

TEST(StreamIds, threads_that_come_and_go_leave_streams_alone) {
  const auto ids = std::make_unique<StreamIds>();
  std::set<uint32_t> all;
  for (uint32_t thread = 1; thread <= 5000; ++thread) {
    for (const Row row : {Row::kCalls, Row::kSynchronization, Row::kOverhead})
      all.insert(ids->find(row, 0, 0, thread).entry->id);
  }
  EXPECT_EQ(all.size(), 3 * (StreamIds::kMaxThreads + 1));
  const auto calls = ids->find(Row::kCalls, 0, 0, 6000);
  const auto waits = ids->find(Row::kSynchronization, 0, 0, 6000);
  EXPECT_EQ(calls.entry->stream, StreamIds::kShared);
  EXPECT_NE(calls.entry->id, waits.entry->id) << "one for each kind";
  EXPECT_NE(ids->find(Row::kCalls, 0, 0, 1).entry->id, calls.entry->id) << "known ones stay";
  const auto stream = ids->find(Row::kStream, 3, 4, 7);
  EXPECT_TRUE(stream.is_new);
  EXPECT_EQ(stream.entry->stream, 7u);
  EXPECT_EQ(stream.entry->device, 3u);
}

TEST(StreamIds, streams_beyond_the_limit_stay_those_of_their_device) {
  const auto ids = std::make_unique<StreamIds>();
  for (uint32_t stream = 0; stream < StreamIds::kMaxStreams; ++stream)
    ASSERT_NE(ids->find(Row::kStream, 0, 1, stream).entry->stream, StreamIds::kShared);
  const auto a = ids->find(Row::kStream, 0, 1, 5000);
  const auto b = ids->find(Row::kStream, 0, 2, 5001);
  const auto other = ids->find(Row::kStream, 1, 1, 5000);
  EXPECT_TRUE(a.is_new);
  EXPECT_FALSE(b.is_new);
  EXPECT_EQ(a.entry->id, b.entry->id);
  EXPECT_NE(a.entry->id, other.entry->id);
  EXPECT_EQ(a.entry->device, 0u);
  EXPECT_EQ(other.entry->device, 1u);
}

}  // namespace
}  // namespace aon::cupti
