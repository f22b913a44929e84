// Which rank makes the others wait: by its steps, by the collectives it comes last to, by its time
// outside MPI, or by coming late to the end.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/base/median.h"
#include "writers/ledger/findings.h"

namespace aon::writers {
namespace {

constexpr double kNsPerSecond = 1e9;
constexpr double kSlowRatio = 1.1;        ///< of the slowest rank's own time to the median
constexpr double kAlikeRatio = 0.9;       ///< of own times that are called the same
constexpr double kLeastSlowShare = 0.01;  ///< of the ranks' time, lost to a slow rank
constexpr double kMostLostShare = 0.01;   ///< of a rank's time, without records, to know its own
constexpr double kLeastEndShare = 0.02;   ///< of the ranks' time, waited at the end
constexpr double kLeastLeftOutShare = 0.05;
constexpr double kCauseShare = 0.5;  ///< of all waiting
constexpr size_t kMaxNamed = 4;
constexpr double kAbortWeight = 1e13;  ///< before all else: it ended the job

double share_of(uint64_t part, uint64_t all) {
  return static_cast<double>(part) / static_cast<double>(std::max<uint64_t>(all, 1));
}

}  // namespace

Findings::WaitTimes Findings::wait_times() const {
  WaitTimes times;
  times.wait_ns.resize(ranks_.size());
  times.polled_ns.resize(ranks_.size());
  times.sure_ns.resize(ranks_.size());
  if (waits_ == nullptr) return times;
  for (const WaitRow& row : waits_->rows) {
    const Group& group = model_->groups[model_->locations[row.location].group];
    if (!group.rank) continue;
    if (row.is_polled) {
      times.polled_ns[*group.rank] += row.wait_ns;
      continue;
    }
    times.by_kind_ns[static_cast<size_t>(row.kind)] += row.wait_ns;
    times.wait_ns[*group.rank] += row.wait_ns;
    times.sum_ns += row.wait_ns;
    if (is_upper_bound(row.kind)) continue;
    times.sure_ns[*group.rank] += row.wait_ns;
    times.sum_sure_ns += row.wait_ns;
  }
  // What was left out may have waited as well: after a loss that is most of a run.
  const uint64_t ends = 2 * waits_->message_count + waits_->unmatched_count;
  const uint64_t unmatched = waits_->incomplete_count - waits_->of_some_count;
  const uint64_t collectives = waits_->collective_count + unmatched;
  const double of_messages = share_of(waits_->unmatched_count, ends);
  const double of_collectives = share_of(unmatched, collectives);
  times.left_out = std::max(of_messages, of_collectives);
  times.holes = waits_->holes;
  times.is_left_out_collective = of_collectives >= of_messages;
  times.is_whole = times.left_out <= kLeastLeftOutShare;
  return times;
}

uint64_t Findings::WaitTimes::of_others_ns(std::span<const size_t> ranks) const {
  uint64_t waited_ns = sum_ns;
  for (const size_t rank : ranks) waited_ns -= wait_ns[rank];
  return waited_ns;
}

std::string Findings::WaitTimes::of_others_text(std::span<const size_t> ranks,
                                                double lost_ns) const {
  uint64_t others_sure_ns = sum_sure_ns;
  for (const size_t rank : ranks) others_sure_ns -= sure_ns[rank];
  const auto text = [&](uint64_t waited_ns) {
    return seconds_text(std::min(lost_ns, static_cast<double>(waited_ns)) / kNsPerSecond);
  };
  const std::string most = text(of_others_ns(ranks));
  return text(others_sure_ns) == most ? most : "at most " + most;
}

std::string Findings::name_of(size_t rank) const {
  std::string number = std::to_string(rank);
  if (model_->job->nodes.size() < 2) return number;
  for (const Group& group : model_->groups) {
    if (group.rank == rank) return number + " on " + model_->job->nodes[group.node].host;
  }
  return number;
}

/// "rank 3", "ranks 0, 2".
std::string Findings::names_of(const std::vector<size_t>& ranks) const {
  std::string text = ranks.size() == 1 ? "rank" : "ranks";
  for (size_t i = 0; i < std::min(ranks.size(), kMaxNamed); ++i)
    text += (i == 0 ? " " : ", ") + name_of(ranks[i]);
  if (ranks.size() > kMaxNamed) text += fmt::format(" and {} more", ranks.size() - kMaxNamed);
  return text;
}

/// Some launchers kill all ranks then, and their exits do not tell which one it was.
void Findings::add_aborts(std::vector<Finding>* findings) const {
  std::vector<size_t> aborted;
  for (size_t r = 0; r < ranks_.size(); ++r) {
    if (ranks_[r].has_aborted) aborted.push_back(r);
  }
  if (!aborted.empty())
    findings->push_back({kAbortWeight, names_of(aborted) + " called MPI_Abort"});
}

uint64_t Findings::span_ns(const RankTime& rank) const {
  if (rank.last_ns > rank.first_ns) return rank.last_ns - rank.first_ns;
  return model_->end_ns - std::min(model_->start_ns, model_->end_ns);
}

double Findings::weight_of_cause_s(const WaitTimes& waits, double lost_ns) const {
  constexpr double kBefore = 1.001;
  const auto waited_ns = static_cast<double>(waits.sum_ns);
  const auto top = top_call();
  const double call_ns = top ? static_cast<double>(top->second) : 0;
  double weight_ns = lost_ns;
  for (const double explained_ns : {waited_ns, call_ns}) {
    if (lost_ns >= kCauseShare * explained_ns)
      weight_ns = std::max(weight_ns, kBefore * explained_ns);
  }
  return weight_ns / kNsPerSecond;
}

/// Each tells the same, less exactly than the one before it; but two of them may see two ranks.
void Findings::add_culprits(const WaitTimes& waits, std::vector<Finding>* findings) const {
  const std::optional<Blame> in_steps = add_steps(waits, findings);
  std::optional<Blame> late = find_late_rank(waits);
  if (in_steps && late && in_steps->rank == late->rank) late.reset();
  if (in_steps) findings->push_back(in_steps->finding);
  if (late) findings->push_back(late->finding);
  if (!in_steps && !late) add_slow_rank(waits, findings);
  add_late_end(findings);
}

void Findings::add_slow_rank(const WaitTimes& waits, std::vector<Finding>* findings) const {
  std::vector<double> own_s;
  std::vector<size_t> known;
  bool has_polled = false;
  for (size_t r = 0; r < ranks_.size(); ++r) {
    const RankTime& rank = ranks_[r];
    // What was lost may have been calls of MPI.
    const bool is_known = share_of(rank.lost_ns, span_ns(rank)) <= kMostLostShare;
    if (rank.mpi_ns == 0 || !is_known) continue;
    // A rank that polls may wait all that time.
    const uint64_t between_polls_ns =
        waits.polled_ns[r] - std::min(waits.polled_ns[r], rank.poll_ns);
    has_polled |= between_polls_ns != 0;
    const uint64_t in_mpi_ns = rank.mpi_ns + between_polls_ns;
    const uint64_t all_ns = span_ns(rank);
    own_s.push_back(static_cast<double>(all_ns - std::min(all_ns, in_mpi_ns)) / kNsPerSecond);
    known.push_back(r);
  }
  if (known.size() < 2) return;
  const auto slowest = std::max_element(own_s.begin(), own_s.end());
  // Of two ranks the faster is what the other is compared with.
  const double slowest_s = *slowest, middle_s = lower_median(own_s);
  if (slowest_s < middle_s * kSlowRatio || slowest_s - middle_s < 1e-3) return;
  std::vector<size_t> alike;
  for (size_t i = 0; i < known.size(); ++i) {
    if (own_s[i] >= std::max(slowest_s * kAlikeRatio, middle_s * kSlowRatio))
      alike.push_back(known[i]);
  }
  const double lost_s = (slowest_s - middle_s) * static_cast<double>(known.size() - alike.size());
  if (lost_s * kNsPerSecond < kLeastSlowShare * static_cast<double>(total_ns())) return;
  // Where the waiting is not there, the others had other things to do; where it is not known,
  // nobody says that they waited.
  const double waited_s = static_cast<double>(waits.of_others_ns(alike)) / kNsPerSecond;
  const bool is_waited_for = waits.is_whole && waited_s >= kLeastWaitedShare * lost_s;
  std::string text = fmt::format("{} {} {} outside MPI{}, {} longer than the median ({})",
                                 names_of(alike), alike.size() == 1 ? "is" : "are",
                                 seconds_text(slowest_s), has_polled ? " and its polling" : "",
                                 seconds_text(slowest_s - middle_s), seconds_text(middle_s));
  if (is_waited_for)
    text += fmt::format(": the others wait {} in all for {}",
                        waits.of_others_text(alike, lost_s * kNsPerSecond),
                        alike.size() == 1 ? "it" : "them");
  if (alike.size() == 1) text += computing_steps_text(alike.front(), lost_s * kNsPerSecond);
  double weight_s = waits.is_whole ? std::min(lost_s, waited_s) : lost_s;
  if (is_waited_for) weight_s = weight_of_cause_s(waits, lost_s * kNsPerSecond);
  findings->push_back({weight_s, text});
}

/// MPI_Finalize waits for all: who comes last to it is there for the shortest time.
void Findings::add_late_end(std::vector<Finding>* findings) const {
  if (ranks_.size() < 2) return;
  size_t last = 0;
  uint64_t sum_ns = 0;
  uint64_t longest_ns = 0;
  for (size_t r = 0; r < ranks_.size(); ++r) {
    if (ranks_[r].finalize_ns == 0) return;
    if (ranks_[r].finalize_ns < ranks_[last].finalize_ns) last = r;
    sum_ns += ranks_[r].finalize_ns;
    longest_ns = std::max(longest_ns, ranks_[r].finalize_ns);
  }
  if (ranks_[last].finalize_ns * 2 > longest_ns) return;
  const uint64_t lost_ns = sum_ns - ranks_[last].finalize_ns * ranks_.size();
  if (static_cast<double>(lost_ns) < kLeastEndShare * static_cast<double>(total_ns())) return;
  findings->push_back(
      {static_cast<double>(lost_ns) / kNsPerSecond,
       fmt::format("rank {} comes last to MPI_Finalize: the others wait {} for it there",
                   name_of(last), seconds_text(static_cast<double>(lost_ns) / kNsPerSecond))});
}

}  // namespace aon::writers
