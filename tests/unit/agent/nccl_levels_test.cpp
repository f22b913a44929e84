#include "core/agent/nccl_levels.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/unit/temporary_folder.h"

namespace aon::agent {
namespace {

using Changes = std::vector<BudgetDefinition>;

class NcclLevelsTest : public testing::Test {
 protected:
  void SetUp() override {
    modes_.add(kProcess, words_);
    start_agent();
  }

  void start_agent() {
    levels_ = std::make_unique<NcclLevels>(dir_.path(), &modes_, &inbox_,
                                           [this](uint32_t process, uint32_t site) {
                                             forgotten_.push_back({process, site});
                                           });
  }
  void begin(NcclLevel lowest, NcclLevel highest, NcclLevel launch, NcclLimit reason) {
    words_[kNcclLimitsSite] = NcclLimits{lowest, highest, launch, reason}.word();
  }
  void begin_at_api() {
    begin(NcclLevel::kApi, NcclLevel::kStep, NcclLevel::kApi, NcclLimit::kNone);
  }

  /// What one second puts into the spool.
  Changes second() {
    levels_->second(clock::TickSource::kMonotonicRaw);
    std::vector<InboxDefinition> definitions;
    std::map<uint32_t, uint64_t> refused;
    inbox_.take(&definitions, &refused);
    Changes changes;
    for (const InboxDefinition& one : definitions) {
      EXPECT_EQ(one.type, DefinitionType::kBudget);
      EXPECT_EQ(one.process, kProcess);
      changes.emplace_back();
      std::memcpy(&changes.back(), one.payload.data(), sizeof changes.back());
    }
    return changes;
  }
  /// Seconds until one has something to say; the directory is looked at by another thread.
  Changes next_change() {
    for (int i = 0; i < 600; ++i) {
      const Changes changes = second();
      if (!changes.empty()) return changes;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return {};
  }
  uint32_t ask(NcclLevel level) {
    const auto wish = cluster::write_nccl_wish(dir_.path(), level);
    EXPECT_TRUE(wish.has_value());
    return wish ? wish->stamp : 0;
  }
  NcclLevel level() const { return nccl_level_of(words_[kNcclProxySite], false); }

  static constexpr uint32_t kProcess = 3;
  test::TemporaryFolder dir_;
  std::atomic<uint32_t> words_[kMaxSites] = {};
  ModeTable modes_;
  Inbox inbox_;
  std::vector<std::pair<uint32_t, uint32_t>> forgotten_;
  std::unique_ptr<NcclLevels> levels_;
};

TEST_F(NcclLevelsTest, leaves_processes_without_nccl_alone) {
  ask(NcclLevel::kStep);
  EXPECT_TRUE(second().empty());
  EXPECT_EQ(words_[kNcclProxySite], 0u);
}

TEST_F(NcclLevelsTest, tells_once_where_a_process_stands) {
  begin_at_api();
  const Changes changes = second();
  ASSERT_EQ(changes.size(), 1u);
  const NcclAnswer told = NcclAnswer::of(changes[0].old_mode);
  EXPECT_EQ(changes[0].site, kNcclAskedSite);
  EXPECT_EQ(told.level, NcclLevel::kApi);
  EXPECT_EQ(told.asked, NcclLevel::kOff);
  EXPECT_EQ(changes[0].new_mode, 0u);
  EXPECT_TRUE(second().empty());
  EXPECT_EQ(words_[kNcclProxySite], 0u);
}

TEST_F(NcclLevelsTest, gives_what_is_asked_for) {
  begin_at_api();
  const uint32_t stamp = ask(NcclLevel::kNet);
  Changes changes = next_change();
  if (!changes.empty() && changes[0].new_mode == 0) changes = next_change();  // the file came after
  ASSERT_EQ(changes.size(), 1u);
  const NcclAnswer told = NcclAnswer::of(changes[0].old_mode);
  EXPECT_EQ(told.before, NcclLevel::kApi);
  EXPECT_EQ(told.level, NcclLevel::kNet);
  EXPECT_EQ(changes[0].new_mode, stamp);
  EXPECT_EQ(level(), NcclLevel::kNet);
  EXPECT_EQ(forgotten_.back(), std::pair(kProcess, kNcclProxySite));
  ask(NcclLevel::kApi);
  ASSERT_EQ(next_change().size(), 1u);
  EXPECT_EQ(level(), NcclLevel::kApi);
}

TEST_F(NcclLevelsTest, keeps_the_pause_of_the_program) {
  begin_at_api();
  for (const uint32_t site : {kNcclLimitsSite, kNcclProxySite, kNcclAskedSite})
    words_[site] |= kModePaused;
  ask(NcclLevel::kNet);
  while (level() != NcclLevel::kNet) ASSERT_FALSE(next_change().empty());
  EXPECT_EQ(words_[kNcclProxySite], nccl_mode_of(NcclLevel::kNet, false) | kModePaused);
  EXPECT_NE(words_[kNcclAskedSite] & kModePaused, 0u);
  EXPECT_TRUE(second().empty());
}

/// The budget has lowered it since; its next agent sees the same wish and leaves it there.
TEST_F(NcclLevelsTest, are_not_given_again_by_a_new_agent) {
  begin_at_api();
  const uint32_t stamp = ask(NcclLevel::kStep);
  while (level() != NcclLevel::kStep) ASSERT_FALSE(next_change().empty());
  words_[kNcclProxySite] = nccl_mode_of(NcclLevel::kGpu, false);
  start_agent();
  const Changes changes = second();
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].new_mode, stamp);
  EXPECT_EQ(NcclAnswer::of(changes[0].old_mode).level, NcclLevel::kGpu);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // it has looked
  EXPECT_TRUE(second().empty());
  EXPECT_EQ(level(), NcclLevel::kGpu);
}

TEST_F(NcclLevelsTest, are_given_by_a_new_agent_when_the_last_one_did_not_see_them) {
  begin_at_api();
  second();
  levels_.reset();
  ask(NcclLevel::kGpu);
  start_agent();
  while (level() != NcclLevel::kGpu) ASSERT_FALSE(next_change().empty());
}

TEST_F(NcclLevelsTest, tell_why_a_process_cannot_have_them) {
  begin(NcclLevel::kApi, NcclLevel::kApi, NcclLevel::kApi, NcclLimit::kSmallShm);
  const uint32_t stamp = ask(NcclLevel::kNet);
  Changes changes = next_change();
  if (!changes.empty() && changes[0].new_mode == 0) changes = next_change();
  ASSERT_EQ(changes.size(), 1u);
  const NcclAnswer told = NcclAnswer::of(changes[0].old_mode);
  EXPECT_EQ(told.level, NcclLevel::kApi);
  EXPECT_EQ(told.asked, NcclLevel::kNet);
  EXPECT_EQ(told.reason, NcclLimit::kSmallShm);
  EXPECT_EQ(changes[0].new_mode, stamp);
  EXPECT_EQ(words_[kNcclProxySite], 0u);
}

TEST_F(NcclLevelsTest, give_the_nearest_that_is_possible) {
  begin(NcclLevel::kGpu, NcclLevel::kStep, NcclLevel::kStep, NcclLimit::kFixedChannels);
  words_[kNcclFixedSite] = nccl_mode_of(NcclLevel::kStep, true);
  ask(NcclLevel::kApi);
  while (words_[kNcclFixedSite] != static_cast<uint32_t>(kModeCount))
    ASSERT_FALSE(next_change().empty());
  EXPECT_EQ(words_[kNcclProxySite], 0u);
}

TEST_F(NcclLevelsTest, begin_no_channels_where_nccl_has_lost_count) {
  begin_at_api();
  words_[kNcclUncountedSite] = kModeFull;
  ask(NcclLevel::kNet);
  Changes changes = next_change();
  if (!changes.empty() && changes[0].new_mode == 0) changes = next_change();
  ASSERT_EQ(changes.size(), 1u);
  const NcclAnswer told = NcclAnswer::of(changes[0].old_mode);
  EXPECT_EQ(told.level, NcclLevel::kApi);
  EXPECT_EQ(told.reason, NcclLimit::kCountsDiffer);
  EXPECT_EQ(words_[kNcclProxySite], 0u);
}

TEST_F(NcclLevelsTest, believe_no_word_that_says_no_limits) {
  words_[kNcclLimitsSite] = 0x7fffffff;
  ask(NcclLevel::kStep);
  EXPECT_TRUE(second().empty());
}

}  // namespace
}  // namespace aon::agent
