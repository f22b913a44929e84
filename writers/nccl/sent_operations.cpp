// What proxies waited for in single operations, and whose links and GPUs these are.

#include <algorithm>
#include <cstring>
#include <set>
#include <string_view>

#include "core/base/median.h"
#include "writers/nccl/lateness.h"

namespace aon::writers::nccl {

/// Nodes that a communicator spans as NCCL says, to which machines joined by NVLink are one; 0: not
/// known.
static uint32_t node_count_of(const Group& group, uint32_t communicator) {
  if (group.process == nullptr) return 0;
  for (const auto& [local, one] : group.process->communicators) {
    const auto global = group.communicator_map.find(local);
    if (global == group.communicator_map.end() || global->second != communicator) continue;
    uint32_t count = 0;
    memcpy(&count, &one.definition.reserved[kNcclNodes], sizeof count);
    return count;
  }
  return 0;
}

/// Each member of a communicator is on a machine of its own, so that all they exchange is in the
/// records of their proxies.
bool LatenessAnalysis::are_apart(uint32_t communicator) {
  const auto [found, is_new] = apart_.try_emplace(communicator, true);
  if (!is_new) return found->second;
  bool& is_apart = found->second;
  std::set<std::string_view> hosts;
  const std::vector<int64_t>& members = model_->communicators[communicator].members;
  for (const int64_t member : members) {
    is_apart &= member >= 0 && static_cast<size_t>(member) < model_->groups.size();
    if (!is_apart) break;
    const Group& group = model_->groups[static_cast<size_t>(member)];
    is_apart = hosts.insert(model_->job->nodes[group.node].host).second;
    const uint32_t node_count = node_count_of(group, communicator);
    is_apart &= node_count == 0 || node_count >= members.size();
  }
  return is_apart;
}

HeldMember LatenessAnalysis::held_member(std::span<const Part> parts, const LongestWaits& longest) {
  const size_t place = longest.gpu->part.place;
  const auto is_shorter = [](const Part& a, const Part& b) { return a.gpu_ns < b.gpu_ns; };
  const Part& first = *std::max_element(parts.begin(), parts.end(), is_shorter);
  return {longest.gpu->gpu_ns, lower_median(longest.other_gpus_ns),
          first.gpu_ns - parts[place].gpu_ns, parts[place].member,
          static_cast<uint32_t>(longest.other_gpus_ns.size())};
}

/// Of a transfer there is one link.
Status LatenessAnalysis::add_sends(std::span<const Part> parts, uint64_t time_ns) {
  const Part& first = parts.front();
  const bool is_transfer = model_->regions[first.region].role == RegionRole::kPointToPoint;
  LongestWaits longest = find_longest(operation_sends_, is_transfer);
  // In each of the others two members send at least: the rest is missing, and nothing compares.
  if (longest.gpu == nullptr || (!is_transfer && longest.other_gpus_ns.empty())) return {};
  SentOperation sent{};
  sent.bytes = first.bytes;
  sent.time_ns = time_ns;
  sent.longest_ns = longest.network_ns;
  sent.communicator = first.communicator;
  sent.region = first.region;
  sent.member_count = static_cast<uint32_t>(parts.size());
  if (longest.link != nullptr) {
    const size_t from = longest.link->part.place;
    const size_t to = is_transfer ? 1 : longest.link->peer;
    if (to >= parts.size() || to == from) return {};  // of no member: damage
    sent.network_ns = longest.link->network_ns;
    sent.all_ns = longest.link->all_ns;
    sent.late_ns = parts[from].gpu_ns - std::min(parts[from].gpu_ns, parts[to].gpu_ns);
    sent.source = parts[from].member;
    sent.destination = parts[to].member;
    sent.peer = longest.link->peer;
  }
  sent.others_count = static_cast<uint32_t>(longest.others_ns.size());
  sent.others_ns = lower_median(std::move(longest.others_ns));
  if (!is_transfer && are_apart(first.communicator)) sent.gpu = held_member(parts, longest);
  return network_.add(sent);
}

}  // namespace aon::writers::nccl
