// Operations of NCCL that were slow with nobody late, and the link or the GPU that held them up.

#include <fmt/format.h>

#include <map>
#include <utility>

#include "core/base/digits.h"
#include "writers/ledger/findings.h"

namespace aon::writers {
namespace {

/// Of what all lost, by a link that is named: of hundreds of links one is always the worst.
constexpr double kLeastNamed = 0.2;

/// By both ends, members.
using Links = std::map<std::pair<uint32_t, uint32_t>, nccl::NetworkLate>;

void add(const nccl::NetworkLate& one, nccl::NetworkLate* to) {
  to->count += one.count;
  to->lost_ns += one.lost_ns;
}

}  // namespace

/// Of collectives: slow links of transfers are told by their times.
bool Findings::add_network_late(const nccl::LatenessSummary& late,
                                std::vector<Finding>* findings) const {
  Links links;
  nccl::NetworkLate all = late.network.even;
  for (const auto& [key, link] : late.network.links) {
    const auto [communicator, region, source, peer] = key;
    if (model_->regions[region].role == RegionRole::kPointToPoint) continue;
    add(link, &links[{source, link.destination}]);
    add(link, &all);
  }
  const auto lost_ns = static_cast<double>(all.lost_ns);
  if (all.lost_ns == 0 || lost_ns < kLeastOperationShare * busy_ns(late.table)) return false;
  std::pair<std::pair<uint32_t, uint32_t>, nccl::NetworkLate> worst;
  for (const auto& link : links) {
    if (link.second.lost_ns > worst.second.lost_ns) worst = link;
  }
  std::string which = "no link more than the others";
  if (static_cast<double>(worst.second.lost_ns) >= kLeastNamed * lost_ns) {
    which = fmt::format("{} of it by sends from {} to {}, in {}", text_of_ns(worst.second.lost_ns),
                        nccl::member_text(*model_, late.members[worst.first.first]),
                        nccl::member_text(*model_, late.members[worst.first.second]),
                        grouped(worst.second.count));
  }
  findings->push_back(
      {lost_ns * 1e-9,
       fmt::format("the network held up {} operations of NCCL: their GPUs lost {}, {}",
                   grouped(all.count), text_of_ns(all.lost_ns), which)});
  return true;
}

/// That a GPU was busy with something else, slow, or short of room for NCCL's kernel is not known.
bool Findings::add_slow_gpu(const nccl::LatenessSummary& late,
                            std::vector<Finding>* findings) const {
  const nccl::NetworkLate& all = late.network.all_gpus;
  const auto lost_ns = static_cast<double>(all.lost_ns);
  if (all.lost_ns == 0 || lost_ns < kLeastOperationShare * busy_ns(late.table)) return false;
  std::map<uint32_t, nccl::NetworkLate> gpus;  // by member
  for (const auto& [key, gpu] : late.network.gpus) add(gpu, &gpus[std::get<2>(key)]);
  std::pair<uint32_t, nccl::NetworkLate> worst;
  for (const auto& gpu : gpus) {
    if (gpu.second.lost_ns > worst.second.lost_ns) worst = gpu;
  }
  std::string which = "no rank's more than the others'";
  if (static_cast<double>(worst.second.lost_ns) >= kLeastNamed * lost_ns) {
    which = fmt::format("{} of it by that of {}, in {}", text_of_ns(worst.second.lost_ns),
                        nccl::member_text(*model_, late.members[worst.first]),
                        grouped(worst.second.count));
  }
  findings->push_back(
      {lost_ns * 1e-9,
       fmt::format("GPUs that were in time but slow held up {} operations of NCCL: all lost {}, {}",
                   grouped(all.count), text_of_ns(all.lost_ns), which)});
  return true;
}

}  // namespace aon::writers
