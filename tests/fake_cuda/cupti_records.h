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
/// Of the calling thread; `result` is what the call returned, 0: it worked.
Record call_record(const Work& work, int32_t result);
/// Of the call; `kind` as in CUpti_ExternalCorrelationKind.
Record external_record(uint32_t kind, uint64_t id, uint32_t correlation);
enum class Overhead : uint32_t {
  kFlush = 1 << 16,
  kInstrumentation = 2 << 16,
  kResource = 3 << 16,
  kBufferRequest = 7 << 16,
};
Record overhead_record(Overhead kind, uint64_t start_ns, uint64_t end_ns, uint32_t correlation);

/// Of a kind that nobody knows, with words that might be the begin of another.
Record strange_record();

/// Takes the end, or both times, from a record of work that is not over at `now_ns`.
void forget_end(uint8_t* record, uint64_t now_ns);

/// A byte into the file that the variable names: of flushes FAKE_CUPTI_FLUSHES, of readings of the
/// clock FAKE_CUPTI_TIMES.
void note(const char* variable);

/// A function of the driver; null: another one.
const char* function_name(uint32_t id);

/// As cuptiActivityGetNextRecord.
cupti::Code next_record(uint8_t* buffer, size_t bytes, uint8_t** record);

}  // namespace aon::fake
