/// When a message came, by the kernel's receive stamp: that is when the network handed it over, not
/// when a thread that slept or had lost its core got to read it (tens of us on an idle core, ms on a
/// busy one). Only the ways of a message are then in an exchange of times, no waking up.
///
///     arrival = now - (REALTIME now - REALTIME of the stamp)
///
/// Without a stamp (Linux before 4.14, the first packets after set_stamps()) or where it cannot be
/// trusted (arrival_ticks) the time of reading counts. What counts is never later than that.
/// Thread: one.   Cost: two clock reads a message. While any socket asks for stamps the kernel reads
/// its clock for every packet of the node: so they are for bursts only.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "core/clock/snapshot.h"

namespace aon::cluster {

constexpr double kReadNs = 50;  ///< error of pairing two clocks
constexpr double kMostDoubtNs = 100;

/// The same moment by both clocks.
struct Reading {
  uint64_t ticks;
  int64_t real_ns;  ///< of REALTIME
};

/// When a message came that has this stamp and was read `now`. REALTIME may be slewed or set, which
/// shows since the reading `last`: the doubt of a stamp is
///
///     (what REALTIME and ticks differ by since then + kReadNs) * time waited / time since then
///
/// and above kMostDoubtNs the time of reading counts, as it does where no rate is known (0).
uint64_t arrival_ticks(int64_t stamp_ns, const Reading& last, const Reading& now,
                       double ticks_per_ns) noexcept;

class ArrivalClock {
 public:
  explicit ArrivalClock(clock::TickSource source) noexcept;

  /// Asks the kernel for stamps on what `fd` receives, or no longer. Not to be had: no error.
  static void set_stamps(int fd, bool are_wanted) noexcept;

  /// recv() without waiting; `*arrived_ticks` is when the last byte of it came.
  ssize_t receive(int fd, void* space, size_t bytes, uint64_t* arrived_ticks) noexcept;

  /// How long so many ticks are and back, up to a thousand seconds; 0 while the rate is not known.
  uint64_t to_ns(uint64_t ticks) const noexcept;
  uint64_t to_ticks(uint64_t ns) const noexcept;
  uint64_t now_ticks() const noexcept { return clock::now_ticks(source_); }

 private:
  struct Stamp {
    int64_t ns;
    uint64_t arrived_ticks;
  };

  void learn_rate(uint64_t now_ticks) noexcept;

  clock::TickSource source_;
  double ticks_per_ns_;  ///< 0: not known yet
  uint64_t start_ticks_;
  int64_t start_raw_ns_;
  Reading last_{};  ///< when a stamp was read last
  Stamp stamp_{};
};

}  // namespace aon::cluster
