/// What the driver reported of GPUs in trouble (Xid events): often why a job ended, or was slow.
/// Thread: any.   Cost: one look at each node.
#pragma once

#include <string>

#include "writers/ledger/totals.h"
#include "writers/writer.h"

namespace aon::writers {

/// "the driver reported an error of a GPU: Xid 79 of GPU-... on n1", of several the most frequent;
/// empty: none.
std::string gpu_errors_finding(const Model& model, const MetricTotals& totals);

}  // namespace aon::writers
