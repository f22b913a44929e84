/// External correlation ids of the made-up CUPTI: a stack of each kind, of each thread.
/// Thread: any; each has its own.
#pragma once

#include <cstdint>
#include <vector>

#include "plugins/cupti/interface.h"
#include "tests/fake_cuda/cupti_records.h"

namespace aon::fake {

/// As cuptiActivityPushExternalCorrelationId and cuptiActivityPopExternalCorrelationId.
cupti::Code push_external_id(uint32_t kind, uint64_t id);
cupti::Code pop_external_id(uint32_t kind, uint64_t* id);

/// What stands before the record of the calling thread's call: of each kind the id that was pushed
/// last.
std::vector<Record> external_records(uint32_t correlation);

}  // namespace aon::fake
