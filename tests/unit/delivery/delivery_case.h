// A spool that is brought from one node to another, for tests of what becomes of it.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/base/lease.h"
#include "core/cluster/handshake.h"
#include "core/cluster/newcomers.h"
#include "core/cluster/presence.h"
#include "core/cluster/wire.h"
#include "core/delivery/courier.h"
#include "core/delivery/receiver.h"
#include "tests/unit/temporary_folder.h"

namespace aon::delivery {

namespace fs = std::filesystem;
using cluster::make_frame;
using cluster::Presence;

constexpr uint64_t kNodeBytes = 4u << 20;
constexpr int32_t kPid = 4711;
constexpr uint32_t kWorld = 8;

/// A job directory on "n1" with a receiver that works, and a spool folder on "n2".
class Delivery : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(job_ / "spool");
    fs::create_directories(there_);
    ASSERT_TRUE(cluster::make_agents_folder(job_.string()));
    start_receiver(true);
  }
  void TearDown() override { stop_receiver(); }

  void start_receiver(bool waits_for_archive) {
    receiver_ = std::make_unique<Receiver>(ReceiverSettings{
        job_.string(), "n1", kNodeBytes, kWorld, waits_for_archive, false, longest_sync_ms_});
    auto address = receiver_->start({"127.0.0.1"});
    ASSERT_TRUE(address) << address.error().message;
    address_ = *address;
    is_stopping_ = false;
    thread_ = std::thread([this] {
      while (!is_stopping_) receiver_->step(20);
    });
  }
  void stop_receiver() {
    is_stopping_ = true;
    if (thread_.joinable()) thread_.join();
    receiver_.reset();
  }

  static void write(const fs::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
  }
  static std::string read(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  fs::path arrived(const std::string& name) const { return job_ / "spool" / "n2" / name; }

  template <class Condition>
  static bool wait_until(Condition condition) {
    for (int i = 0; i < 500; ++i) {
      if (condition()) return true;
      usleep(10'000);
    }
    return condition();
  }
  bool is_there(const std::string& name, const std::string& text) const {
    return wait_until([&] { return read(arrived(name)) == text && fs::exists(arrived(name)); });
  }

  Sender sender(const std::string& node = "n2") const {
    return {there_.string(), node, kPid, 99, 3, kWorld};
  }
  std::vector<cluster::NodePresence> presence() const {
    return cluster::read_presence(job_.string());
  }
  bool is_marked(Presence wanted) const {
    return wait_until([&] {
      const auto nodes = presence();
      return nodes.size() == 1 && nodes[0].node == "n2" && nodes[0].presence == wanted;
    });
  }

  /// A connection that knows the token and says what it likes.
  UniqueFd connect_by_hand(const std::string& node) const {
    auto fd = cluster::connect_to(address_.endpoints[0], 1000);
    EXPECT_TRUE(fd);
    EXPECT_TRUE(cluster::shake_hands(fd->get(), address_.token, node, now_ms() + 2000));
    return std::move(*fd);
  }
  template <class Frame>
  static bool say(const UniqueFd& fd, const Frame& frame) {
    return send(fd.get(), &frame, sizeof(frame), MSG_NOSIGNAL) == sizeof(frame);
  }
  static bool is_dropped(const UniqueFd& fd) {
    return wait_until([&] {
      char byte = 0;
      return recv(fd.get(), &byte, 1, MSG_DONTWAIT) == 0 ||
             (errno != EAGAIN && errno != EWOULDBLOCK);
    });
  }
  static cluster::Part part(const std::string& name, const std::string& text) {
    auto frame = make_frame<cluster::Part>();
    name.copy(frame.name, sizeof(frame.name));
    frame.mode = cluster::PartMode::kWhole;
    frame.byte_count = static_cast<uint32_t>(text.size());
    frame.total_bytes = text.size();
    return frame;
  }
  UniqueFd offer_by_hand(const std::string& node = "n2") const {
    UniqueFd fd = connect_by_hand(node);
    auto offer = make_frame<cluster::Offer>();
    offer.pid = kPid;
    offer.world_size = kWorld;
    EXPECT_TRUE(say(fd, offer));
    return fd;
  }

  /// Of an archive, by a clock that was set meanwhile.
  void write_ledger(int hours_ahead) const {
    write(job_ / "aon.json", "{}");
    const auto ahead = std::chrono::hours(hours_ahead);
    fs::last_write_time(job_ / "aon.json", fs::file_time_type::clock::now() + ahead);
  }
  /// An archive that has all that was complete.
  void make_archive() {
    write_ledger(-1);
    cluster::mark_assembled(job_.string(), presence());
  }
  /// What the courier is told in the end: a place, or why not.
  static std::string told(Courier* courier) {
    std::string text;
    EXPECT_TRUE(wait_until([&] {
      const auto place = courier->wait_assembled(50);
      text = place ? *place : courier->refusal();
      return !text.empty() || !courier->is_connected();
    }));
    return text;
  }

  test::TemporaryFolder folder_;
  const fs::path& root_ = folder_.path();
  const fs::path job_ = root_ / "job";
  const fs::path there_ = root_ / "there";
  int64_t longest_sync_ms_ = kLongestSyncMs;
  cluster::AgentAddress address_;
  std::unique_ptr<Receiver> receiver_;
  std::atomic<bool> is_stopping_{false};
  std::thread thread_;
};

}  // namespace aon::delivery
