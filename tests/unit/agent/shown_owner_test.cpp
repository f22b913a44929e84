// What an agent takes for its user's where the file system of the job shows another owner.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/agent/assemble.h"
#include "core/agent/settle.h"
#include "core/spool/files.h"
#include "tests/unit/squashed.h"

namespace aon::agent {
namespace {

namespace fs = std::filesystem;

class ShownOwner : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "making files of another user needs root";
    config_.job_folder = test::shown_folder(testing::TempDir());
    config_.node = "n1";
    config_.folder = config_.job_folder + "/spool/n1";
  }
  void TearDown() override {
    if (!config_.job_folder.empty()) fs::remove_all(config_.job_folder);
  }

  Config config_;
};

TEST_F(ShownOwner, agents_of_a_launch_settle) {
  {
    const test::Squashed squashed;
    for (const char* node : {"n1", "n2"}) {
      config_.node = node;
      config_.folder = config_.job_folder + "/spool/" + node;
      const std::optional<Lease> lease = settle_node(&config_);
      EXPECT_TRUE(lease) << node;
      EXPECT_EQ(config_.node, node);
    }
  }
  EXPECT_FALSE(settle_node(&config_)) << "of another user";
}

TEST_F(ShownOwner, shares_are_wanted) {
  const fs::path plan = fs::path(config_.job_folder) / spool::kSharePlan;
  uint64_t last_plan = 0;
  {
    const test::Squashed squashed;
    fs::create_directory(plan.parent_path());
    EXPECT_FALSE(is_share_wanted(config_, &last_plan));
    std::ofstream(plan) << "a plan";
    EXPECT_TRUE(is_share_wanted(config_, &last_plan));
    EXPECT_FALSE(is_share_wanted(config_, &last_plan)) << "once";
  }
  last_plan = 0;
  EXPECT_FALSE(is_share_wanted(config_, &last_plan)) << "of another user";
  ASSERT_EQ(chown(plan.c_str(), 0, 0), 0);
  EXPECT_FALSE(is_share_wanted(config_, &last_plan)) << "in another user's folder";
  ASSERT_EQ(chown(plan.parent_path().c_str(), 0, 0), 0);
  EXPECT_TRUE(is_share_wanted(config_, &last_plan));
}

}  // namespace
}  // namespace aon::agent
