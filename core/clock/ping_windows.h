/// The exchanges of two nodes' agents -> where the peer's clock stood against this node's, window
/// by window. A window is one burst of pings (or at most half a second of scattered ones).
///
/// Each exchange holds the offset d (peer minus own) between two limits, whatever the network did:
///
///     own      sent ---------------------------------> received
///     peer           peer_received ----> peer_sent
///     d(sent) <= peer_received - sent = high          d(received) >= peer_sent - received = low
///
/// Of a window the smallest `high` and the largest `low` count, each for itself: a message delayed
/// on one way spoils only that side. The offset is taken in the middle, and
///
///     width = high - low = the two shortest ways of the window together
///     floor = the smallest width of all windows;  excess of a window = its width - floor
///
/// so that the middle is off by at most excess / 2 as long as the two ways are equally long when
/// nothing delays them. What is added for ways that are not: cluster_clock.h.
/// Limits that contradict most of the others of their window (a broken or hostile peer) are left
/// out by Marzullo's intersection (K. Marzullo, 1984; RFC 5905, 11.2.1), and counted.
/// Thread: any.   Cost: O(n log n) of a window's pings; 32 bytes per exchange.
#pragma once

#include <cstdint>
#include <vector>

namespace aon::clock {

constexpr double kReadNs = 100;  ///< error of a reading, of a stamp too (core/cluster/arrival.h)

/// Two limits of d and the own times at which they hold, ns.
struct Exchange {
  int64_t low_at_ns;
  int64_t low_ns;
  int64_t high_at_ns;
  int64_t high_ns;
};

struct PingWindow {
  double at_ns;      ///< own time, from PingWindows::origin_ns on
  double offset_ns;  ///< of d, from PingWindows::base_ns on
  double width_ns;
  double length_ns;   ///< from its first exchange to its last
  double density_ns;  ///< how far the third best of both sides are from the best
  uint32_t count;
};

struct PingWindows {
  int64_t origin_ns = 0;
  int64_t base_ns = 0;
  std::vector<PingWindow> windows;  ///< in time order
  double floor_ns = 0;
  double floor_doubt_ns = 0;  ///< how much lower it may be: it was met only so closely
  double drift = 0;           ///< of d, ns per ns, over all windows
  double drift_doubt = 0;     ///< bound of the error of `drift`
  double delayed_share = 0;   ///< of all exchanges, that took half as long again as the floor
  uint64_t ping_count = 0;    ///< used ones
  uint64_t dropped_count = 0;

  /// How far the offset of `window` may be off when both ways are equally long.
  double spread_ns(const PingWindow& window) const;
};

/// Order does not matter; `exchanges` is sorted.
PingWindows find_windows(std::vector<Exchange>* exchanges);

}  // namespace aon::clock
