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

/// As cuptiActivityGetNextRecord.
cupti::Code next_record(uint8_t* buffer, size_t bytes, uint8_t** record);

}  // namespace aon::fake
