// When messages came, over loopback and on given clocks.
#include "core/cluster/arrival.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "core/base/unique_fd.h"

namespace aon::cluster {
namespace {

using std::chrono::milliseconds;

constexpr clock::TickSource kSource = clock::TickSource::kMonotonicRaw;

class Arrivals : public testing::Test {
 protected:
  void SetUp() override {
    const UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    auto* any = reinterpret_cast<sockaddr*>(&address);
    ASSERT_EQ(bind(listener.get(), any, length), 0);
    ASSERT_EQ(listen(listener.get(), 1), 0);
    ASSERT_EQ(getsockname(listener.get(), any, &length), 0);
    sender_.reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(connect(sender_.get(), any, length), 0);
    receiver_.reset(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    ASSERT_TRUE(receiver_);
    const int on = 1;
    setsockopt(sender_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }

  /// Sends a message of 8 bytes and leaves it there for a while; when it was sent.
  uint64_t send_and_wait(milliseconds wait) {
    const uint64_t sent_ticks = clock_.now_ticks();
    EXPECT_EQ(send(sender_.get(), "12345678", 8, 0), 8);
    std::this_thread::sleep_for(wait);
    return sent_ticks;
  }
  /// When it came, or else was read.
  uint64_t receive(size_t bytes) {
    char space[16];
    EXPECT_EQ(clock_.receive(receiver_.get(), space, bytes, &arrival_),
              static_cast<ssize_t>(bytes));
    return arrival_.read_ticks - arrival_.waited_ticks;
  }
  /// A reading of both clocks just before.
  void look() {
    EXPECT_EQ(send(sender_.get(), "x", 1, 0), 1);
    std::this_thread::sleep_for(milliseconds(1));
    receive(1);
  }
  /// The kernel begins with stamps when it finds the time. False: it never does.
  bool wait_for_stamps() {
    ArrivalClock::set_stamps(receiver_.get(), true);
    for (int i = 0; i < 200; ++i) {
      look();
      const uint64_t sent_ticks = send_and_wait(milliseconds(10));
      if (receive(8) < sent_ticks + 5'000'000) return true;
    }
    return false;
  }

  UniqueFd sender_;
  UniqueFd receiver_;
  ArrivalClock clock_{kSource};
  Arrival arrival_;
};

TEST_F(Arrivals, message_that_waited_came_when_it_was_sent) {
  if (!wait_for_stamps()) GTEST_SKIP() << "this kernel has no receive stamps for TCP";
  // Where the processor is busy a stamp may be too old to be trusted.
  int early_count = 0;
  for (int i = 0; i < 200 && early_count < 3; ++i) {
    look();
    const uint64_t sent_ticks = send_and_wait(milliseconds(10));
    const uint64_t arrived_ticks = receive(8);
    EXPECT_GT(arrived_ticks, sent_ticks);
    if (arrived_ticks < sent_ticks + 5'000'000) ++early_count;
  }
  EXPECT_EQ(early_count, 3);
}

TEST_F(Arrivals, message_read_in_two_parts_came_once) {
  if (!wait_for_stamps()) GTEST_SKIP() << "this kernel has no receive stamps for TCP";
  look();
  send_and_wait(milliseconds(2));
  const uint64_t first_ticks = receive(3);
  EXPECT_EQ(receive(5), first_ticks);
}

TEST_F(Arrivals, without_stamps_the_time_of_reading_counts) {
  look();
  const uint64_t sent_ticks = send_and_wait(milliseconds(10));
  EXPECT_GE(receive(8), sent_ticks + 10'000'000);
  EXPECT_EQ(arrival_.waited_ticks, 0u);
}

TEST_F(Arrivals, nothing_there_and_the_end_are_told_as_by_recv) {
  char space[8];
  EXPECT_EQ(clock_.receive(receiver_.get(), space, sizeof(space), &arrival_), -1);
  EXPECT_EQ(errno, EAGAIN);
  sender_.reset();
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(clock_.receive(receiver_.get(), space, sizeof(space), &arrival_), 0);
}

/// Both clocks as they stand `ns` after a moment; two ticks are 1 ns.
Reading reading(int64_t ns, int64_t real_off_ns = 0) {
  return {static_cast<uint64_t>(2 * ns) + 7000, 1'700'000'000'000'000'000 + ns + real_off_ns};
}

TEST(Arrival, is_as_long_ago_as_the_stamp_says) {
  const Reading now = reading(100'000);
  EXPECT_EQ(arrival_ticks(now.real_ns - 30'000, reading(0), now, 2), now.ticks - 60'000);
}

TEST(Arrival, is_trusted_while_realtime_is_slewed_as_ntp_does) {
  const int64_t slewed_ns = 10'000'000 / 2000;  // 500 ppm
  const Reading now = reading(10'000'000, slewed_ns);
  EXPECT_EQ(arrival_ticks(now.real_ns - 30'000, reading(0), now, 2), now.ticks - 60'000);
}

TEST(Arrival, is_not_trusted_where_realtime_was_set_meanwhile) {
  for (const int64_t passed_ns : {60'000, 1'000'000, 19'000'000}) {
    for (const int64_t step_ns : {25'000, 1'000'000, -25'000}) {
      const Reading now = reading(passed_ns, step_ns);
      EXPECT_EQ(arrival_ticks(now.real_ns - 30'000, reading(0), now, 2), 0u)
          << passed_ns << " " << step_ns;
    }
  }
}

TEST(Arrival, is_not_trusted_where_nothing_is_known_of_the_time_before) {
  const Reading now = reading(100'000);
  EXPECT_EQ(arrival_ticks(now.real_ns + 1, reading(0), now, 2), 0u) << "in the future";
  EXPECT_EQ(arrival_ticks(now.real_ns - 100'001, reading(0), now, 2), 0u) << "before the reading";
  EXPECT_EQ(arrival_ticks(now.real_ns - 30'000, Reading{}, now, 2), 0u) << "no reading";
  EXPECT_EQ(arrival_ticks(now.real_ns - 30'000, reading(0), now, 0), 0u) << "no rate";
  EXPECT_EQ(arrival_ticks(now.real_ns - 30'000, now, now, 2), 0u);
  const Reading later = reading(21'000'000);
  EXPECT_EQ(arrival_ticks(later.real_ns - 30'000, reading(0), later, 2), 0u) << "too long ago";
}

#if defined(__x86_64__)
/// Ticks that are no ns.
TEST(Arrival, rate_of_the_tsc_becomes_known) {
  ArrivalClock clock(clock::TickSource::kTsc);
  EXPECT_EQ(clock.to_ns(1'000'000), 0u);
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const UniqueFd one(ends[0]);
  const UniqueFd other(ends[1]);
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(milliseconds(10));
    char byte = 0;
    Arrival arrival;
    ASSERT_EQ(send(one.get(), "x", 1, 0), 1);
    ASSERT_EQ(clock.receive(other.get(), &byte, 1, &arrival), 1);
    EXPECT_EQ(arrival.waited_ticks, 0u);
  }
  const uint64_t begin_ticks = clock.now_ticks();
  const auto begin = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(milliseconds(50));
  const uint64_t ticks = clock.now_ticks() - begin_ticks;
  const std::chrono::nanoseconds passed = std::chrono::steady_clock::now() - begin;
  EXPECT_NEAR(static_cast<double>(clock.to_ns(ticks)), static_cast<double>(passed.count()),
              0.01 * static_cast<double>(passed.count()) + 1e6);
  EXPECT_NEAR(static_cast<double>(clock.to_ticks(clock.to_ns(ticks))), static_cast<double>(ticks),
              0.001 * static_cast<double>(ticks));
}
#endif

}  // namespace
}  // namespace aon::cluster
