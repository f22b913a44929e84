#include "writers/steps/find_loops.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "core/base/median.h"

namespace aon::writers::steps {
namespace {

constexpr int kMaxSplits = 8;
constexpr int kMaxGapLevels = 3;
constexpr double kClearGap = 4;  ///< long computations are so many times as long as short ones
constexpr size_t kGapBins = 160;
/// In what an interval weighs a call counts so much, however long it waited: that is others' doing.
constexpr uint64_t kCallWeightNs = 1000;

/// Lower end of Wilson's score interval (E. B. Wilson, J. Am. Stat. Assoc. 22, 1927).
double wilson_low(double good, double all) {
  constexpr double kZ = 1.96;
  if (all == 0) return 0;
  const double share = good / all;
  const double middle = share + kZ * kZ / (2 * all);
  const double spread = kZ * std::sqrt(share * (1 - share) / all + kZ * kZ / (4 * all * all));
  return (middle - spread) / (1 + kZ * kZ / all);
}

using Positions = std::vector<uint32_t>;

class LoopFinder {
 public:
  explicit LoopFinder(std::span<const SampledCall> calls) : calls_(calls), seen_at_(0) {
    std::unordered_map<uint64_t, uint32_t> ids;
    for (size_t i = 0; i < calls.size(); ++i) {
      const auto [found, is_new] =
          ids.try_emplace(calls[i].token, static_cast<uint32_t>(places_.size()));
      if (is_new) places_.emplace_back();
      places_[found->second].push_back(static_cast<uint32_t>(i));
      ids_.push_back(found->second);
    }
    seen_.resize(places_.size());
  }

  std::vector<Candidate> run() {
    for (const uint32_t token : tokens_to_try()) split(places_[token], 0);
    std::stable_sort(found_.begin(), found_.end(), [](const Found& a, const Found& b) {
      return a.candidate.covered_ns > b.candidate.covered_ns;
    });
    if (found_.size() > kMaxCandidates) found_.resize(kMaxCandidates);
    std::vector<Candidate> candidates;
    candidates.reserve(found_.size());
    Bodies bodies;
    for (const Found& one : found_) candidates.push_back(describe(one, &bodies));
    return candidates;
  }

 private:
  struct Interval {
    uint64_t set;
    uint64_t calls;
    uint64_t duration_ns;
    uint64_t compute_ns;
    uint32_t at;
    bool is_matched;
  };
  struct Found {
    Candidate candidate;
    uint32_t model_at;     ///< a usual iteration
    uint32_t model_calls;  ///< of it
    uint32_t first;        ///< anchor
    uint32_t last;         ///< anchor
  };

  /// Those that come often and over a long time; of many that come equally often, the first few.
  std::vector<uint32_t> tokens_to_try() const {
    std::vector<uint32_t> tokens;
    for (uint32_t token = 0; token < places_.size(); ++token) {
      if (places_[token].size() > kLeastSteps) tokens.push_back(token);
    }
    const auto span_ns = [&](uint32_t token) {
      const Positions& places = places_[token];
      return calls_[places.back()].enter_ns - calls_[places.front()].enter_ns;
    };
    std::stable_sort(tokens.begin(), tokens.end(),
                     [&](uint32_t a, uint32_t b) { return span_ns(a) > span_ns(b); });
    std::unordered_map<size_t, size_t> alike;
    std::erase_if(tokens, [&](uint32_t token) { return ++alike[places_[token].size()] > 6; });
    if (tokens.size() > kMaxTokens) tokens.resize(kMaxTokens);
    return tokens;
  }

  /// Parts in which the token comes about equally often are tried each for itself.
  void split(const Positions& places, int depth) {
    if (places.size() <= kLeastSteps) return;
    std::vector<uint64_t> distances;
    for (size_t i = 1; i < places.size(); ++i) distances.push_back(places[i] - places[i - 1]);
    const uint64_t limit = kGapFactor * upper_median(distances);
    const auto is_near = [&](size_t i) { return places[i] - places[i - 1] <= limit; };
    const auto to = [&](size_t i) { return places.begin() + static_cast<std::ptrdiff_t>(i); };
    size_t first = 0;
    bool has_parts = false;
    for (size_t i = 1; i < places.size() && depth < kMaxSplits; ++i) {
      const bool is_last = i + 1 == places.size();
      if (!is_last && is_near(i) == is_near(i + 1)) continue;
      if (is_last && first == 0) break;
      has_parts = true;
      split(Positions(to(first), to(i + 1)), depth + 1);
      first = i;
    }
    if (has_parts) return;
    examine(places);
  }

  /// The token itself, then only where long computations precede it, ever longer ones.
  void examine(const Positions& places) {
    evaluate(places, 0);
    Positions late = places;
    for (int i = 0; i < kMaxGapLevels; ++i) {
      const std::optional<uint64_t> least_gap_ns = long_gap_ns(late);
      if (!least_gap_ns) return;
      std::erase_if(late, [&](uint32_t at) { return gap_ns(at) < *least_gap_ns; });
      if (!evaluate(late, *least_gap_ns)) continue;
      const uint64_t calls = found_.back().candidate.calls;
      Positions spaced;
      for (const uint32_t at : late) {
        if (spaced.empty() || is_next_anchor(at - spaced.back(), calls)) spaced.push_back(at);
      }
      if (spaced.size() == late.size()) continue;
      Found with_all = std::move(found_.back());
      found_.pop_back();
      if (!evaluate(spaced, *least_gap_ns)) found_.push_back(std::move(with_all));
    }
  }

  bool is_whole(size_t from, size_t to) const {
    return calls_[to].number - calls_[from].number == to - from;
  }
  /// Time outside MPI before a call.
  uint64_t gap_ns(uint32_t at) const {
    if (at == 0 || !is_whole(at - 1, at)) return 0;
    return calls_[at].enter_ns - std::min(calls_[at].enter_ns, calls_[at - 1].leave_ns);
  }

  std::optional<uint64_t> long_gap_ns(const Positions& places) const {
    std::vector<uint64_t> gaps_ns;
    for (const uint32_t at : places) gaps_ns.push_back(gap_ns(at));
    return long_ns(gaps_ns);
  }

  /// Where short and long computations part (N. Otsu, IEEE Trans. SMC 9, 1979, on the logarithm);
  /// nothing when there is one kind.
  static std::optional<uint64_t> long_ns(const std::vector<uint64_t>& times_ns) {
    std::vector<double> bins(kGapBins);
    const auto bin_of = [](uint64_t gap) {
      return std::min(kGapBins - 1,
                      static_cast<size_t>(4 * std::log2(static_cast<double>(gap) + 1)));
    };
    for (const uint64_t time_ns : times_ns) ++bins[bin_of(time_ns)];
    const auto all = static_cast<double>(times_ns.size());
    double sum = 0;
    for (size_t b = 0; b < kGapBins; ++b) sum += static_cast<double>(b) * bins[b];
    double below = 0;
    double sum_below = 0;
    double best = 0;
    size_t limit = 0;
    double distance = 0;
    for (size_t b = 0; b + 1 < kGapBins; ++b) {
      below += bins[b];
      sum_below += static_cast<double>(b) * bins[b];
      const double above = all - below;
      if (below == 0 || above == 0) continue;
      const double apart = (sum - sum_below) / above - sum_below / below;
      if (below * above * apart * apart <= best) continue;
      best = below * above * apart * apart;
      limit = b + 1;
      distance = apart;
    }
    if (distance < 4 * std::log2(kClearGap)) return std::nullopt;
    return static_cast<uint64_t>(std::exp2(static_cast<double>(limit) / 4) - 1) + 1;
  }

  /// Hash of the set of tokens from one anchor to the next.
  uint64_t set_of(uint32_t from, uint32_t to) {
    ++seen_at_;
    uint64_t set = 0;
    for (uint32_t i = from; i < to; ++i) {
      if (seen_[ids_[i]] == seen_at_) continue;
      seen_[ids_[i]] = seen_at_;
      set += in_set(calls_[i].token);
    }
    return set;
  }

  /// Time outside MPI from one anchor to the next.
  uint64_t compute_ns(uint32_t from, uint32_t to) const {
    uint64_t sum_ns = 0;
    for (uint32_t i = from + 1; i <= to; ++i) sum_ns += gap_ns(i);
    return sum_ns;
  }

  /// Where every so many intervals one computes long, it is of another kind: they are parts of a
  /// larger iteration. Long ones at irregular distances are the system's doing.
  static void part_by_compute(std::vector<Interval>* intervals) {
    std::vector<uint64_t> times_ns;
    for (const Interval& interval : *intervals) times_ns.push_back(interval.compute_ns);
    const std::optional<uint64_t> limit_ns = long_ns(times_ns);
    if (!limit_ns) return;
    std::unordered_map<size_t, size_t> distances;
    size_t last = 0;
    size_t count = 0;
    for (size_t i = 0; i < intervals->size(); ++i) {
      if ((*intervals)[i].compute_ns < *limit_ns) continue;
      if (count++ != 0) ++distances[i - last];
      last = i;
    }
    size_t most = 0;
    for (const auto& [distance, times] : distances) most = std::max(most, times);
    if (count < 2 ||
        wilson_low(static_cast<double>(most), static_cast<double>(count - 1)) < kLeastShare) {
      return;
    }
    for (Interval& interval : *intervals) {
      if (interval.compute_ns >= *limit_ns) interval.set = ~interval.set;
    }
  }

  bool evaluate(const Positions& places, uint64_t least_gap_ns) {
    std::vector<Interval> intervals;
    for (size_t i = 1; i < places.size(); ++i) {
      const uint32_t from = places[i - 1];
      const uint32_t to = places[i];
      if (!is_whole(from, to)) continue;
      intervals.push_back({set_of(from, to), to - from, calls_[to].enter_ns - calls_[from].enter_ns,
                           compute_ns(from, to), from, false});
    }
    if (intervals.size() < kLeastSteps) return false;
    part_by_compute(&intervals);
    std::unordered_map<uint64_t, size_t> by_set;
    for (const Interval& interval : intervals) ++by_set[interval.set];
    const auto usual =
        std::max_element(by_set.begin(), by_set.end(), [](const auto& a, const auto& b) {
          return a.second != b.second ? a.second < b.second : a.first < b.first;
        });
    return accept(usual->first, &intervals, places, least_gap_ns);
  }

  bool accept(uint64_t usual, std::vector<Interval>* intervals, const Positions& places,
              uint64_t least_gap_ns) {
    std::vector<uint64_t> calls;
    for (const Interval& interval : *intervals) {
      if (interval.set == usual) calls.push_back(interval.calls);
    }
    const uint64_t usual_calls = upper_median(calls);
    std::vector<uint64_t> matched_ns;
    std::unordered_map<uint64_t, std::vector<uint64_t>> other_ns;  // by set
    double sum_ns = 0;
    for (Interval& interval : *intervals) {
      interval.is_matched = interval.set == usual && 2 * interval.calls >= usual_calls &&
                            interval.calls <= 2 * usual_calls;
      const uint64_t weight_ns = interval.compute_ns + interval.calls * kCallWeightNs;
      (interval.is_matched ? matched_ns : other_ns[interval.set]).push_back(weight_ns);
      sum_ns += static_cast<double>(interval.duration_ns);
    }
    const auto all = static_cast<double>(intervals->size());
    const auto good = static_cast<double>(matched_ns.size());
    if (wilson_low(good, all) < kLeastShare) return false;
    Candidate candidate;
    candidate.token = calls_[places.front()].token;
    candidate.region = calls_[places.front()].region;
    candidate.least_gap_ns = least_gap_ns;
    candidate.calls = usual_calls;
    candidate.begin_ns = calls_[places.front()].enter_ns;
    candidate.end_ns = calls_[places.back()].enter_ns;
    candidate.period_ns = sum_ns / all;
    candidate.matched = good / all;
    // Medians: a step that was held up by the system is as good as another.
    const double good_ns = good * static_cast<double>(upper_median(matched_ns));
    double rest_ns = 0;
    for (auto& [set, times_ns] : other_ns) {
      rest_ns += static_cast<double>(times_ns.size()) * static_cast<double>(upper_median(times_ns));
    }
    const auto span_ns = static_cast<double>(candidate.end_ns - candidate.begin_ns);
    candidate.covered_ns = good_ns == 0 ? 0 : span_ns * good_ns / (good_ns + rest_ns);
    const auto run_ns = static_cast<double>(calls_.back().leave_ns - calls_.front().enter_ns);
    if (candidate.covered_ns < kLeastCover * run_ns) return false;
    const auto model = std::find_if(intervals->begin(), intervals->end(), [&](const Interval& one) {
      return one.is_matched && one.calls == usual_calls;
    });
    const Interval& usual_one = model == intervals->end() ? intervals->front() : *model;
    found_.push_back({std::move(candidate), usual_one.at, static_cast<uint32_t>(usual_one.calls),
                      places.front(), places.back()});
    return true;
  }

  /// The pattern, and where in it an iteration begins: as far before the first anchor as the calls
  /// are already the pattern's. The last one is complete when all that remains of it follows.
  Candidate describe(const Found& found, Bodies* bodies) {
    Candidate candidate = found.candidate;
    const uint32_t first = found.first;
    const uint32_t last = found.last;
    candidate.token_set = set_of(found.model_at, found.model_at + found.model_calls);
    candidate.body = bodies->add(tokens_of(found));
    const Body& body = candidate.body;
    uint32_t lead = 0;
    while (lead + 1 < body.size() && lead < first && is_whole(first - lead - 1, first) &&
           calls_[first - lead - 1].token == body[body.size() - 1 - lead]) {
      ++lead;
    }
    candidate.lead_calls = lead;
    candidate.from_ns = calls_[first - lead].enter_ns;
    candidate.until_ns = candidate.end_ns;
    const size_t rest = body.size() - lead;
    if (body.empty() || calls_.size() - last < rest || !is_whole(last, last + rest - 1)) {
      return candidate;
    }
    for (size_t i = 0; i < rest; ++i) {
      if (calls_[last + i].token != body[i]) return candidate;
    }
    candidate.until_ns = calls_[last + rest - 1].leave_ns;
    return candidate;
  }

  /// None of an iteration that is too long for a body.
  std::vector<uint64_t> tokens_of(const Found& found) const {
    std::vector<uint64_t> tokens;
    if (found.model_calls > kMaxBody) return tokens;
    for (uint32_t i = 0; i < found.model_calls; ++i) {
      tokens.push_back(calls_[found.model_at + i].token);
    }
    return tokens;
  }

  std::span<const SampledCall> calls_;
  std::vector<Positions> places_;  ///< by token's number
  std::vector<uint32_t> ids_;      ///< by call
  std::vector<uint32_t> seen_;     ///< by token's number
  uint32_t seen_at_;
  std::vector<Found> found_;
};

}  // namespace

double overlap(const Candidate& a, const Candidate& b) {
  const uint64_t begin = std::max(a.from_ns, b.from_ns);
  const uint64_t end = std::min(a.until_ns, b.until_ns);
  const uint64_t shorter = std::min(a.until_ns - a.from_ns, b.until_ns - b.from_ns);
  if (end <= begin || shorter == 0) return 0;
  return static_cast<double>(end - begin) / static_cast<double>(shorter);
}

std::vector<Candidate> find_candidates(std::span<const SampledCall> calls) {
  if (calls.size() <= kLeastSteps) return {};
  return LoopFinder(calls).run();
}

std::vector<size_t> choose_loops(std::span<const Candidate> candidates) {
  std::vector<size_t> left(candidates.size());
  std::iota(left.begin(), left.end(), size_t{0});
  std::vector<size_t> chosen;
  while (!left.empty() && chosen.size() < kMaxLoops) {
    const Candidate& best = candidates[left.front()];
    size_t innermost = left.front();
    for (const size_t i : left) {
      const Candidate& one = candidates[i];
      if (one.covered_ns < kInnermost * best.covered_ns || overlap(one, best) < 0.8) continue;
      const Candidate& chosen_now = candidates[innermost];
      const bool is_inner = one.period_ns < 0.98 * chosen_now.period_ns;
      const bool is_same = one.period_ns < 1.02 * chosen_now.period_ns;
      if (is_inner || (is_same && one.matched > chosen_now.matched)) innermost = i;
    }
    chosen.push_back(innermost);
    std::erase_if(left, [&](size_t i) {
      return i == innermost || overlap(candidates[i], candidates[innermost]) > 0.1;
    });
  }
  return chosen;
}

}  // namespace aon::writers::steps
