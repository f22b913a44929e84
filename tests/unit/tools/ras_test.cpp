// Asking NCCL's RAS service: one that answers, and every way in which one may not.

#include "tools/ras.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <functional>
#include <thread>

#include "core/base/unique_fd.h"

namespace aon::tools {
namespace {

/// Accepts one client and does with it what it is given.
class FakeRas {
 public:
  explicit FakeRas(std::function<void(int)> serve) {
    listener_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof address;
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), bytes), 0);
    EXPECT_EQ(::listen(listener_.get(), 1), 0);
    EXPECT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &bytes), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, serve = std::move(serve)] {
      const UniqueFd client(::accept(listener_.get(), nullptr, nullptr));
      if (client) serve(client.get());
    });
  }
  ~FakeRas() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  UniqueFd listener_;
  int port_ = 0;
  std::thread thread_;
};

std::string question(int client) {
  char text[64] = "";
  const ssize_t got = ::recv(client, text, sizeof text - 1, 0);
  return std::string(text, got > 0 ? static_cast<size_t>(got) : 0);
}
void say(int client, const std::string& text) {
  static_cast<void>(::send(client, text.data(), text.size(), MSG_NOSIGNAL));
}
/// Until the other side has gone.
void hold(int client) {
  char byte;
  while (::recv(client, &byte, 1, 0) > 0) {
  }
}

TEST(Ras, says_its_lines) {
  std::string asked;
  Result<std::vector<std::string>> lines = std::vector<std::string>();
  {
    FakeRas ras([&](int client) {
      asked = question(client);
      say(client, "NCCL version 2.28.9\n\nJob summary\n  MISMATCH rank 3\n");
    });
    lines = ask_ras(ras.address());
  }
  EXPECT_EQ(asked, "verbose status\n");
  ASSERT_TRUE(lines) << lines.error().message;
  EXPECT_EQ(*lines, (std::vector<std::string>{"NCCL version 2.28.9", "", "Job summary",
                                              "  MISMATCH rank 3"}));
}

TEST(Ras, that_says_nothing_is_waited_for_no_longer_than_allowed) {
  FakeRas ras(hold);
  const auto begin = std::chrono::steady_clock::now();
  const auto lines = ask_ras(ras.address(), 200);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3));
  ASSERT_FALSE(lines);
  EXPECT_EQ(lines.error().code, Code::kNotFound);
}

TEST(Ras, that_never_ends_is_cut_off) {
  FakeRas ras([](int client) {
    const std::string much(4096, 'x');
    while (::send(client, much.data(), much.size(), MSG_NOSIGNAL) > 0) {
    }
  });
  const auto lines = ask_ras(ras.address());
  ASSERT_TRUE(lines);
  ASSERT_EQ(lines->size(), 2u);
  EXPECT_EQ(lines->front().size(), kRasMaxBytes);
  EXPECT_EQ(lines->back(), kRasCutOff);
}

TEST(Ras, that_stops_in_the_middle_is_told_as_cut_off) {
  FakeRas ras([](int client) {
    say(client, "Job summary\n");
    hold(client);
  });
  const auto lines = ask_ras(ras.address(), 200);
  ASSERT_TRUE(lines);
  EXPECT_EQ(*lines, (std::vector<std::string>{"Job summary", kRasCutOff}));
}

TEST(Ras, that_ends_at_the_limit_is_whole) {
  FakeRas ras([](int client) {
    question(client);  // what is not read would reset the connection
    say(client, std::string(kRasMaxBytes, 'x'));
  });
  const auto lines = ask_ras(ras.address());
  ASSERT_TRUE(lines);
  EXPECT_EQ(lines->size(), 1u);
}

TEST(Ras, cannot_command_the_terminal) {
  FakeRas ras([](int client) {
    question(client);
    say(client,
        "\x1b]0;title\a\tone\r\ntwo\x7f\n\x9b"
        "31m\n\xc2\x9b"
        "31m\n\xe2\x80\xaeold\n");
  });
  const auto lines = ask_ras(ras.address());
  ASSERT_TRUE(lines);
  EXPECT_EQ(*lines,
            (std::vector<std::string>{"?]0;title? one", "two?", "?31m", "??31m", "???old"}));
}

TEST(Ras, that_is_not_there_is_told_at_once) {
  std::string address;
  {
    FakeRas gone([](int) {});
    address = gone.address();
  }
  const auto lines = ask_ras(address);
  ASSERT_FALSE(lines);
  EXPECT_EQ(lines.error().message, "NCCL's RAS service at " + address + " does not answer");
  for (const char* wrong : {"", "localhost", "localhost:", "no host at all:1"}) {
    const auto refused = ask_ras(wrong);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_EQ(refused.error().code, Code::kInvalid) << wrong;
  }
}

}  // namespace
}  // namespace aon::tools
