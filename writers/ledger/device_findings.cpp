// What stands out in the use of devices: how long they had nothing to do, and why; and what bounds
// their work.

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "writers/ledger/device_waste.h"
#include "writers/ledger/findings.h"
#include "writers/ledger/unrecorded.h"

namespace aon::writers {
namespace {

/// It qualifies all that is said of GPUs.
constexpr double kMissingWeightS = 1e8;

/// Of the time in which its units were counted at work, the share that bounds it.
double bound_share(const DeviceUse& use) {
  uint64_t busy_ns = 0;
  uint64_t most_ns = 0;
  for (size_t i = static_cast<size_t>(UnitClass::kCompute); i < kUnitClassCount; ++i) {
    busy_ns += use.units.class_ns[i];
    most_ns = std::max(most_ns, use.units.class_ns[i]);
  }
  return static_cast<double>(most_ns) / static_cast<double>(std::max<uint64_t>(busy_ns, 1));
}

const char* bound_text(Bound bound) {
  switch (bound) {
    case Bound::kCompute:
      return "bound by computing";
    case Bound::kMemory:
      return "bound by its memory";
    case Bound::kBalanced:
      return "bound by computing and memory alike";
    case Bound::kLatency:
      return "bound by latency";
    default:
      return "hardly filled, its grids are small";
  }
}

bool is_bound_by_units(const DeviceUse& use) { return use.bound > Bound::kDevice; }

/// A process's use of a device, and how long that works for all who use it.
struct BoundUse {
  const DeviceUse* use;
  double busy_ns;
  double recorded_ns;

  /// Of the units' means, which are of the device with its idle time, what they are while it works.
  double while_working(double mean) const {
    if (busy_ns == 0) return mean;
    return std::min(mean * std::max(recorded_ns / busy_ns, 1.0), 1.0);
  }
  /// What faster work could save at most: until one of its units is used all the time that it
  /// works.
  double unused_s() const {
    const double used = while_working(std::max(use->units.compute, use->units.memory));
    return busy_ns * 1e-9 * (1 - used);
  }
};

/// The worst one of a device; nothing where none is bound by its units.
std::optional<BoundUse> worst_of(const std::vector<const DeviceUse*>& uses) {
  double busy_ns = 0;  // in turn, at most: what ran at once is in both
  for (const DeviceUse* use : uses) busy_ns += static_cast<double>(use->times.busy_ns);
  std::optional<BoundUse> worst;
  for (const DeviceUse* use : uses) {
    if (!is_bound_by_units(*use)) continue;
    const DeviceTimes& times = use->times;
    const uint64_t unrecorded_ns = times.idle_ns[static_cast<size_t>(IdleReason::kUnrecorded)];
    const auto recorded_ns =
        static_cast<double>(times.span_ns - std::min(times.span_ns, unrecorded_ns));
    const BoundUse bound{use, std::min(busy_ns, recorded_ns), recorded_ns};
    if (!worst || bound.unused_s() > worst->unused_s()) worst = bound;
  }
  return worst;
}

}  // namespace

/// Of the work itself, where counters tell: of each device once, for they are of all that use it.
void Findings::add_unit_bound(std::vector<Finding>* findings) const {
  std::vector<BoundUse> bound;
  double sum_s = 0;
  for (const auto& uses : ledger::uses_by_device(*model_, devices_->summary().uses)) {
    const std::optional<BoundUse> use = worst_of(uses);
    if (!use) continue;
    sum_s += use->unused_s();
    bound.push_back(*use);
  }
  if (bound.empty()) return;
  const auto worst = std::max_element(
      bound.begin(), bound.end(),
      [](const BoundUse& a, const BoundUse& b) { return a.unused_s() < b.unused_s(); });
  const DeviceUse& use = *worst->use;
  const auto alike = std::count_if(bound.begin(), bound.end(), [&](const BoundUse& other) {
    return other.use->bound == use.bound;
  });
  std::string text = fmt::format(
      "{} is {} in {:.0f} % of the time that it works: its busiest pipe is used to "
      "{:.0f} %, its memory to {:.0f} %, multiprocessors to {:.0f} %",
      ledger::device_text(*model_, use.group, use.device), bound_text(use.bound),
      bound_share(use) * 100, worst->while_working(use.units.compute) * 100,
      worst->while_working(use.units.memory) * 100,
      worst->while_working(use.units.sm_active) * 100);
  if (alike > 1) text += fmt::format("; {} more are, too", alike - 1);
  findings->push_back({sum_s, text});
}

void Findings::add_devices(std::vector<Finding>* findings) const {
  if (devices_ == nullptr) return;
  const ledger::UnrecordedText missing = ledger::unrecorded_text(*model_, devices_->summary());
  if (!missing.text.empty())
    findings->push_back({missing.is_loss ? kMissingWeightS : missing.total_s, missing.text});
  if (devices_->summary().uses.empty()) return;
  add_unit_bound(findings);
  const std::vector<ledger::DeviceWaste> devices =
      ledger::device_waste(*model_, devices_->summary().uses);
  const std::string text = ledger::waste_text(*model_, devices);
  if (text.empty()) return;
  uint64_t sum_ns = 0;
  for (const ledger::DeviceWaste& device : devices) sum_ns += device.sum_ns();
  findings->push_back({static_cast<double>(sum_ns) * 1e-9, text});
}

}  // namespace aon::writers
