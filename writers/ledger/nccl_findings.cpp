// What stands out in operations of NCCL: who comes late and why, slow links, slow operations.

#include <fmt/format.h>

#include "core/base/digits.h"
#include "writers/ledger/findings.h"

namespace aon::writers {
namespace {

constexpr double kLeastShare = 0.01;  ///< of the time that all members worked on operations
constexpr double kLeastBlame = 1.5;   ///< times what everybody would cause, shared evenly
constexpr double kMostly = 0.8;

std::string text_of_ns(uint64_t time_ns) {
  return seconds_text(static_cast<double>(time_ns) * 1e-9);
}

/// All members' time on the GPU in matched operations.
double busy_ns(const nccl::LatenessSummary& late) {
  double sum_ns = 0;
  for (const LatenessRow& row : late.table.rows())
    sum_ns += static_cast<double>(row.wait_ns + row.least_ns);
  return sum_ns;
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
  const double even_ns = static_cast<double>(worst.all_ns) /
                         static_cast<double>(std::max<size_t>(late.members.size(), 1));
  if (caused_ns == 0 || caused_ns < kLeastShare * busy_ns(late) ||
      caused_ns < kLeastBlame * even_ns)
    return;
  findings->push_back(
      {caused_ns * 1e-9,
       fmt::format(
           "{} came last to {} of {} operations of NCCL: the other GPUs waited {} for it, {} "
           "of it in {}{}",
           nccl::member_text(*model_, late.members[worst.group]), grouped(worst.last_count),
           grouped(worst.count), text_of_ns(worst.caused_ns), text_of_ns(worst.region_ns),
           model_->regions[worst.region].name, cause_text(late, worst.group))});
}

void Findings::add_slow_link(const nccl::LatenessSummary& late,
                             std::vector<Finding>* findings) const {
  const nccl::SlowLink link = nccl::find_slow_link(late);
  const auto beyond_ns = static_cast<double>(link.beyond_ns);
  const double share_ns =
      busy_ns(late) / static_cast<double>(std::max<size_t>(late.members.size(), 1));
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

void Findings::add_slow_operations(const nccl::LatenessSummary& late,
                                   std::vector<Finding>* findings) const {
  const nccl::TrueTimes* worst = nullptr;
  for (const nccl::TrueTimes& row : late.times) {
    // Transfers have links.
    if (model_->regions[row.region].role == RegionRole::kPointToPoint) continue;
    if (worst == nullptr || row.slow_ns > worst->slow_ns) worst = &row;
  }
  if (worst == nullptr || worst->slow_ns == 0) return;
  const GlobalCommunicator& communicator = model_->communicators[worst->communicator];
  const double all_ns =
      static_cast<double>(worst->slow_ns) * static_cast<double>(communicator.rank_count);
  if (all_ns < kLeastShare * busy_ns(late)) return;
  findings->push_back(
      {all_ns * 1e-9,
       fmt::format(
           "{} of {} {} of {} bytes took {} beyond the usual {} each, with nobody late: the "
           "network or the GPUs were slow",
           grouped(worst->slow_count), grouped(worst->count), model_->regions[worst->region].name,
           grouped(worst->bytes), text_of_ns(worst->slow_ns), text_of_ns(worst->usual_ns))});
}

void Findings::add_nccl(std::vector<Finding>* findings) const {
  const nccl::LatenessSummary* late = nccl_ != nullptr ? nccl_->summary() : nullptr;
  if (late == nullptr || late->table.operation_count() == 0) return;
  add_nccl_latecomer(*late, findings);
  add_slow_link(*late, findings);
  add_slow_operations(*late, findings);
}

}  // namespace aon::writers
