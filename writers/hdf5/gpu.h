/// The tables of /gpu, which is there when a process used a device:
///
/// | table    | rows                                                                            |
/// |----------|---------------------------------------------------------------------------------|
/// | /devices | a device of a process: name, UUID, address on its bus, CPUs and NUMA nodes near |
/// | /kernels | kernels of one name on a device: count, total, mean, min and max of their times |
/// | /graphs  | the same of graphs that were recorded as one                                    |
/// | /copies  | copies and sets of memory of one kind on a device: count, bytes, times          |
///
/// and those of gpu_use.h.   Thread: one.   Errors: H5Error.
#pragma once

#include <string>

#include "writers/devices/devices.h"
#include "writers/hdf5/h5.h"
#include "writers/profile/device_work.h"
#include "writers/writer.h"

namespace aon::writers::hdf5 {

/// `devices` null: not analysed.
void write_gpu(hid_t file, const Model& model, const profile::DeviceWorkTable& work,
               const DeviceSummary* devices, const Outcome& outcome);

/// That kernels of several names are one, "" where none are.
std::string joined_text(const profile::DeviceWorkTable& work);

}  // namespace aon::writers::hdf5
