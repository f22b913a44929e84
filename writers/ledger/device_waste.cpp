#include "writers/ledger/device_waste.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "writers/devices/device_names.h"

namespace aon::writers::ledger {
namespace {

constexpr double kLeastShare = 0.1;   ///< of the GPUs' time
constexpr double kLeastPart = 0.005;  ///< that a sentence tells of
constexpr double kMostly = 0.5;       ///< of idle time that has one reason
/// A mean that a device needs itself from one piece of work to the next: 1 us, with room.
constexpr uint64_t kShortGapNs = 5000;

struct Span {
  uint64_t begin_ns;
  uint64_t end_ns;
};

/// How long at least one lasts.
uint64_t covered_ns(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end(),
            [](const Span& a, const Span& b) { return a.begin_ns < b.begin_ns; });
  uint64_t sum_ns = 0;
  uint64_t end_ns = 0;
  for (const Span& span : spans) {
    const uint64_t begin_ns = std::max(span.begin_ns, end_ns);
    if (span.end_ns > begin_ns) sum_ns += span.end_ns - begin_ns;
    end_ns = std::max(end_ns, span.end_ns);
  }
  return sum_ns;
}

uint64_t idle_ns(const DeviceUse& use, IdleReason reason) {
  return use.times.idle_ns[static_cast<size_t>(reason)];
}

DeviceWaste waste_of(const std::vector<const DeviceUse*>& uses) {
  DeviceWaste waste;
  waste.group = uses.front()->group;
  waste.device = uses.front()->device;
  waste.process_count = static_cast<uint32_t>(uses.size());
  std::vector<Span> spans;
  uint64_t separate_ns = 0;
  uint64_t busy_ns = 0;
  uint64_t unrecorded_ns = 0;
  for (const DeviceUse* use : uses) {
    spans.push_back({use->begin_ns, use->begin_ns + use->times.span_ns});
    separate_ns += use->times.span_ns;
    busy_ns += use->times.busy_ns;
    unrecorded_ns += idle_ns(*use, IdleReason::kUnrecorded);
  }
  const uint64_t span_ns = covered_ns(std::move(spans));
  waste.span_ns = span_ns - std::min(span_ns, unrecorded_ns);
  waste.has_gaps = unrecorded_ns != 0;
  waste.idle_ns = waste.span_ns - std::min(waste.span_ns, busy_ns);
  if (span_ns < separate_ns) return waste;  // at the same time
  for (const DeviceUse* use : uses) {
    waste.late_ns += idle_ns(*use, IdleReason::kHostWait) + idle_ns(*use, IdleReason::kLaunch);
    waste.starved_ns += idle_ns(*use, IdleReason::kStarved);
    waste.starved_count += use->idle[static_cast<size_t>(IdleReason::kStarved)].count;
    waste.exposed_ns += use->times.exposed_ns;
    waste.only_copying_ns += use->times.only_copying_ns;
  }
  return waste;
}

bool is_most_of(uint64_t part_ns, uint64_t all_ns) {
  return static_cast<double>(part_ns) > kMostly * static_cast<double>(all_ns);
}

std::string place_text(const Model& model, const DeviceWaste& worst) {
  std::string text = device_text(model, worst.group, worst.device);
  if (worst.process_count > 1) text += fmt::format(", which {} processes use", worst.process_count);
  return text;
}

/// "in 40 % communication runs with nothing computed beside it, ...", the largest first.
std::string parts_text(const DeviceWaste& sum) {
  std::pair<uint64_t, const char*> parts[] = {
      {sum.idle_ns, "they have nothing to do"},
      {sum.exposed_ns, "communication runs without computing beside it"},
      {sum.only_copying_ns, "copies run with nothing beside them"}};
  std::stable_sort(std::begin(parts), std::end(parts),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (const auto& [part_ns, what] : parts) {
    const double share = static_cast<double>(part_ns) / static_cast<double>(sum.span_ns);
    if (share < kLeastPart) continue;
    text += fmt::format("{}in {:.0f} % {}", text.empty() ? "" : ", ", share * 100, what);
  }
  return text;
}

}  // namespace

std::string device_text(const Model& model, uint32_t group, uint32_t device) {
  std::string text = fmt::format("GPU {} of {}", device, model.groups[group].name);
  const std::string uuid = devices::uuid_text(model.groups[group], device);
  return uuid.empty() ? text : text + " (" + uuid + ")";
}

std::vector<std::vector<const DeviceUse*>> uses_by_device(const Model& model,
                                                          const std::vector<DeviceUse>& uses) {
  // A machine whose containers had an agent each is several nodes.
  std::map<std::pair<std::string, std::string>, size_t> places;
  std::vector<std::vector<const DeviceUse*>> devices;
  for (const DeviceUse& use : uses) {
    const std::string uuid = devices::uuid_text(model.groups[use.group], use.device);
    size_t place = devices.size();
    const std::string& host = model.job->nodes[model.groups[use.group].node].host;
    if (!uuid.empty()) place = places.try_emplace({host, uuid}, place).first->second;
    if (place == devices.size()) devices.emplace_back();
    devices[place].push_back(&use);
  }
  return devices;
}

std::vector<DeviceWaste> device_waste(const Model& model, const std::vector<DeviceUse>& uses) {
  const std::vector<std::vector<const DeviceUse*>> devices = uses_by_device(model, uses);
  std::vector<DeviceWaste> all;
  for (const std::vector<const DeviceUse*>& of_device : devices) {
    const bool is_unknown =
        std::all_of(of_device.begin(), of_device.end(),
                    [](const DeviceUse* use) { return use->bound == Bound::kUnrecorded; });
    if (!is_unknown) all.push_back(waste_of(of_device));
  }
  return all;
}

std::string waste_text(const Model& model, const std::vector<DeviceWaste>& devices) {
  DeviceWaste sum;
  const DeviceWaste* worst = nullptr;
  for (const DeviceWaste& one : devices) {
    sum.span_ns += one.span_ns;
    sum.idle_ns += one.idle_ns;
    sum.exposed_ns += one.exposed_ns;
    sum.only_copying_ns += one.only_copying_ns;
    sum.has_gaps |= one.has_gaps;
    if (worst == nullptr || one.sum_ns() > worst->sum_ns()) worst = &one;
  }
  if (worst == nullptr || sum.span_ns == 0) return {};
  const auto share = [&](uint64_t part_ns) {
    return static_cast<double>(part_ns) / static_cast<double>(sum.span_ns);
  };
  if (share(sum.sum_ns()) < kLeastShare) return {};
  const char* when = sum.has_gaps ? "% of what is recorded from their first to their last work"
                                  : "% of the time from their first to their last work";
  if (!is_most_of(sum.idle_ns, sum.sum_ns()))
    return fmt::format("GPUs compute nothing in {:.0f} {}: {}; most in {}",
                       share(sum.sum_ns()) * 100, when, parts_text(sum), place_text(model, *worst));
  std::string text = fmt::format("GPUs have nothing to do in {:.0f} {}; most in {}",
                                 share(sum.idle_ns) * 100, when, place_text(model, *worst));
  if (is_most_of(worst->late_ns, worst->idle_ns)) text += ": the host launches too late";
  if (is_most_of(worst->starved_ns, worst->idle_ns))
    text += worst->starved_ns < kShortGapNs * worst->starved_count
                ? ": its work is short beside the gap between two pieces"
                : ": work that was launched waits for other work";
  return text;
}

}  // namespace aon::writers::ledger
