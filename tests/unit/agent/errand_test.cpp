#include "core/agent/errand.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "core/base/time.h"
#include "core/cluster/meeting.h"
#include "core/delivery/receiver.h"
#include "tests/unit/temporary_folder.h"

namespace aon::agent {
namespace {

namespace fs = std::filesystem;

/// A receiver of "n1", and an errand from "n2".
class ErrandTo : public testing::Test {
 protected:
  void SetUp() override {
    config_.node = "n2";
    config_.job_folder = (root_ / "there").string();
    config_.folder = config_.job_folder + "/spool/n2";
    config_.meeting = (root_ / "launches" / "launch").string();
    fs::create_directories(config_.folder);
    fs::create_directories(root_ / "job");
    std::ofstream(config_.folder + "/definitions.aon") << std::string(2u << 20, 'x');
  }
  void TearDown() override {
    is_stopping_ = true;
    if (thread_.joinable()) thread_.join();
  }
  void start(uint64_t node_bytes) {
    receiver_ = std::make_unique<delivery::Receiver>(
        delivery::ReceiverSettings{(root_ / "job").string(), "n1", node_bytes, 8, false});
    const auto address = receiver_->start({"127.0.0.1"});
    ASSERT_TRUE(address);
    ASSERT_TRUE(cluster::announce_at(config_.meeting, cluster::kReceiverName, *address));
    thread_ = std::thread([this] {
      while (!is_stopping_) receiver_->step(20);
    });
  }
  delivery::Sender sender() const { return {config_.folder, "n2", 4711, 99, 1, 8}; }
  bool is_noted() const { return fs::exists(config_.job_folder + "/delivered.txt"); }

  test::TemporaryFolder folder_;
  const fs::path& root_ = folder_.path();
  Config config_;
  std::atomic<int64_t> assembling_ms_{0};
  std::unique_ptr<delivery::Receiver> receiver_;
  std::atomic<bool> is_stopping_{false};
  std::thread thread_;
};

TEST_F(ErrandTo, a_receiver_ends_with_a_note) {
  start(64u << 20);
  Errand errand(config_, sender(), &assembling_ms_);
  EXPECT_FALSE(errand.try_to_connect(false));
  ASSERT_TRUE(errand.is_connected());
  EXPECT_TRUE(errand.hand_over());
  EXPECT_TRUE(is_noted());
}

/// Its lease says so: another agent of the node is there, for now.
TEST_F(ErrandTo, one_that_refuses_for_now_is_made_again_after_a_while) {
  start(64u << 20);
  const std::string agents = (root_ / "job").string() + "/agents";
  fs::create_directories(agents);
  std::ofstream(agents + "/n2.lease") << "n2 1 1 another\n";
  Errand errand(config_, sender(), &assembling_ms_);
  EXPECT_FALSE(errand.try_to_connect(false));
  ASSERT_TRUE(errand.is_connected());
  for (int i = 0; i < 100 && errand.is_connected(); ++i) {
    errand.go_on();
    usleep(20'000);
  }
  ASSERT_FALSE(errand.is_connected());
  EXPECT_FALSE(errand.is_refused_for_good());
  EXPECT_FALSE(errand.try_to_connect(false));
  EXPECT_FALSE(errand.is_connected()) << "not at once: all of it comes again";
  EXPECT_FALSE(errand.try_to_connect(true));
  ASSERT_TRUE(errand.is_connected()) << "the ranks have ended";
  EXPECT_FALSE(errand.hand_over());
  EXPECT_FALSE(errand.is_refused_for_good());
  fs::remove(agents + "/n2.lease");
  const int64_t start_ms = now_ms();
  while (!errand.is_connected() && now_ms() < start_ms + 10'000) {
    EXPECT_FALSE(errand.try_to_connect(true));
    usleep(20'000);
  }
  EXPECT_GT(now_ms() - start_ms, 500) << "somebody waits, but not only for this";
  EXPECT_TRUE(errand.hand_over());
  EXPECT_TRUE(is_noted());
}

/// Who is not reached has refused nothing: when the ranks have ended there is little time.
TEST_F(ErrandTo, one_that_refused_and_is_not_reached_is_made_again_at_once) {
  start(64u << 20);
  const std::string agents = (root_ / "job").string() + "/agents";
  fs::create_directories(agents);
  std::ofstream(agents + "/n2.lease") << "n2 1 1 another\n";
  Errand errand(config_, sender(), &assembling_ms_);
  EXPECT_FALSE(errand.try_to_connect(false));
  for (int i = 0; i < 100 && errand.is_connected(); ++i) {
    errand.go_on();
    usleep(20'000);
  }
  ASSERT_FALSE(errand.is_connected());
  TearDown();
  receiver_.reset();
  EXPECT_FALSE(errand.try_to_connect(true));
  ASSERT_FALSE(errand.is_connected());
  fs::remove(agents + "/n2.lease");
  is_stopping_ = false;
  start(64u << 20);
  EXPECT_FALSE(errand.try_to_connect(true));
  ASSERT_TRUE(errand.is_connected());
  EXPECT_TRUE(errand.hand_over());
}

/// Room may be made by others when the ranks have ended: until then nothing is lost.
TEST_F(ErrandTo, one_without_room_is_made_again_when_the_ranks_have_ended) {
  start(3u << 20);
  std::ofstream(config_.folder + "/topology.xml") << std::string(2u << 20, 'x');
  Errand errand(config_, sender(), &assembling_ms_);
  EXPECT_FALSE(errand.try_to_connect(false));
  for (int i = 0; i < 100 && errand.is_connected(); ++i) {
    errand.go_on();
    usleep(20'000);
  }
  ASSERT_FALSE(errand.is_connected());
  EXPECT_FALSE(errand.is_refused_for_good());
  EXPECT_FALSE(errand.try_to_connect(false));
  EXPECT_FALSE(errand.is_connected());
  EXPECT_FALSE(errand.try_to_connect(true));
  ASSERT_TRUE(errand.is_connected());
  EXPECT_FALSE(errand.hand_over());
  EXPECT_TRUE(errand.is_refused_for_good());
}

TEST_F(ErrandTo, one_that_never_takes_it_is_over) {
  start(1u << 20);
  Errand errand(config_, sender(), &assembling_ms_);
  EXPECT_FALSE(errand.try_to_connect(true));
  ASSERT_TRUE(errand.is_connected());
  EXPECT_FALSE(errand.hand_over());
  EXPECT_TRUE(errand.is_refused_for_good());
  EXPECT_FALSE(is_noted());
  EXPECT_TRUE(fs::exists(config_.folder + "/definitions.aon"));
}

}  // namespace
}  // namespace aon::agent
