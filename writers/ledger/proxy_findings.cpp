// What NCCL's proxies waited for: the network, one link of it, the receivers or the GPUs.

#include <fmt/format.h>

#include <algorithm>

#include "core/base/digits.h"
#include "writers/ledger/findings.h"

namespace aon::writers {
namespace {

constexpr double kMostly = 2.0 / 3;       ///< of the waiting: twice the others together
constexpr double kLeastSlowShare = 0.01;  ///< of all links' waiting, by one link
constexpr double kLateShare = 0.2;        ///< of the operations' time: late ranks explain it
constexpr uint64_t kLeastSteps = 100;     ///< fewer tell nothing
constexpr double kWeight = 0.1;           ///< late ranks and slow operations come first

double part_of(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

/// All that members waited for those that came late.
double late_ns(const LatenessTable& table) {
  double sum_ns = 0;
  for (const LatenessRow& row : table.rows()) sum_ns += static_cast<double>(row.late_caused_ns);
  return sum_ns;
}

}  // namespace

/// Where nothing else explains it: a rank that comes late lets its neighbours' sends wait for it,
/// and theirs for their GPUs.
void Findings::add_proxy_waits(const LatenessTable& lateness,
                               std::vector<Finding>* findings) const {
  const double busy_ns = Findings::busy_ns(lateness);
  if (proxies_ == nullptr || proxies_->step_count < kLeastSteps ||
      busy_ns < kLeastProxyShare * static_cast<double>(total_ns()))
    return;
  const nccl::ProxyWaits& waits = *proxies_;
  const uint64_t sum_ns = waits.sum_ns();
  const nccl::SlowSends& slow = waits.slow;
  const double beyond_ns =
      slow.ratio < 1 ? 0 : static_cast<double>(slow.network_ns) * (1 - 1 / slow.ratio);
  if (beyond_ns > kLeastSlowShare * static_cast<double>(sum_ns)) {
    findings->push_back(
        {busy_ns * 1e-9 * kWeight,
         fmt::format(
             "sends of NCCL's proxies from {} to {} wait {:.1f} times as long for the network as "
             "those of other links for as many bytes ({} bytes in all)",
             process_text(slow.source), process_text(slow.destination), slow.ratio,
             grouped(slow.bytes))});
    return;
  }
  const double network = part_of(waits.network_ns, sum_ns);
  const double peer = part_of(waits.peer_ns, sum_ns);
  const double gpu = part_of(waits.gpu_ns, sum_ns);
  const bool is_late = late_ns(lateness) >= kLateShare * busy_ns;
  std::string text;
  if (network >= kMostly) {
    text = fmt::format("for the network: {:.0f} % of what their steps wait", network * 100);
  } else if (peer >= kMostly && !is_late) {
    text = fmt::format(
        "for receivers that are not ready: {:.0f} % of what their steps wait, "
        "{:.0f} % of that for {}",
        peer * 100, part_of(waits.awaited_ns, waits.peer_ns) * 100, process_text(waits.awaited));
  } else if (gpu >= kMostly && waits.each_waits_for_gpu && !is_late) {
    text = fmt::format("for their GPUs: {:.0f} % of what their steps wait, the network is ready",
                       gpu * 100);
  } else {
    return;
  }
  findings->push_back({busy_ns * 1e-9 * kWeight, "sends of NCCL's proxies wait " + text});
}

/// "rank 3 on n1"
std::string Findings::process_text(uint32_t group) const {
  const Group& one = model_->groups[group];
  return fmt::format("{} on {}", one.rank ? fmt::format("rank {}", *one.rank) : one.name,
                     model_->job->nodes[one.node].host);
}

}  // namespace aon::writers
