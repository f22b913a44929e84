/// /functions, /callpaths and /samples of profile.h5: where the samples hit.
/// Thread: one.   Errors: H5Error.
#pragma once

#include <hdf5.h>

#include "writers/profile/call_samples.h"
#include "writers/writer.h"

namespace aon::writers::hdf5 {

/// Nothing when the job was not sampled.
void write_call_paths(hid_t file, const Model& model, const profile::CallSamples& samples);

}  // namespace aon::writers::hdf5
