#include "cupti/clock.h"

#include <algorithm>

namespace aon::cupti {
namespace {

constexpr double kMaxDeviation = 0.01;  ///< of a rate from the usual one: more is a step

uint64_t moved(uint64_t ticks, uint64_t from_ns, uint64_t to_ns, double ticks_per_ns) {
  const bool is_later = to_ns >= from_ns;
  const double distance_ns = static_cast<double>(is_later ? to_ns - from_ns : from_ns - to_ns);
  const double exact = distance_ns * ticks_per_ns;
  auto distance = static_cast<uint64_t>(exact);
  if (exact - static_cast<double>(distance) >= 0.5) ++distance;
  if (is_later) return ticks + distance;
  return ticks > distance ? ticks - distance : 0;
}

}  // namespace

/// Beyond what near_at() may be asked for: far away, or before the zero of the ticks.
uint64_t DeviceClock::Line::far_at(uint64_t ns) const {
  return moved(pair.ticks, pair.ns, ns, ticks_per_ns);
}

uint64_t DeviceClock::far_to_ticks(uint64_t ns) {
  if (ns < line_.from_ns || ns > line_.to_ns) find_line(ns);
  return ns - line_.near_from_ns < line_.near_count ? line_.near_at(ns) : line_.far_at(ns);
}

double DeviceClock::rate(const ClockPair& a, const ClockPair& b) const {
  if (b.ns <= a.ns || b.ticks <= a.ticks) return usual_rate();
  const double measured = static_cast<double>(b.ticks - a.ticks) / static_cast<double>(b.ns - a.ns);
  const double deviation = measured / usual_rate() - 1;
  return deviation < -kMaxDeviation || deviation > kMaxDeviation ? usual_rate() : measured;
}

/// Two stretches after one another that agree are right, whatever was usual before: the first rate
/// of all is measured over a short time.
double DeviceClock::next_rate(const ClockPair& a, const ClockPair& b) {
  const double accepted = rate(a, b);
  if (b.ns <= a.ns || b.ticks <= a.ticks) return accepted;
  const double measured = static_cast<double>(b.ticks - a.ticks) / static_cast<double>(b.ns - a.ns);
  const double deviation = rejected_ == 0 ? 1 : measured / rejected_ - 1;
  const bool is_confirmed = deviation > -kMaxDeviation && deviation < kMaxDeviation;
  rejected_ = accepted == measured || is_confirmed ? 0 : measured;
  return is_confirmed ? measured : accepted;
}

void DeviceClock::add(const ClockPair& pair) {
  line_ = {};
  note_plausible(pair.ns);
  if (count_ == 1 && pair.ns > at(0).ns && pair.ticks > at(0).ticks) {
    ticks_per_ns_ =
        static_cast<double>(pair.ticks - at(0).ticks) / static_cast<double>(pair.ns - at(0).ns);
  } else if (count_ > 1) {
    ticks_per_ns_ = next_rate(at(count_ - 1), pair);
  }
  if (count_ == kPairs) {
    first_ = (first_ + 1) % kPairs;
  } else {
    ++count_;
  }
  pairs_[(first_ + count_ - 1) % kPairs] = pair;
  was_set_back_ = was_set_back();
}

void DeviceClock::note_plausible(uint64_t ns) {
  const uint64_t from = ns > kFarNs ? ns - kFarNs : 0;
  const uint64_t until = ns + kFarNs;
  if (plausible_count_ == 0) {
    plausible_from_ns_ = from;
    plausible_count_ = until - from;
    return;
  }
  const uint64_t last = plausible_from_ns_ + plausible_count_;
  if (from < plausible_from_ns_) plausible_from_ns_ = from;
  plausible_count_ = (until > last ? until : last) - plausible_from_ns_;
}

bool DeviceClock::was_set_back() const {
  for (uint32_t i = 1; i < count_; ++i) {
    if (at(i).ns < at(i - 1).ns) return true;
  }
  return false;
}

void DeviceClock::set_line(const Line& line) {
  constexpr double kMaxRate = 1 << 20;
  line_ = line;
  line_.near_count = 0;
  const bool is_usual = line.ticks_per_ns > 0 && line.ticks_per_ns < kMaxRate;
  if (!is_usual) return;
  const double fixed = line.ticks_per_ns * static_cast<double>(int64_t{1} << kFixedBits);
  line_.fixed_rate = static_cast<int64_t>(fixed);
  // A little less than what is left to the zero of the ticks.
  const double left_ns = 0.999999 * static_cast<double>(line.pair.ticks) / line.ticks_per_ns;
  const uint64_t back_ns =
      left_ns < static_cast<double>(kNearNs) ? static_cast<uint64_t>(left_ns) : kNearNs;
  const uint64_t first_ns = line.pair.ns > back_ns ? line.pair.ns - back_ns : 0;
  const uint64_t last_ns = std::min(line.to_ns, line.pair.ns + kNearNs);
  line_.near_from_ns = std::max(line.from_ns, first_ns);
  line_.near_count = last_ns >= line_.near_from_ns ? last_ns - line_.near_from_ns + 1 : 0;
}

/// The latest stretch between two pairs that may hold the time: so long before the later one, or
/// behind the other. A line holds for this time alone, for others may be of other stretches.
/// False: none does.
bool DeviceClock::find_line_among_steps(uint64_t ns) {
  const ClockPair& last = at(count_ - 1);
  if (ns >= last.ns && ns - last.ns <= kAheadNs) return false;
  for (uint32_t i = count_ - 1; i > 0; --i) {
    const ClockPair& a = at(i - 1);
    const ClockPair& b = at(i);
    const double stretch = rate(a, b);
    const auto length_ns = static_cast<uint64_t>(static_cast<double>(b.ticks - a.ticks) / stretch);
    const bool is_before_b = ns <= b.ns && b.ns - ns <= length_ns;
    if (!is_before_b && (ns < a.ns || ns - a.ns > length_ns)) continue;
    set_line({ns, ns, is_before_b ? b : a, stretch});
    return true;
  }
  return false;
}

/// The stretch of the time; of one with a step in it, a half: the end that is nearer is right for
/// most of it.
void DeviceClock::find_line(uint64_t ns) {
  if (count_ == 0) {
    set_line({0, UINT64_MAX, {}, 0});
    return;
  }
  if (was_set_back_) {
    if (find_line_among_steps(ns)) return;
    const ClockPair& nearest = ns < at(0).ns && ns < at(count_ - 1).ns ? at(0) : at(count_ - 1);
    set_line({ns, ns, nearest, usual_rate()});
    return;
  }
  uint32_t later = count_ - 1;
  while (later > 0 && at(later - 1).ns >= ns) --later;
  if (later == 0) {
    const double first_rate = count_ > 1 ? rate(at(0), at(1)) : usual_rate();
    const uint64_t to_ns = count_ > 1 ? at(0).ns : UINT64_MAX;
    set_line({0, to_ns, at(0), first_rate});
    return;
  }
  const ClockPair& a = at(later - 1);
  const ClockPair& b = at(later);
  const double stretch = rate(a, b);
  const double ticks = stretch * static_cast<double>(b.ns - a.ns);
  const double wrong = ticks - static_cast<double>(b.ticks - a.ticks);
  const bool has_step = wrong > kMaxDeviation * ticks || wrong < -kMaxDeviation * ticks;
  const uint64_t middle_ns = a.ns + (b.ns - a.ns) / 2;
  const bool is_last = later == count_ - 1;
  if (has_step && ns <= middle_ns && ns < b.ns) {
    set_line({a.ns + 1, middle_ns, a, stretch});
  } else {
    set_line({has_step ? middle_ns + 1 : a.ns + 1, is_last ? UINT64_MAX : b.ns, b, stretch});
  }
}

}  // namespace aon::cupti
