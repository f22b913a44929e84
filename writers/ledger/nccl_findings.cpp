// What stands out in operations of NCCL: who comes late and why, slow links, slow operations.

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/digits.h"
#include "core/spool/same_machine.h"
#include "writers/ledger/findings.h"
#include "writers/profile/local_ids.h"

namespace aon::writers {
namespace {

constexpr double kLeastShare = kLeastOperationShare;
constexpr double kLeastBlame = 1.5;  ///< times what everybody would cause, shared evenly
constexpr double kMostly = 0.8;

bool spans_machines(const Model& model, const spool::HomeNodes& homes,
                    const GlobalCommunicator& communicator) {
  std::optional<uint32_t> first;
  for (const int64_t member : communicator.members) {
    if (member < 0 || static_cast<size_t>(member) >= model.groups.size()) continue;
    const uint32_t node = model.groups[static_cast<size_t>(member)].node;
    if (first && !spool::is_same_machine(*model.job, homes, *first, node)) return true;
    first = node;
  }
  return false;
}

/// By communicator: between machines it is the proxy that moves the data.
std::vector<bool> needs_proxy(const Model& model) {
  std::vector<bool> needs;
  const spool::HomeNodes homes(*model.job);
  for (const GlobalCommunicator& communicator : model.communicators)
    needs.push_back(communicator.kind == CommunicatorKind::kNccl &&
                    spans_machines(model, homes, communicator));
  return needs;
}

bool has_one_cpu(const spool::Process& process) {
  return !process.binding.empty() &&
         process.binding.find_first_not_of("0123456789") == std::string::npos;
}

/// Transfers stand under ncclSend, whichever end waited; those of a group wait at the same time.
std::string operation_name(const GlobalRegion& region) {
  const bool is_transfer = region.role == RegionRole::kPointToPoint;
  return is_transfer ? "transfers, each counted by itself" : region.name;
}

std::string cause_text(const nccl::LatenessSummary& late, uint32_t member) {
  nccl::Causes sum;
  for (const auto& [key, causes] : late.causes) {
    if (std::get<2>(key) != member) continue;
    sum.host_ns += causes.host_ns;
    sum.gpu_ns += causes.gpu_ns;
    sum.untold_ns += causes.untold_ns;
  }
  const auto told_ns = static_cast<double>(sum.host_ns + sum.gpu_ns);
  if (told_ns == 0) return "; not told whether its host or its GPU was late";
  if (static_cast<double>(sum.host_ns) >= kMostly * told_ns)
    return "; its host was late, its GPU waited for work";
  if (static_cast<double>(sum.gpu_ns) >= kMostly * told_ns)
    return "; its GPU was late, busy with work before it";
  return fmt::format("; {} of it its host was late, {} its GPU was busy", text_of_ns(sum.host_ns),
                     text_of_ns(sum.gpu_ns));
}

}  // namespace

void Findings::add_nccl_latecomer(const nccl::LatenessSummary& late,
                                  std::vector<Finding>* findings) const {
  const std::vector<LatenessRow> rows = late.table.rows();
  const Latecomer worst = find_latecomer(rows);
  const auto caused_ns = static_cast<double>(worst.caused_ns);
  const auto together_ns = static_cast<double>(worst.together_ns);
  const double even_ns = static_cast<double>(worst.all_ns) /
                         static_cast<double>(std::max<size_t>(late.members.size(), 1));
  if (!is_late(worst) || together_ns < kLeastShare * busy_ns(late.table) ||
      caused_ns < kLeastBlame * even_ns)
    return;
  std::vector<uint32_t> alike;
  for (const uint32_t other : worst.alike) {
    const Group& group = model_->groups[late.members[other].group];
    if (group.rank) alike.push_back(*group.rank);
  }
  findings->push_back(
      {together_ns * 1e-9,
       fmt::format(
           "{} {} operations of NCCL: the other GPUs waited {} for it{}, {} of it in {}{}{}{}",
           nccl::member_text(*model_, late.members[worst.group]), late_text(worst),
           text_of_ns(worst.caused_ns), share_text(worst), text_of_ns(worst.region_ns),
           operation_name(model_->regions[worst.region]), cause_text(late, worst.group),
           nccl_steps_text(late, worst.group, caused_ns), alike_text(std::move(alike)))});
}

void Findings::add_slow_link(const nccl::LatenessSummary& late,
                             std::vector<Finding>* findings) const {
  const nccl::SlowLink link = nccl::find_slow_link(late);
  const auto beyond_ns = static_cast<double>(link.beyond_ns);
  const double share_ns =
      busy_ns(late.table) / static_cast<double>(std::max<size_t>(late.members.size(), 1));
  if (beyond_ns == 0 || beyond_ns < kLeastShare * share_ns) return;
  findings->push_back(
      {beyond_ns * 1e-9,
       fmt::format(
           "the link from {} to {} is slow: {} transfers of NCCL took {}, {:.1f} times what "
           "other links take for them",
           nccl::member_text(*model_, late.members[link.source]),
           nccl::member_text(*model_, late.members[link.destination]), grouped(link.count),
           text_of_ns(link.time_ns),
           static_cast<double>(link.time_ns) /
               static_cast<double>(std::max<uint64_t>(link.time_ns - link.beyond_ns, 1)))});
}

/// Seen: operations of two ranks of 128 KiB to 4 MiB by sockets took 16 ms instead of 0.14 to 1.2.
void Findings::add_shared_cpu(double busy_ns, std::vector<Finding>* findings) const {
  constexpr double kWeight = 0.1;  // what makes operations slow for certain comes first
  if (busy_ns < kLeastProxyShare * static_cast<double>(total_ns())) return;
  const std::vector<bool> needs = needs_proxy(*model_);
  std::vector<size_t> ranks;
  for (const Group& group : model_->groups) {
    if (!group.rank || group.process == nullptr || !has_one_cpu(*group.process)) continue;
    const profile::LocalIds ids(group.communicator_map);
    const auto& own = group.process->communicators;
    if (std::any_of(own.begin(), own.end(), [&](const auto& one) {
          const uint32_t id = ids.global(one.first);
          return id < needs.size() && needs[id];
        }))
      ranks.push_back(*group.rank);
  }
  if (ranks.empty()) return;
  findings->push_back(
      {busy_ns * 1e-9 * kWeight,
       fmt::format("{} {}, which NCCL's proxy thread shares with the program: bind ranks to more "
                   "(mpirun --bind-to none, srun --cpus-per-task)",
                   names_of(ranks), ranks.size() == 1 ? "has one CPU" : "have one CPU each")});
}

/// What a link or a GPU is known to have made slow is told with it.
void Findings::add_nccl_slow(const nccl::LatenessSummary& late,
                             std::vector<Finding>* findings) const {
  bool has_told = add_network_late(late, findings);
  has_told |= add_slow_gpu(late, findings);
  std::vector<TrueTimes> collectives;  // transfers have links
  std::copy_if(late.times.begin(), late.times.end(), std::back_inserter(collectives),
               [&](const TrueTimes& row) {
                 return model_->regions[row.region].role != RegionRole::kPointToPoint;
               });
  if (has_told) {
    std::erase_if(collectives, [&](const TrueTimes& row) {
      const auto told = late.network.excess_ns.find({row.communicator, row.region, row.bytes});
      return told != late.network.excess_ns.end() &&
             static_cast<double>(told->second) >= kMostly * static_cast<double>(row.slow_ns);
    });
  }
  add_slow_operations(collectives, busy_ns(late.table),
                      {"the GPUs or the links between them were slow",
                       "the network, the GPUs or the links between them were slow"},
                      findings);
}

void Findings::add_nccl(std::vector<Finding>* findings) const {
  const nccl::LatenessSummary* late = nccl_ != nullptr ? nccl_->summary() : nullptr;
  if (late == nullptr || late->table.operation_count() == 0) return;
  add_nccl_latecomer(*late, findings);
  add_shared_cpu(busy_ns(late->table), findings);
  add_slow_link(*late, findings);
  add_proxy_waits(late->table, findings);
  add_nccl_slow(*late, findings);
}

}  // namespace aon::writers
