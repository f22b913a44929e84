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
constexpr int64_t kLeastRateNs = 1'000'000;  ///< of time for a rate of 100 ppm and better

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

uint64_t arrival_ticks(int64_t stamp_ns, const Reading& last, const Reading& now,
                       double ticks_per_ns) noexcept {
  if (ticks_per_ns <= 0 || last.ticks == 0 || now.ticks <= last.ticks) return now.ticks;
  const auto waited_ns = static_cast<double>(now.real_ns - stamp_ns);
  const double passed_ns = static_cast<double>(now.ticks - last.ticks) / ticks_per_ns;
  const double uneven_ns = static_cast<double>(now.real_ns - last.real_ns) - passed_ns;
  const double doubt_ns = (std::abs(uneven_ns) + kReadNs) * waited_ns / passed_ns;
  const double waited_ticks = waited_ns * ticks_per_ns;
  const bool is_trusted =
      waited_ns >= 0 && doubt_ns <= kMostDoubtNs && waited_ticks < static_cast<double>(now.ticks);
  return is_trusted ? now.ticks - static_cast<uint64_t>(waited_ticks) : now.ticks;
}

ArrivalClock::ArrivalClock(clock::TickSource source) noexcept
    : source_(source),
      ticks_per_ns_(source == clock::TickSource::kMonotonicRaw ? 1 : 0),
      start_ticks_(clock::now_ticks(source)),
      start_raw_ns_(read_clock(CLOCK_MONOTONIC_RAW)) {}

void ArrivalClock::set_stamps(int fd, bool are_wanted) noexcept {
  const unsigned flags = are_wanted ? SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE : 0u;
  setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof(flags));
}

ssize_t ArrivalClock::receive(int fd, void* space, size_t bytes, uint64_t* arrived_ticks) noexcept {
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
  const uint64_t ticks = now_ticks();
  learn_rate(ticks);
  const std::optional<int64_t> stamp_ns = stamp_of(&message);
  if (stamp_ns && *stamp_ns == stamp_.ns) {  // the rest of a packet
    *arrived_ticks = stamp_.arrived_ticks;
    return got;
  }
  *arrived_ticks = read_ticks;
  const Reading now{ticks, real_ns};
  if (stamp_ns)
    *arrived_ticks = std::min(read_ticks, arrival_ticks(*stamp_ns, last_, now, ticks_per_ns_));
  if (stamp_ns || last_.ticks == 0) last_ = now;
  if (stamp_ns) stamp_ = {*stamp_ns, *arrived_ticks};
  return got;
}

void ArrivalClock::learn_rate(uint64_t now_ticks) noexcept {
  if (ticks_per_ns_ > 0) return;
  const int64_t passed_ns = read_clock(CLOCK_MONOTONIC_RAW) - start_raw_ns_;
  if (passed_ns < kLeastRateNs) return;
  ticks_per_ns_ = static_cast<double>(now_ticks - start_ticks_) / static_cast<double>(passed_ns);
}

uint64_t ArrivalClock::to_ns(uint64_t ticks) const noexcept {
  return ticks_per_ns_ > 0 ? static_cast<uint64_t>(static_cast<double>(ticks) / ticks_per_ns_) : 0;
}

uint64_t ArrivalClock::to_ticks(uint64_t ns) const noexcept {
  const auto within_ns = static_cast<double>(std::min(ns, kLongestNs));
  return static_cast<uint64_t>(within_ns * ticks_per_ns_);
}

}  // namespace aon::cluster
