// What stands out in the use of devices: how long they had nothing to do, and why.

#include <fmt/format.h>

#include <algorithm>

#include "writers/ledger/findings.h"

namespace aon::writers {
namespace {

constexpr double kLeastIdleShare = 0.1;

const char* explanation(Bound bound) {
  switch (bound) {
    case Bound::kLaunch:
      return "the host launches too late";
    case Bound::kCommunication:
      return "communication runs without computing beside it";
    case Bound::kCopy:
      return "copies run with nothing beside them";
    case Bound::kLatency:
      return "work that was launched waits for other work";
    case Bound::kDevice:
      break;
  }
  return "";
}

uint64_t unrecorded_ns(const DeviceUse& use) {
  return use.times.idle_ns[static_cast<size_t>(IdleReason::kUnrecorded)];
}

uint64_t idle_ns_of(const DeviceUse& use) {
  const uint64_t known_ns = use.times.busy_ns + unrecorded_ns(use);
  return use.times.span_ns - std::min(use.times.span_ns, known_ns);
}

/// What was not computing and explains it.
uint64_t wasted_ns(const DeviceUse& use) {
  return idle_ns_of(use) + use.times.exposed_ns + use.times.only_copying_ns;
}

}  // namespace

void Findings::add_devices(std::vector<Finding>* findings) const {
  if (devices_ == nullptr || devices_->summary().uses.empty()) return;
  uint64_t span_ns = 0;
  uint64_t idle_ns = 0;
  uint64_t sum_ns = 0;
  const DeviceUse* worst = nullptr;
  for (const DeviceUse& use : devices_->summary().uses) {
    span_ns += use.times.span_ns - unrecorded_ns(use);
    idle_ns += idle_ns_of(use);
    sum_ns += wasted_ns(use);
    if (worst == nullptr || wasted_ns(use) > wasted_ns(*worst)) worst = &use;
  }
  const double share =
      static_cast<double>(sum_ns) / static_cast<double>(std::max<uint64_t>(span_ns, 1));
  if (share < kLeastIdleShare) return;
  const double idle_share = static_cast<double>(idle_ns) / static_cast<double>(span_ns);
  const Group& group = model_->groups[worst->group];
  std::string text = fmt::format(
      "GPUs have nothing to do in {:.0f} % of the time from their first to "
      "their last work; most in GPU {} of {}",
      idle_share * 100, worst->device, group.name);
  if (worst->bound != Bound::kDevice) text += fmt::format(": {}", explanation(worst->bound));
  findings->push_back({static_cast<double>(sum_ns) * 1e-9, text});
}

}  // namespace aon::writers
