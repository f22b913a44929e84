#include "writers/devices/step_times.h"

#include <algorithm>

namespace aon::writers::devices {
namespace {

uint64_t duration_ns(const StepRow& row) {
  return row.part_ns[static_cast<size_t>(StepPart::kDuration)];
}

}  // namespace

/// Those of the process that has just passed are the last ones.
std::vector<const StepRow*> steps_of_group(const StepMeter* meter, uint32_t group) {
  std::vector<const StepRow*> rows;
  if (meter == nullptr) return rows;
  const std::vector<StepRow>& all = meter->rows_so_far();
  const auto before = std::find_if(all.rbegin(), all.rend(),
                                   [&](const StepRow& row) { return row.group != group; });
  for (auto row = before.base(); row != all.end(); ++row) {
    rows.push_back(&*row);
    if (rows.size() == DeviceAnalysis::kMaxSteps) break;
  }
  std::sort(rows.begin(), rows.end(),
            [](const StepRow* a, const StepRow* b) { return a->begin_ns < b->begin_ns; });
  return rows;
}

std::vector<Window> windows_of(const std::vector<const StepRow*>& steps) {
  std::vector<Window> windows;
  for (const StepRow* step : steps)
    windows.push_back({step->begin_ns, step->begin_ns + duration_ns(*step), {}});
  return windows;
}

DeviceStep step_of(const StepRow& row, const DevicePass& pass, size_t index,
                   const BlindTimes& blind) {
  DeviceStep step;
  step.group = row.group;
  step.device = pass.device;
  step.loop = row.loop;
  step.number = row.number;
  step.begin_ns = row.begin_ns;
  step.times = pass.sweep.windows()[index].times;
  step.times.span_ns = duration_ns(row);
  uint64_t told_ns = step.times.busy_ns;
  for (const uint64_t idle_ns : step.times.idle_ns) told_ns += idle_ns;
  // Before the first and behind the last work of the device.
  const uint64_t untold_ns = step.times.span_ns - std::min(step.times.span_ns, told_ns);
  const uint64_t end_ns = step.begin_ns + step.times.span_ns;
  const uint64_t before_ns =
      blind.overlap_ns(step.begin_ns, std::min(end_ns, pass.sweep.first_ns()));
  const uint64_t behind_ns =
      blind.overlap_ns(std::max(step.begin_ns, pass.sweep.last_ns()), end_ns);
  const uint64_t unrecorded_ns = std::min(untold_ns, before_ns + behind_ns);
  step.times.idle_ns[static_cast<size_t>(IdleReason::kUnrecorded)] += unrecorded_ns;
  step.times.idle_ns[static_cast<size_t>(IdleReason::kUnknown)] += untold_ns - unrecorded_ns;
  return step;
}

}  // namespace aon::writers::devices
