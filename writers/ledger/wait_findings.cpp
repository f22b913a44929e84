// How long the ranks waited for late partners, and how much of that is not known.

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/base/digits.h"
#include "writers/ledger/findings.h"

namespace aon::writers {
namespace {

constexpr double kNsPerSecond = 1e9;
constexpr double kLeastWaitShare = 0.01;
constexpr double kMostLeftOutShare = 0.5;  ///< then it is told how little is known

std::string hole_text(Hole hole, uint64_t count) {
  const std::string processes = count == 1 ? "1 process " : grouped(count) + " processes ";
  switch (hole) {
    case Hole::kLoss:
      return processes + "lost records";
    case Hole::kFailure:
      return processes + "had calls that failed";
    case Hole::kPause:
      return processes + "paused the recording";
    case Hole::kReceive:
      return processes + "had receives that were freed or not seen to complete";
    case Hole::kProbe:
      return processes + "received messages between a matched probe and its receive";
    case Hole::kThreads:
      return "several threads of a process use the same communicator and tag";
    case Hole::kWorlds:
      return "communicators have spawned or connected processes";
    case Hole::kUnreceived:
      return fmt::format("of {} message{} the send is there and no receive", grouped(count),
                         count == 1 ? "" : "s");
  }
  return "";
}

/// ": 3 processes lost records, 1 process had calls that failed"; "" without a known reason.
std::string why_text(const Holes& holes) {
  const std::vector<std::string> texts = hole_texts(holes);
  return texts.empty() ? "" : fmt::format(": {}", fmt::join(texts, ", "));
}

std::string percent(double share) { return fmt::format("{:.1f} %", share * 100); }

}  // namespace

std::vector<std::string> hole_texts(const Holes& holes) {
  std::vector<std::string> texts;
  for (uint8_t i = 0; i < kHoleCount; ++i) {
    // What other holes hide are receives, too: their reason is enough.
    if (static_cast<Hole>(i) == Hole::kUnreceived && !texts.empty()) continue;
    if (holes.counts[i] != 0) texts.push_back(hole_text(static_cast<Hole>(i), holes.counts[i]));
  }
  return texts;
}

std::string Findings::WaitTimes::left_out_text() const {
  const char* noun = is_left_out_collective ? "collective" : "message";
  if (left_out >= 1) return fmt::format("no {} could be matched", noun) + why_text(holes);
  const std::string share =
      left_out > 0.99 ? "more than 99 %" : fmt::format("{:.0f} %", left_out * 100);
  return fmt::format("{} of the {}s could not be matched", share, noun) + why_text(holes);
}

/// Of MPI calls in the ranks' time: nobody waits longer.
double Findings::communication_share() const {
  uint64_t sum_ns = 0;
  for (const RankTime& rank : ranks_) {
    for (const auto& [region, time_ns] : rank.by_region) sum_ns += time_ns;
  }
  return static_cast<double>(sum_ns) / static_cast<double>(total_ns());
}

void Findings::add_waiting(const WaitTimes& waits, std::vector<Finding>* findings) const {
  if (waits_ == nullptr || total_ns() == 0) return;
  const double share = static_cast<double>(waits.sum_ns) / static_cast<double>(total_ns());
  if (share >= kLeastWaitShare) {
    add_known_waiting(waits, share, findings);
  } else if (waits.left_out >= kMostLeftOutShare && communication_share() >= kLeastWaitShare) {
    add_unknown_waiting(waits, share, findings);
  }
}

void Findings::add_known_waiting(const WaitTimes& waits, double share,
                                 std::vector<Finding>* findings) const {
  const double sure_share =
      static_cast<double>(waits.sum_sure_ns) / static_cast<double>(total_ns());
  const bool has_bounds = percent(sure_share) != percent(share);
  const char* how_sure =
      has_bounds ? (waits.is_whole ? "at most " : "about ") : (waits.is_whole ? "" : "at least ");
  const auto* top_kind = std::max_element(std::begin(waits.by_kind_ns), std::end(waits.by_kind_ns));
  const auto kind = static_cast<WaitKind>(top_kind - std::begin(waits.by_kind_ns));
  findings->push_back(
      {static_cast<double>(waits.sum_ns) / kNsPerSecond,
       fmt::format(
           "waiting for late partners takes {}{} of the ranks' time ({}, of it {}{} {}){}{}",
           how_sure, percent(share), text_of_ns(waits.sum_ns),
           is_upper_bound(kind) ? "at most " : "", text_of_ns(*top_kind), wait_kind_name(kind),
           extremes_text("waits longest", [&](size_t rank) { return waits.wait_ns[rank]; }),
           waits.is_whole ? "" : "; " + waits.left_out_text())});
}

/// As weighty as the call of most time: that may have been waiting.
void Findings::add_unknown_waiting(const WaitTimes& waits, double share,
                                   std::vector<Finding>* findings) const {
  const auto top = top_call();
  const double weight_s = top ? static_cast<double>(top->second) / kNsPerSecond : 0;
  const bool is_nothing_known = waits.left_out >= 1 && waits.sum_ns == 0;
  std::string text = fmt::format("{} is known of waiting for late partners: {}",
                                 is_nothing_known ? "nothing" : "little", waits.left_out_text());
  if (waits.sum_ns != 0) {
    text +=
        fmt::format("; what could be seen takes {} of the ranks' time ({})",
                    share < 0.001 ? "less than 0.1 %" : percent(share), text_of_ns(waits.sum_ns));
  } else if (!is_nothing_known) {
    text += "; in the others nobody waited";
  }
  findings->push_back({weight_s, std::move(text)});
}

}  // namespace aon::writers
