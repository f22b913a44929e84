// The two ends of the pings, over loopback.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "core/base/time.h"
#include "core/cluster/handshake.h"
#include "core/cluster/newcomers.h"
#include "core/cluster/ping_client.h"
#include "core/cluster/ping_server.h"
#include "core/cluster/wire.h"
#include "tests/unit/temporary_folder.h"

namespace aon::cluster {
namespace {

constexpr clock::TickSource kSource = clock::TickSource::kMonotonicRaw;

/// Collects exchanges of a client.
class Exchanges {
 public:
  PingClient::Sink sink() {
    return [this](const ClockPingDefinition& ping, const std::string& peer) {
      const std::lock_guard lock(m_);
      pings_.push_back(ping);
      peers_.insert(peer);
      ++by_peer_[peer];
      changed_.notify_all();
    };
  }
  bool wait_for(const std::string& peer, size_t count) {
    std::unique_lock lock(m_);
    return changed_.wait_for(lock, std::chrono::seconds(20),
                             [&] { return by_peer_[peer] >= count; });
  }
  size_t count(const std::string& peer) {
    const std::lock_guard lock(m_);
    return by_peer_[peer];
  }
  std::vector<ClockPingDefinition> pings() {
    const std::lock_guard lock(m_);
    return pings_;
  }

 private:
  std::mutex m_;
  std::condition_variable changed_;
  std::vector<ClockPingDefinition> pings_;
  std::set<std::string> peers_;
  std::map<std::string, size_t> by_peer_;
};

class Pings : public testing::Test {
 protected:
  /// Starts `server` as node `name`; what its address file says may be another token.
  std::vector<Endpoint> announce(PingServer& server, const std::string& name, const Token& told) {
    const std::vector<Endpoint> endpoints = server.start({"127.0.0.1"});
    EXPECT_EQ(endpoints.size(), 1u);
    EXPECT_TRUE(write_address(folder_, name, {told, endpoints}));
    return endpoints;
  }

  test::TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path();
  Token token_ = random_token();
  Exchanges exchanges_;
};

TEST_F(Pings, are_measured_in_order) {
  PingServer server(token_, kSource);
  announce(server, "n1", token_);
  PingClient client(folder_, "n2", kSource, exchanges_.sink());
  client.start();
  ASSERT_TRUE(exchanges_.wait_for("n1", kFirstBurst));
  EXPECT_EQ(server.ready_children(), 1u);
  client.stop();
  EXPECT_GE(exchanges_.count("n1"), static_cast<size_t>(kFirstBurst + kLastBurst));
  uint64_t last = 0;
  for (const ClockPingDefinition& ping : exchanges_.pings()) {
    // Both ends have the same clock here.
    EXPECT_LT(last, ping.sent_ticks);
    EXPECT_LE(ping.sent_ticks, ping.peer_received_ticks);
    EXPECT_LE(ping.peer_received_ticks, ping.peer_sent_ticks);
    EXPECT_LE(ping.peer_sent_ticks, ping.received_ticks);
    last = ping.received_ticks;
  }
}

TEST_F(Pings, parent_that_does_not_know_the_token_is_left) {
  PingServer server(random_token(), kSource);
  announce(server, "n1", token_);
  PingServer right(token_, kSource);
  announce(right, "n2", token_);
  PingClient client(folder_, "n3", kSource, exchanges_.sink());
  client.start();
  ASSERT_TRUE(exchanges_.wait_for("n2", kFirstBurst));
  client.stop();
  EXPECT_EQ(exchanges_.count("n1"), 0u);
  EXPECT_EQ(server.ready_children(), 0u);
}

TEST_F(Pings, parent_that_leaves_gets_a_last_burst_and_another_takes_its_place) {
  auto first = std::make_unique<PingServer>(token_, kSource);
  announce(*first, "n1", token_);
  PingClient client(folder_, "n3", kSource, exchanges_.sink());
  client.start();
  ASSERT_TRUE(exchanges_.wait_for("n1", kFirstBurst));
  PingServer second(token_, kSource);
  announce(second, "n2", token_);
  remove_address(folder_, "n1");
  first->stop(20'000);  // returns when the child has said Bye
  EXPECT_GE(exchanges_.count("n1"), static_cast<size_t>(kFirstBurst + kLastBurst));
  ASSERT_TRUE(exchanges_.wait_for("n2", kFirstBurst));
  client.stop();
}

TEST_F(Pings, later_agent_of_a_node_that_left_is_asked_again) {
  auto first = std::make_unique<PingServer>(token_, kSource);
  announce(*first, "n1", token_);
  PingClient client(folder_, "n2", kSource, exchanges_.sink());
  client.start();
  ASSERT_TRUE(exchanges_.wait_for("n1", kFirstBurst));
  first->stop(20'000);  // its address is still seen
  const size_t count = exchanges_.count("n1");
  const Token other = random_token();
  PingServer second(other, kSource);
  announce(second, "n1", other);
  EXPECT_TRUE(exchanges_.wait_for("n1", count + kFirstBurst));
  client.stop();
}

/// A parent that takes its time for an answer when it is told to.
class SlowParent {
 public:
  explicit SlowParent(const Token& token) : token_(token) {
    Result<UniqueFd> listener = listen_on("127.0.0.1", &port_);
    EXPECT_TRUE(listener);
    listener_ = std::move(*listener);
    thread_ = std::thread([this] { serve(); });
  }
  ~SlowParent() { thread_.join(); }

  Endpoint endpoint() const { return {"127.0.0.1", port_}; }
  void become_slow() { is_slow_ = true; }
  int slow_count() const { return slow_count_; }

 private:
  void serve() {
    pollfd comes{listener_.get(), POLLIN, 0};
    if (poll(&comes, 1, 20'000) != 1) return;
    const UniqueFd child(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const std::optional<Nonce> nonce = send_challenge(child.get());
    FrameBuffer frame;
    if (!nonce || !receive_frame(child.get(), now_ms() + 20'000, &frame)) return;
    if (!welcome_child(child.get(), token_, *nonce, frame.take<Answer>())) return;
    while (receive_frame(child.get(), now_ms() + 20'000, &frame)) {
      if (frame.type() != FrameType::kPing) return;
      auto pong = make_frame<Pong>();
      pong.number = frame.take<Ping>().number;
      if (is_slow_) {
        ++slow_count_;
        poll(nullptr, 0, 200);
      }
      if (!send_frame(child.get(), pong)) return;
    }
  }

  Token token_;
  uint16_t port_ = 0;
  UniqueFd listener_;
  std::atomic<bool> is_slow_{false};
  std::atomic<int> slow_count_{0};
  std::thread thread_;
};

TEST_F(Pings, last_burst_beside_a_slow_parent_is_cut_short) {
  SlowParent parent(token_);
  ASSERT_TRUE(write_address(folder_, "n1", {token_, {parent.endpoint()}}));
  PingClient client(folder_, "n2", kSource, exchanges_.sink());
  client.start();
  ASSERT_TRUE(exchanges_.wait_for("n1", kFirstBurst));
  parent.become_slow();
  client.stop();
  EXPECT_LT(parent.slow_count(), kLastBurst / 2);
}

TEST_F(Pings, node_without_anybody_above_it_waits_in_peace) {
  PingServer server(token_, kSource);
  announce(server, "n5", token_);
  PingClient client(folder_, "n1", kSource, exchanges_.sink());
  client.start();
  EXPECT_FALSE(client.has_parent());
  client.stop();
  EXPECT_TRUE(exchanges_.pings().empty());
}

/// Of which many were lost: their addresses stay.
class PingsOfMany : public Pings {
 protected:
  /// Nodes 10, 11, ... below `end`, none of which answers.
  void lose_nodes(int end) const {
    uint16_t port = 0;
    { const Result<UniqueFd> listener = listen_on("127.0.0.1", &port); }
    for (int i = 10; i < end; ++i)
      ASSERT_TRUE(
          write_address(folder_, std::to_string(i), {random_token(), {{"127.0.0.1", port}}}));
  }
};

TEST_F(PingsOfMany, nodes_that_do_not_answer_keep_nobody_from_those_behind_them) {
  lose_nodes(58);
  PingServer server(token_, kSource);
  announce(server, "58", token_);
  PingClient client(folder_, "59", kSource, exchanges_.sink());
  client.start();
  EXPECT_TRUE(exchanges_.wait_for("58", kFirstBurst));
  client.stop();
}

TEST_F(PingsOfMany, better_parent_behind_those_that_do_not_answer_is_found) {
  lose_nodes(18);
  PingServer second(token_, kSource);
  announce(second, "19", token_);
  PingClient client(folder_, "20", kSource, exchanges_.sink());
  client.start();
  ASSERT_TRUE(exchanges_.wait_for("19", kFirstBurst));
  PingServer first(token_, kSource);
  announce(first, "18", token_);
  EXPECT_TRUE(exchanges_.wait_for("18", kFirstBurst));
  client.stop();
}

TEST_F(Pings, strangers_get_a_challenge_and_nothing_else) {
  PingServer server(token_, kSource);
  const std::vector<Endpoint> endpoints = announce(server, "n1", token_);
  std::vector<std::string> packets{std::string(1, 'x'), std::string(4096, '\0')};
  auto ping = make_frame<Ping>();
  packets.emplace_back(reinterpret_cast<const char*>(&ping), sizeof(ping));
  auto answer = make_frame<Answer>();
  answer.nonce = random_nonce();
  packets.emplace_back(reinterpret_cast<const char*>(&answer), sizeof(answer));
  answer.header.bytes = 1u << 30;
  packets.emplace_back(reinterpret_cast<const char*>(&answer), sizeof(answer));
  for (const std::string& packet : packets) {
    const Result<UniqueFd> fd = connect_to(endpoints[0], 5000);
    ASSERT_TRUE(fd);
    ASSERT_GT(send(fd->get(), packet.data(), packet.size(), MSG_NOSIGNAL), 0);
    shutdown(fd->get(), SHUT_WR);
    size_t bytes = 0;
    char buffer[4096];
    for (ssize_t got; (got = recv(fd->get(), buffer, sizeof(buffer), 0)) > 0;)
      bytes += static_cast<size_t>(got);
    EXPECT_LE(bytes, sizeof(Challenge));
  }
  EXPECT_EQ(server.ready_children(), 0u);
  // And it still serves.
  PingClient client(folder_, "n2", kSource, exchanges_.sink());
  client.start();
  EXPECT_TRUE(exchanges_.wait_for("n1", kFirstBurst));
}

TEST_F(Pings, strangers_take_no_place_from_a_child_however_many_come) {
  PingServer server(token_, kSource);
  const std::vector<Endpoint> endpoints = announce(server, "n1", token_);
  std::vector<UniqueFd> strangers;
  for (size_t i = 0; i < kMaxChildren + kMaxNewcomers; ++i) {
    Result<UniqueFd> fd = connect_to(endpoints[0], 5000);
    ASSERT_TRUE(fd);
    strangers.push_back(std::move(*fd));
  }
  // The last one is served: it is the first ones that went.
  Challenge challenge{};
  EXPECT_EQ(recv(strangers.back().get(), &challenge, sizeof(challenge), MSG_WAITALL),
            static_cast<ssize_t>(sizeof(challenge)));
  PingClient client(folder_, "n2", kSource, exchanges_.sink());
  client.start();
  EXPECT_TRUE(exchanges_.wait_for("n1", kFirstBurst));
  EXPECT_EQ(server.ready_children(), 1u);
  client.stop();
}

TEST_F(Pings, recorded_answer_is_worth_nothing_on_another_connection) {
  PingServer server(token_, kSource);
  const std::vector<Endpoint> endpoints = announce(server, "n1", token_);
  auto answer = make_frame<Answer>();
  for (int attempt = 0; attempt < 2; ++attempt) {
    const Result<UniqueFd> fd = connect_to(endpoints[0], 5000);
    ASSERT_TRUE(fd);
    Challenge challenge{};
    ASSERT_EQ(recv(fd->get(), &challenge, sizeof(challenge), MSG_WAITALL),
              static_cast<ssize_t>(sizeof(challenge)));
    if (attempt == 0) answer.proof = child_proof(token_, challenge.nonce, answer.nonce, "");
    ASSERT_GT(send(fd->get(), &answer, sizeof(answer), MSG_NOSIGNAL), 0);
    Welcome welcome{};
    const ssize_t got = recv(fd->get(), &welcome, sizeof(welcome), MSG_WAITALL);
    EXPECT_EQ(got > 0, attempt == 0);
  }
}

}  // namespace
}  // namespace aon::cluster
