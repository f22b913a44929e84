/// The tables of /gpu that say how devices were used (writers/devices):
///
/// | table     | rows                                                                          |
/// |-----------|-------------------------------------------------------------------------------|
/// | /use      | a device of a process: busy with what, what overlaps, what bounds it          |
/// | /idle     | why it was idle: host wait, launch, starved, unknown, not recorded            |
/// | /steps    | the same of each step of the process                                          |
/// | /external_ids | calls and work by external correlation id, where the program pushed some     |
/// | /launches | work of one name launched from the same annotation: count, time, launch delay |
///
/// Thread: one.   Errors: H5Error.
#pragma once

#include <string>

#include "writers/devices/devices.h"
#include "writers/hdf5/h5.h"
#include "writers/writer.h"

namespace aon::writers::hdf5 {

/// `gpu` is the group /gpu.
void write_gpu_use(hid_t gpu, const Model& model, const DeviceSummary& devices);

/// What they lack for want of room, "" nothing.
std::string left_out_text(const DeviceSummary& devices);

/// That rows of /launches are one, "" where none are.
std::string joined_text(const DeviceSummary& devices);

}  // namespace aon::writers::hdf5
