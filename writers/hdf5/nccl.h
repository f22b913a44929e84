/// The tables of profile.h5 about NCCL: /nccl/communicators, /nccl/operations and /nccl/histograms,
/// of its proxies: /nccl/proxy, and of who comes late: /nccl/lateness, /nccl/true_times and
/// /nccl/links. Nothing is written for a job without NCCL.
/// Thread: one.   Errors: H5Error.
#pragma once

#include "writers/hdf5/h5.h"
#include "writers/nccl/lateness.h"
#include "writers/nccl/operations.h"
#include "writers/nccl/proxy_table.h"

namespace aon::writers::hdf5 {

/// Times on the GPU and bandwidths are NaN where neither NCCL nor CUPTI told them. Bandwidths are
/// those of nccl-tests, in 1e9 bytes per second.
/// `lateness` (null: not analysed) has rows where times on the GPU are known.
void write_nccl(hid_t file, const Model& model, const nccl::OperationTable& operations,
                const nccl::ProxyTable& proxy, const nccl::LatenessSummary* lateness);

}  // namespace aon::writers::hdf5
