/// Steps of a process as windows of time of a device, and what the device did in each.
/// Thread: any.   Cost: two binary searches per step.
#pragma once

#include <vector>

#include "writers/devices/blind_times.h"
#include "writers/devices/device_pass.h"
#include "writers/devices/devices.h"

namespace aon::writers::devices {

/// Of the process `group`, the last that has passed, in order of their begin; null: none.
std::vector<const StepRow*> steps_of_group(const StepMeter* meter, uint32_t group);
std::vector<Window> windows_of(const std::vector<const StepRow*>& steps);

/// Of the window `index` of `pass`, which is done.
DeviceStep step_of(const StepRow& row, const DevicePass& pass, size_t index,
                   const BlindTimes& blind);

}  // namespace aon::writers::devices
