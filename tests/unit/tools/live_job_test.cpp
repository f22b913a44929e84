#include "tools/live_job.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "core/base/lease.h"
#include "core/cluster/presence.h"
#include "tests/unit/folder_fixture.h"

namespace aon::tools {
namespace {

class LiveJob : public test::FolderFixture {
 protected:
  LiveJob() { std::filesystem::create_directories(path("agents")); }
};

TEST_F(LiveJob, is_over_without_leases) {
  EXPECT_FALSE(find_live_owner(folder_, 0).has_value());
  EXPECT_FALSE(find_live_owner(path("none"), 0).has_value());
}

TEST_F(LiveJob, is_live_while_an_agent_holds_its_lease) {
  auto lease = Lease::take(path("agents/n1.lease"));
  ASSERT_TRUE(lease.has_value());
  const auto owner = find_live_owner(folder_, 0);
  ASSERT_TRUE(owner.has_value());
  EXPECT_EQ(owner->pid, getpid());
  EXPECT_NE(describe(*owner).find(local_host_name()), std::string::npos);
  EXPECT_FALSE(find_live_owner(folder_, getpid()).has_value()) << "the caller's own agent";
  lease->release();
  EXPECT_FALSE(find_live_owner(folder_, 0).has_value());
}

TEST_F(LiveJob, is_over_when_the_spools_are_complete) {
  const auto lease = Lease::take(path("agents/n1.lease"));
  ASSERT_TRUE(lease.has_value());
  ASSERT_TRUE(cluster::mark_done(folder_, "n1", "token"));
  EXPECT_FALSE(find_live_owner(folder_, 0).has_value());
  cluster::clear_done(folder_, "n1");
  EXPECT_TRUE(find_live_owner(folder_, 0).has_value());
}

TEST_F(LiveJob, is_busy_while_somebody_assembles) {
  const auto lease = Lease::take(assemble_lease(folder_));
  ASSERT_TRUE(lease.has_value());
  EXPECT_EQ(find_live_owner(folder_, 0)->role, "finalize");
}

}  // namespace
}  // namespace aon::tools
