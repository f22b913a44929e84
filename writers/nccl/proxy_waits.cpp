#include "writers/nccl/proxy_waits.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/spool/same_machine.h"
#include "writers/lateness/true_times.h"

namespace aon::writers::nccl {
namespace {

constexpr size_t kLeastLinks = 4;           ///< to say what is usual
constexpr double kMostly = 2.0 / 3;         ///< of a link's waiting is for the network
constexpr uint64_t kLeastBytes = 1u << 20;  ///< of a link: fewer are no measure of it

struct Link {
  uint64_t bytes = 0;
  uint64_t gpu_ns = 0;
  uint64_t peer_ns = 0;
  uint64_t network_ns = 0;

  uint64_t sum_ns() const { return gpu_ns + peer_ns + network_ns; }
  double network_ns_per_byte() const {
    return static_cast<double>(network_ns) / static_cast<double>(bytes);
  }
};

/// By source and destination, groups.
using Links = std::map<std::pair<uint32_t, uint32_t>, Link>;

/// The process of a member of a communicator.
std::optional<uint32_t> group_of(const Model& model, uint32_t communicator, int32_t peer) {
  const std::vector<int64_t>& members = model.communicators[communicator].members;
  if (peer < 0 || static_cast<size_t>(peer) >= members.size()) return std::nullopt;
  const int64_t member = members[static_cast<size_t>(peer)];
  if (member < 0 || static_cast<size_t>(member) >= model.groups.size()) return std::nullopt;
  return static_cast<uint32_t>(member);
}

/// Links within machines and links between them are of different kinds.
SlowSends find_slow(const Model& model, const Links& links) {
  const spool::HomeNodes homes(*model.job);
  std::vector<std::pair<Links::value_type, bool>> told;
  std::vector<double> times[2];
  for (const auto& link : links) {
    if (link.second.bytes < kLeastBytes) continue;
    const bool is_in_machine =
        spool::is_same_machine(*model.job, homes, model.groups[link.first.first].node,
                               model.groups[link.first.second].node);
    told.emplace_back(link, is_in_machine);
    times[is_in_machine ? 1 : 0].push_back(link.second.network_ns_per_byte());
  }
  double usual[2] = {};
  for (int kind = 0; kind < 2; ++kind) {
    if (times[kind].size() < kLeastLinks) continue;
    const auto middle = times[kind].begin() + static_cast<std::ptrdiff_t>(times[kind].size() / 2);
    std::nth_element(times[kind].begin(), middle, times[kind].end());
    usual[kind] = *middle;
  }
  SlowSends slowest;
  double most_ns = 0;
  for (const auto& [link, is_in_machine] : told) {
    const Link& one = link.second;
    const double usual_ns = usual[is_in_machine ? 1 : 0];
    const double ratio = usual_ns > 0 ? one.network_ns_per_byte() / usual_ns : 0;
    const bool is_network =
        static_cast<double>(one.network_ns) >= kMostly * static_cast<double>(one.sum_ns());
    const double beyond_ns = static_cast<double>(one.network_ns) * (1 - 1 / std::max(ratio, 1.0));
    if (!is_network || ratio < kSlowOperationRatio || beyond_ns <= most_ns) continue;
    most_ns = beyond_ns;
    slowest = {link.first.first, link.first.second, one.bytes, one.network_ns, ratio};
  }
  return slowest;
}

}  // namespace

ProxyWaits sum_up(const Model& model, const ProxyTable& proxies) {
  ProxyWaits waits;
  Links links;
  std::map<uint32_t, uint64_t> awaited_ns;
  for (const auto& [key, row] : proxies.rows()) {
    const auto [communicator, group, peer, is_send] = key;
    if (!is_send || row.step_count == 0 || communicator >= model.communicators.size()) continue;
    waits.step_count += row.step_count;
    waits.gpu_ns += row.gpu_ns;
    waits.peer_ns += row.peer_ns;
    waits.network_ns += row.network_ns;
    const std::optional<uint32_t> destination = group_of(model, communicator, peer);
    if (!destination) {
      waits.each_waits_for_gpu = false;  // nobody knows whom this one waits for
      continue;
    }
    Link& link = links[{group, *destination}];
    link.bytes += row.bytes;
    link.gpu_ns += row.gpu_ns;
    link.peer_ns += row.peer_ns;
    link.network_ns += row.network_ns;
    awaited_ns[*destination] += row.peer_ns;
  }
  for (const auto& [pair, link] : links)
    waits.each_waits_for_gpu &= link.gpu_ns >= link.sum_ns() - link.gpu_ns;
  for (const auto& [group, time_ns] : awaited_ns) {
    if (time_ns <= waits.awaited_ns) continue;
    waits.awaited = group;
    waits.awaited_ns = time_ns;
  }
  waits.slow = find_slow(model, links);
  return waits;
}

}  // namespace aon::writers::nccl
