/// Records of CUPTI as CUDA 13.0 lays them out, made of what the fake driver tells; and CUPTI's
/// iterator over them.
/// Thread: any.
#pragma once

#include <cstdint>
#include <vector>

#include "plugins/cupti/interface.h"
#include "tests/fake_cuda/fake_cuda.h"

namespace aon::fake {

using Record = std::vector<uint8_t>;

Record kernel_record(const Work& work);
Record copy_record(const Work& work);
Record set_record(const Work& work);
Record graph_record(const Work& work);
Record synchronization_record(const Work& work);
/// Of the calling thread.
Record call_record(const Work& work);
Record overhead_record(const Work& work, uint64_t cost_ns);

/// A byte into the file that the variable names: of flushes FAKE_CUPTI_FLUSHES, of readings of the
/// clock FAKE_CUPTI_TIMES.
void note(const char* variable);

/// A function of the driver; null: another one.
const char* function_name(uint32_t id);

/// As cuptiActivityGetNextRecord.
cupti::Code next_record(uint8_t* buffer, size_t bytes, uint8_t** record);

}  // namespace aon::fake
