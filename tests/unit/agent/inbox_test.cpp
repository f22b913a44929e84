#include "core/agent/inbox.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <vector>

namespace aon::agent {
namespace {

TEST(InboxTest, keeps_the_latest_counts_and_counts_what_it_refuses) {
  Inbox inbox;
  std::vector<InboxDefinition> taken;
  std::map<uint32_t, uint64_t> refused;
  for (uint64_t call_count = 1; call_count <= 3 * Inbox::kMaxDefinitions; ++call_count) {
    inbox.define_counts({7, 1, 2, 0, call_count});
    inbox.define_counts({7, 2, 2, 0, 2 * call_count});
  }
  inbox.take(&taken, &refused);
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_TRUE(refused.empty());
  CountsDefinition counts{};
  std::memcpy(&counts, taken[1].payload.data(), sizeof(counts));
  EXPECT_EQ(counts.slot, 2u);
  EXPECT_EQ(counts.call_count, 6 * Inbox::kMaxDefinitions);
  for (size_t i = 0; i < Inbox::kMaxDefinitions + 5; ++i)
    inbox.define(3, DefinitionType::kClock, ClockDefinition{});
  inbox.define_counts({7, 1, 2, 0, 9});
  inbox.take(&taken, &refused);
  EXPECT_EQ(taken.size(), Inbox::kMaxDefinitions);
  EXPECT_EQ(refused, (std::map<uint32_t, uint64_t>{{3, 5}, {7, 1}}));
  inbox.define_counts({7, 1, 2, 0, 10});
  inbox.take(&taken, &refused);
  EXPECT_EQ(taken.size(), 1u);
}

}  // namespace
}  // namespace aon::agent
