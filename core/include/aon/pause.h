/// When the program had paused the recording (MPI_Pcontrol(0)): for providers that learn of work
/// after it was done, such as that of devices. Others ask their site's mode word.
/// Owner: libaon.so.   Thread: any.   Signal: safe.
#pragma once

#include <cstdint>

namespace aon {
extern "C" {
/// Whether the recording was paused at `ticks` of the process's clock.
/// Cost: two loads while nothing was ever paused, else about 2 ns per border of a pause since
/// `ticks`. Of pauses that lie more than 512 others back nothing is known: false.
__attribute__((visibility("default"))) bool aon_was_paused(uint64_t ticks) noexcept;
}
}  // namespace aon
