// What the agent does to a ring's memory.
#include "core/ring/memory.h"

#include <gtest/gtest.h>

namespace aon::ring {
namespace {

constexpr uint32_t kOffered = 80;  // more than one word of the free map

class RingMemoryTest : public testing::Test {
 protected:
  std::atomic<uint64_t>* free_map() {
    return reinterpret_cast<std::atomic<uint64_t>*>(static_cast<char*>(memory_.base()) +
                                                    memory_.geometry().free_map_offset);
  }
  /// As a process does: the lowest ones.
  void take(uint32_t count) {
    for (uint32_t chunk = 0; count != 0; ++chunk) {
      const uint64_t bit = uint64_t{1} << (chunk % 64);
      if ((free_map()[chunk / 64].fetch_and(~bit) & bit) != 0) --count;
    }
  }
  uint32_t wake_chunk() {
    memory_.wake_at_half();
    return static_cast<RingHeader*>(memory_.base())->wake_chunk;
  }

  RingMemory memory_ = RingMemory::create(0, 4, 200, kOffered, true).value();
};

TEST_F(RingMemoryTest, wakes_the_agent_when_half_of_what_is_free_is_used) {
  EXPECT_EQ(wake_chunk(), kOffered / 2);
  take(20);
  EXPECT_EQ(wake_chunk(), 20 + 30);
  free_map()[0].fetch_or(1);  // the first one is back
  EXPECT_EQ(wake_chunk(), 20 + 30 - 1);
}

TEST_F(RingMemoryTest, wakes_it_for_the_last_chunk_and_where_there_is_none) {
  take(kOffered - 1);
  EXPECT_EQ(wake_chunk(), kOffered - 1);
  take(1);
  EXPECT_EQ(wake_chunk(), kOffered);  // kNoChunk lies behind it
}

}  // namespace
}  // namespace aon::ring
