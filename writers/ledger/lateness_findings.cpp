// Who comes late to collectives, and what that costs the others.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>

#include "core/base/digits.h"
#include "core/spool/same_machine.h"
#include "writers/ledger/findings.h"
#include "writers/nccl/bandwidth.h"

namespace aon::writers {
namespace {

constexpr double kLeastCausedShare = 0.01;  ///< of the ranks' time
constexpr double kLeastSlowShare = 0.05;    ///< the same, lost to collectives without a late rank
constexpr size_t kMaxAlike = 3;             ///< runs of others that are named
constexpr double kLeastBlame = 1.5;         ///< times what everybody would cause, shared evenly

/// Whether no network lies between the members, as far as they are known.
bool is_on_one_node(const Model& model, const GlobalCommunicator& communicator) {
  const spool::HomeNodes homes(*model.job);
  std::optional<uint32_t> first;
  for (const int64_t member : communicator.members) {
    if (member < 0 || static_cast<size_t>(member) >= model.groups.size()) return false;
    const uint32_t node = model.groups[static_cast<size_t>(member)].node;
    if (first && !spool::is_same_machine(*model.job, homes, *first, node)) return false;
    first = node;
  }
  return first.has_value();
}

}  // namespace

std::string late_text(const Latecomer& late) {
  std::string text = "came last";
  if (late.shared_count == late.late_count) {
    text += " together with others";
  } else if (late.shared_count != 0) {
    text += fmt::format(", {} {} together with others,", grouped(late.shared_count),
                        late.shared_count == 1 ? "time" : "times");
  }
  return text + fmt::format(" to {} of {}", grouped(late.late_count), grouped(late.count));
}

std::string share_text(const Latecomer& late) {
  return late.shared_count == 0 ? "" : " (its share)";
}

std::string alike_text(std::vector<uint32_t> ranks) {
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  if (ranks.empty()) return {};
  std::string text = ranks.size() == 1 ? "; as long for rank " : "; as long for ranks ";
  size_t next = 0;
  for (size_t runs = 0; next < ranks.size() && runs < kMaxAlike; ++runs) {
    const uint32_t first = ranks[next];
    while (++next < ranks.size() && ranks[next] == ranks[next - 1] + 1) {
    }
    text += fmt::format("{}{}", runs == 0 ? "" : ", ", first);
    if (ranks[next - 1] != first) text += fmt::format("-{}", ranks[next - 1]);
  }
  if (next < ranks.size()) text += fmt::format(" and {} more", ranks.size() - next);
  return text;
}

std::optional<Findings::Blame> Findings::find_late_rank(const WaitTimes& waits) const {
  if (waits_ == nullptr || total_ns() == 0) return std::nullopt;
  const auto& all = waits_->lateness.rows();
  std::vector<LatenessRow> rows(all.begin(), all.end());
  std::erase_if(rows, [&](const LatenessRow& row) { return !model_->groups[row.group].rank; });
  const Latecomer late = find_latecomer(rows);
  if (late.caused_ns == 0 || !is_late(late)) return std::nullopt;
  const auto caused_ns = static_cast<double>(late.caused_ns);
  const auto together_ns = static_cast<double>(late.together_ns);
  const double even_ns = static_cast<double>(late.all_ns) / static_cast<double>(ranks_.size());
  const Group& group = model_->groups[late.group];
  if (!group.rank || together_ns < kLeastCausedShare * static_cast<double>(total_ns()) ||
      caused_ns < kLeastBlame * even_ns) {
    return std::nullopt;
  }
  std::vector<uint32_t> alike;
  for (const uint32_t other : late.alike) alike.push_back(*model_->groups[other].rank);
  return Blame{
      *group.rank,
      {weight_of_cause_s(waits, together_ns),
       fmt::format(
           "rank {} on {} {} collectives: the others waited {} for it{}, {} of it in {}{}{}",
           *group.rank, model_->job->nodes[group.node].host, late_text(late),
           seconds_text(caused_ns * 1e-9), share_text(late),
           seconds_text(static_cast<double>(late.region_ns) * 1e-9),
           model_->regions[late.region].name, computing_steps_text(*group.rank, caused_ns),
           alike_text(std::move(alike)))}};
}

double Findings::busy_ns(const LatenessTable& table) {
  double sum_ns = 0;
  for (const LatenessRow& row : table.rows())
    sum_ns += static_cast<double>(row.wait_ns + row.least_ns);
  return sum_ns;
}

void Findings::add_slow_operations(const std::vector<TrueTimes>& rows, double all_members_ns,
                                   const SlowCauses& causes, std::vector<Finding>* findings) const {
  const TrueTimes* worst = find_slowest(rows);
  if (worst == nullptr) return;
  const GlobalCommunicator& communicator = model_->communicators[worst->communicator];
  const uint32_t rank_count = communicator.rank_count;
  const char* cause =
      is_on_one_node(*model_, communicator) ? causes.on_one_node : causes.on_several;
  const double lost_ns = static_cast<double>(worst->slow_ns) * static_cast<double>(rank_count);
  if (lost_ns < kLeastOperationShare * all_members_ns) return;
  const std::string& name = model_->regions[worst->region].name;
  const double bytes_per_s =
      nccl::bandwidth(name, worst->bytes, worst->usual_ns, rank_count).bus_bytes_per_s;
  const std::string bandwidth =
      std::isfinite(bytes_per_s) ? fmt::format(" ({:.2f} GB/s busbw)", bytes_per_s * 1e-9) : "";
  findings->push_back(
      {lost_ns * 1e-9,
       fmt::format("{} of {} {} of some {} bytes took longer than the usual {}{}, {} in all, with "
                   "nobody late: {}",
                   grouped(worst->slow_count), grouped(worst->count), name, grouped(worst->bytes),
                   text_of_ns(worst->usual_ns), bandwidth, text_of_ns(worst->slow_ns), cause)});
}

/// Shorter ones are told of ranks only: a busy core makes any of them twice as long.
void Findings::add_slow_collectives(std::vector<Finding>* findings) const {
  const auto all_ns = static_cast<double>(total_ns());  // a pass over all ranks
  if (waits_ == nullptr || all_ns == 0) return;
  std::vector<TrueTimes> slow;
  std::copy_if(waits_->times.begin(), waits_->times.end(), std::back_inserter(slow),
               [&](const TrueTimes& row) {
                 const uint32_t ranks = model_->communicators[row.communicator].rank_count;
                 return static_cast<double>(row.slow_ns) * ranks >= kLeastSlowShare * all_ns;
               });
  add_slow_operations(
      slow, all_ns,
      {"the memory or busy cores were slow", "the network, the memory or busy cores were slow"},
      findings);
}

}  // namespace aon::writers
