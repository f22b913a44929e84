/// When a message came, by the kernel's receive stamp: when the network handed it over, not when a
/// thread that slept or had lost its core got to read it (tens of us on an idle core, ms on a busy
/// one). Only the ways of a message are then in an exchange of times, no waking up.
///
///     arrival = now - (REALTIME now - REALTIME of the stamp)
///
/// There is no stamp on Linux before 4.14 and on the first packets after set_stamps(), and it may
/// not be trusted (arrival_ticks). An exchange uses stamps of both ends or of none: the ways would
/// differ by a wake-up.
/// Thread: one.   Cost: two clock reads a message. While a socket asks for stamps the kernel reads
/// its clock for every packet of the node, and the first and last one that asks make it patch its
/// text, which interrupts all cores for some microseconds: so they are for bursts only.
#pragma once

#include <aon/definition.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "core/clock/snapshot.h"

namespace aon::cluster {

constexpr double kPairingNs = 50;  ///< error of pairing two clocks
constexpr double kMostDoubtNs = 100;
constexpr double kMostSlew = 1e-3;  ///< twice what the kernel's own discipline does
constexpr double kMostPassedNs = 20e6;

/// The same moment by both clocks.
struct Reading {
  uint64_t ticks;
  int64_t real_ns;  ///< of REALTIME
};

/// When a message came that has this stamp and was read `now`; 0: the stamp cannot be trusted.
/// REALTIME may be slewed or set, which shows since a reading `before` the message came: not longer
/// than kMostPassedNs ago, with no more than kMostSlew between both clocks, and the doubt
///
///     (what REALTIME and ticks differ by since then + kPairingNs) * time waited / time since then
///
/// at most kMostDoubtNs. Nor where no rate is known (0).
uint64_t arrival_ticks(int64_t stamp_ns, const Reading& before, const Reading& now,
                       double ticks_per_ns) noexcept;

/// When a message was read and, where that is known, had come.
struct Arrival {
  uint64_t read_ticks = 0;
  uint64_t waited_ticks = 0;  ///< in between; 0: not known
};

class ArrivalClock {
 public:
  explicit ArrivalClock(clock::TickSource source) noexcept;

  /// Asks the kernel for stamps on what `fd` receives, or no longer. Not to be had: no error.
  static void set_stamps(int fd, bool are_wanted) noexcept;

  /// recv() without waiting; `*arrival` is that of the last byte of it.
  ssize_t receive(int fd, void* space, size_t bytes, Arrival* arrival) noexcept;

  /// How long so many ticks are and back, up to a thousand seconds; 0 while the rate is not known.
  uint64_t to_ns(uint64_t ticks) const noexcept;
  uint64_t to_ticks(uint64_t ns) const noexcept;
  uint64_t now_ticks() const noexcept { return clock::now_ticks(source_); }

 private:
  static constexpr uint32_t kKept = 8;

  struct Stamp {
    int64_t ns;
    Arrival arrival;
  };

  void learn_rate(uint64_t ticks) noexcept;
  Arrival date(int64_t stamp_ns, const Reading& now, uint64_t read_ticks) const noexcept;
  void keep(const Reading& now) noexcept;

  clock::TickSource source_;
  double ticks_per_ns_;  ///< 0: not known yet
  ClockDefinition start_;
  uint64_t rate_ticks_ = 0;       ///< the rate is that of so many ticks from the start
  Reading readings_[kKept] = {};  ///< the last ones
  uint32_t reading_count_ = 0;
  Stamp stamp_{};
};

}  // namespace aon::cluster
