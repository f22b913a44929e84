/// The buffers of the made-up CUPTI: one for each thread, sealed when it is full or flushed, and
/// handed over by a worker once all that its records tell of is over, as NVIDIA's does (seen with
/// CUDA 13.0 on an H200: tests/replay/cupti).
/// Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plugins/cupti/interface.h"
#include "tests/fake_cuda/cupti_records.h"

namespace aon::fake {

/// FAKE_CUPTI_NAME as a number; 0: not there.
uint64_t knob(const char* name);
uint64_t host_ns();

/// Who asks for buffers and gets them: functions of one of the two interfaces, or none.
struct BufferUser {
  cupti::RequestBuffer request = nullptr;
  cupti::CompleteBuffer complete = nullptr;
  cupti::RequestBufferV2 request_v2 = nullptr;
  cupti::CompleteBufferV2 complete_v2 = nullptr;
};
void set_buffer_user(const BufferUser& user);
bool has_buffer_user();
/// From now on buffers have to be zero when they are got; else the process ends.
void promise_zeros(bool is_promised);

/// Of what is over at `over_ns`. A buffer that was got for it tells of that behind it, where
/// `has_overhead`, with the id of the call.
void put(const Record& record, uint64_t over_ns, uint32_t correlation, bool has_overhead);
/// Seals all buffers and waits for those that can be handed over. `is_forced`: all; what is not
/// over has no end then.
void flush(bool is_forced);
/// What no buffer has is lost.
void lose_records();
size_t take_dropped();
void drop();

}  // namespace aon::fake
