/// What is known of the devices of one process, on its way to who combines them.
/// Thread: one.   Cost: a copy.
#pragma once

#include <vector>

#include "writers/devices/devices.h"
#include "writers/state.h"

namespace aon::writers::devices {

/// Up to the limit of DeviceAnalysis; calls of the others are counted.
void add_external_ids(const std::vector<ExternalIdRow>& rows, DeviceSummary* summary);

void save_summary(StateOut* out, const DeviceSummary& summary);

/// Adds rows up to the limits of DeviceAnalysis and counts the others.
/// Errors: kDamaged.
Status add_saved(StateIn* in, const Model& model, DeviceSummary* summary);

}  // namespace aon::writers::devices
