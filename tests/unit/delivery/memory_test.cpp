// A job directory in memory (tmpfs), which the spools of all other nodes together may not fill.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/vfs.h>
#include <time.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "core/cluster/presence.h"
#include "core/delivery/courier.h"
#include "core/delivery/receiver.h"

namespace aon::delivery {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kNodeBytes = 4u << 20;

class InMemory : public testing::Test {
 protected:
  void SetUp() override {
    struct statfs status {};
    char name[] = "/dev/shm/aon-delivery-XXXXXX";
    if (statfs("/dev/shm", &status) != 0 || status.f_type != TMPFS_MAGIC ||
        mkdtemp(name) == nullptr)
      GTEST_SKIP() << "no tmpfs";
    root_ = name;
    ASSERT_TRUE(cluster::make_agents_folder(root_.string()));
    ReceiverSettings settings;
    settings.job_folder = root_.string();
    settings.node = "n1";
    settings.node_bytes = kNodeBytes;
    settings.waits_for_archive = false;
    receiver_ = std::make_unique<Receiver>(settings);
    auto address = receiver_->start({"127.0.0.1"});
    ASSERT_TRUE(address);
    address_ = *address;
    thread_ = std::thread([this] {
      while (!is_stopping_) receiver_->step(20);
    });
  }
  void TearDown() override {
    is_stopping_ = true;
    if (thread_.joinable()) thread_.join();
    if (!root_.empty()) fs::remove_all(root_);
  }

  /// Where it is in the end, or why it is not taken.
  std::string deliver(const std::string& node, size_t bytes) const {
    const fs::path folder = root_ / ("of-" + node);
    fs::create_directories(folder);
    std::ofstream(folder / "p0.0.aon") << std::string(bytes, 'x');
    return deliver(node, folder);
  }
  std::string deliver(const std::string& node, const fs::path& folder) const {
    Courier courier({folder.string(), node, 7, 1, 1, 0});
    EXPECT_TRUE(courier.connect(address_));
    static_cast<void>(courier.send_rest());
    while (courier.is_connected()) {
      const auto place = courier.wait_assembled(1000);
      if (place && !place->empty()) return *place;
    }
    return courier.refusal();
  }

  /// CPU time of the receiver for each of so many files of another node.
  double cost_ns(const std::string& node, int count) {
    const fs::path folder = root_ / ("of-" + node);
    fs::create_directories(folder);
    for (int i = 0; i < count; ++i) std::ofstream(folder / ("p" + std::to_string(i) + ".0.aon"));
    const int64_t before_ns = cpu_ns();
    EXPECT_EQ(deliver(node, folder), "n1:" + root_.string());
    return static_cast<double>(cpu_ns() - before_ns) / count;
  }
  int64_t cpu_ns() {
    clockid_t clock{};
    timespec now{};
    EXPECT_EQ(pthread_getcpuclockid(thread_.native_handle(), &clock), 0);
    EXPECT_EQ(clock_gettime(clock, &now), 0);
    return now.tv_sec * 1'000'000'000 + now.tv_nsec;
  }

  fs::path root_;
  cluster::AgentAddress address_;
  std::unique_ptr<Receiver> receiver_;
  std::atomic<bool> is_stopping_{false};
  std::thread thread_;
};

TEST_F(InMemory, spools_whose_couriers_have_gone_count_too) {
  EXPECT_EQ(deliver("n2", 3u << 20), "n1:" + root_.string());
  EXPECT_THAT(deliver("n3", 3u << 20), testing::StartsWith("no room for it"));
  EXPECT_TRUE(fs::is_empty(root_ / "spool" / "n3")) << "what was begun is of no use";
  EXPECT_EQ(deliver("n4", 1u << 19), "n1:" + root_.string());
}

/// Of thousands of ranks each has a file.
TEST_F(InMemory, a_file_costs_the_same_however_many_there_are) {
  const double few_ns = cost_ns("n2", 2000);
  EXPECT_LT(cost_ns("n3", 16'000), 3 * few_ns);
}

}  // namespace
}  // namespace aon::delivery
