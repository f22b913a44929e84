#include "core/cluster/arrival.h"

#include <linux/net_tstamp.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

namespace aon::cluster {
namespace {

constexpr uint64_t kLongestNs = 1'000'000'000'000;
constexpr uint64_t kLeastRateNs = 1'000'000;  ///< of time for a rate of 100 ppm and better
constexpr int kBrackets = 10;

int64_t to_ns(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + int64_t{time.tv_nsec};
}

int64_t read_clock(clockid_t id) {
  timespec now{};
  clock_gettime(id, &now);
  return to_ns(now);
}

/// The software stamp, ns of REALTIME.
std::optional<int64_t> stamp_of(msghdr* message) {
  for (cmsghdr* c = CMSG_FIRSTHDR(message); c != nullptr; c = CMSG_NXTHDR(message, c)) {
    timespec stamp{};
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SO_TIMESTAMPING) continue;
    if (c->cmsg_len < CMSG_LEN(sizeof(stamp))) continue;
    std::memcpy(&stamp, CMSG_DATA(c), sizeof(stamp));
    if (stamp.tv_sec != 0) return to_ns(stamp);
  }
  return std::nullopt;
}

}  // namespace

uint64_t arrival_ticks(int64_t stamp_ns, const Reading& before, const Reading& now,
                       double ticks_per_ns) noexcept {
  if (ticks_per_ns <= 0 || before.ticks == 0 || now.ticks <= before.ticks) return 0;
  const auto waited_ns = static_cast<double>(now.real_ns - stamp_ns);
  const double passed_ns = static_cast<double>(now.ticks - before.ticks) / ticks_per_ns;
  const double uneven_ns = std::abs(static_cast<double>(now.real_ns - before.real_ns) - passed_ns);
  const double doubt_ns = (uneven_ns + kPairingNs) * waited_ns / passed_ns;
  const bool is_trusted = waited_ns >= 0 && waited_ns <= passed_ns && passed_ns <= kMostPassedNs &&
                          uneven_ns <= kMostSlew * passed_ns + kMostDoubtNs &&
                          doubt_ns <= kMostDoubtNs;
  return is_trusted ? now.ticks - static_cast<uint64_t>(waited_ns * ticks_per_ns) : 0;
}

ArrivalClock::ArrivalClock(clock::TickSource source) noexcept
    : source_(source),
      ticks_per_ns_(source == clock::TickSource::kMonotonicRaw ? 1 : 0),
      start_(clock::take_snapshot(source, kBrackets)) {}

void ArrivalClock::set_stamps(int fd, bool are_wanted) noexcept {
  const unsigned flags = are_wanted ? SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE : 0u;
  setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof(flags));
}

ssize_t ArrivalClock::receive(int fd, void* space, size_t bytes, Arrival* arrival) noexcept {
  alignas(cmsghdr) char control[256];
  iovec part{space, bytes};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const ssize_t got = recvmsg(fd, &message, MSG_DONTWAIT);
  if (got <= 0) return got;
  const uint64_t read_ticks = now_ticks();
  const int64_t real_ns = read_clock(CLOCK_REALTIME);
  const Reading now{now_ticks(), real_ns};
  learn_rate(now.ticks);
  *arrival = {read_ticks, 0};
  const std::optional<int64_t> stamp_ns = stamp_of(&message);
  if (stamp_ns && *stamp_ns == stamp_.ns) {  // the rest of a packet
    *arrival = stamp_.arrival;
  } else if (stamp_ns) {
    *arrival = date(*stamp_ns, now, read_ticks);
    stamp_ = {*stamp_ns, *arrival};
  }
  keep(now);
  return got;
}

/// By the newest reading before it came.
Arrival ArrivalClock::date(int64_t stamp_ns, const Reading& now,
                           uint64_t read_ticks) const noexcept {
  for (uint32_t i = 1; i <= std::min(reading_count_, kKept); ++i) {
    const Reading& before = readings_[(reading_count_ - i) % kKept];
    if (before.real_ns >= stamp_ns) continue;
    const uint64_t came_ticks = arrival_ticks(stamp_ns, before, now, ticks_per_ns_);
    if (came_ticks == 0) break;
    return {read_ticks, came_ticks < read_ticks ? read_ticks - came_ticks : 1};
  }
  return {read_ticks, 0};
}

void ArrivalClock::keep(const Reading& now) noexcept { readings_[reading_count_++ % kKept] = now; }

/// Again whenever twice as much time has passed: it becomes ever better.
void ArrivalClock::learn_rate(uint64_t ticks) noexcept {
  if (source_ == clock::TickSource::kMonotonicRaw) return;
  if (ticks - start_.ticks < 2 * rate_ticks_) return;
  const ClockDefinition now = clock::take_snapshot(source_, kBrackets);
  const uint64_t passed_ns = now.monotonic_raw_ns - start_.monotonic_raw_ns;
  if (passed_ns < kLeastRateNs) return;
  rate_ticks_ = now.ticks - start_.ticks;
  ticks_per_ns_ = static_cast<double>(rate_ticks_) / static_cast<double>(passed_ns);
}

uint64_t ArrivalClock::to_ns(uint64_t ticks) const noexcept {
  return ticks_per_ns_ > 0 ? static_cast<uint64_t>(static_cast<double>(ticks) / ticks_per_ns_) : 0;
}

uint64_t ArrivalClock::to_ticks(uint64_t ns) const noexcept {
  const auto within_ns = static_cast<double>(std::min(ns, kLongestNs));
  return static_cast<uint64_t>(within_ns * ticks_per_ns_);
}

}  // namespace aon::cluster
