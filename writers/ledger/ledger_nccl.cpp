#include "writers/ledger/ledger_nccl.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "core/base/time.h"
#include "core/spool/nccl_levels.h"
#include "core/spool/text.h"

namespace aon::writers::ledger {
namespace {

using Json = nlohmann::ordered_json;

const char* level_name(const BudgetDefinition& change, uint32_t mode) {
  return nccl_level_name(spool::nccl_level_in(change, mode));
}

/// To whom the same happened: the wish's stamp, the answer.
using Happening = std::pair<uint32_t, uint32_t>;

struct WhoAndWhen {
  uint64_t time_ns = UINT64_MAX;
  uint64_t process_count = 0;
  std::vector<uint32_t> ranks;
};

Json happening_json(const Happening& what, WhoAndWhen who) {
  const NcclAnswer answer = NcclAnswer::of(what.second);
  std::sort(who.ranks.begin(), who.ranks.end());
  return {{"asked", nccl_level_name(answer.asked)},
          {"time", iso_time(who.time_ns)},
          {"from", nccl_level_name(answer.before)},
          {"to", nccl_level_name(answer.level)},
          {"reason", nccl_limit_text(answer.reason)},
          {"ranks", spool::listed_ranks(who.ranks)},
          {"processes", who.process_count}};
}

}  // namespace

Json nccl_level_changes_json(const LedgerFacts& facts) {
  Json changes = Json::array();
  for (const Group& group : facts.model->groups) {
    if (group.process == nullptr) continue;
    for (const BudgetDefinition& change : group.process->budget_changes) {
      if (!spool::is_nccl_level_change(change) || changes.size() >= kMaxLevelChanges) continue;
      changes.push_back({{"process", group.id},
                         {"rank", group.rank ? Json(*group.rank) : Json()},
                         {"time", iso_time(facts.clocks[group.node].to_ns(change.ticks))},
                         {"from", level_name(change, change.old_mode)},
                         {"to", level_name(change, change.new_mode)}});
    }
  }
  return changes;
}

Json nccl_levels_asked_json(const LedgerFacts& facts) {
  std::map<Happening, WhoAndWhen> all;
  for (const Group& group : facts.model->groups) {
    if (group.process == nullptr) continue;
    for (const BudgetDefinition& change : group.process->budget_changes) {
      const bool is_asked =
          spool::is_nccl_answer(change) && NcclAnswer::of(change.old_mode).asked != NcclLevel::kOff;
      if (!is_asked) continue;
      WhoAndWhen& who = all[{change.new_mode, change.old_mode}];
      who.time_ns = std::min(who.time_ns, facts.clocks[group.node].to_ns(change.ticks));
      ++who.process_count;
      if (group.rank) who.ranks.push_back(*group.rank);
    }
  }
  std::vector<std::pair<Happening, WhoAndWhen>> ordered(all.begin(), all.end());
  std::stable_sort(ordered.begin(), ordered.end(), [](const auto& one, const auto& other) {
    return one.second.time_ns < other.second.time_ns;
  });
  Json list = Json::array();
  for (auto& [what, who] : ordered) {
    if (list.size() < kMaxLevelChanges) list.push_back(happening_json(what, std::move(who)));
  }
  return list;
}

size_t count_mode_changes(const spool::Process& process) {
  return static_cast<size_t>(
      std::count_if(process.budget_changes.begin(), process.budget_changes.end(),
                    [](const BudgetDefinition& change) { return !spool::is_nccl_answer(change); }));
}

std::string lowered_level(const spool::Process& process) {
  const BudgetDefinition* first = nullptr;
  const BudgetDefinition* lowest = nullptr;  // a longer period, behind all of them kModeCount
  const auto depth = [](uint32_t mode) { return mode < kModeSample ? UINT32_MAX : mode; };
  for (const BudgetDefinition& change : process.budget_changes) {
    if (!spool::is_nccl_level_change(change)) continue;
    if (first == nullptr) first = &change;
    if (lowest == nullptr || depth(change.new_mode) > depth(lowest->new_mode)) lowest = &change;
  }
  if (first == nullptr) return {};
  return std::string("the budget lowered the level from ") + level_name(*first, first->old_mode) +
         " to " + level_name(*lowest, lowest->new_mode) + ", for a time or to the end";
}

}  // namespace aon::writers::ledger
