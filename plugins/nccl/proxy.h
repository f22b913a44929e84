/// What NCCL's proxy does for operations: at level net a record per operation and channel, at level
/// step its steps added up by what they wait for, a record per kNcclStepsPerRecord of them, and one
/// without any where the GPU's first data for a send took long.
///
///     send: start -- GPU -- 8 -- GPU -- 20 -- peer -- 9 -- network -- stop
///     recv: start -- 10 -- network -- 11 -- flush -- 12 -- GPU -- stop
///
/// Thread: NCCL's proxy threads, each with pieces of its own; the socket plugin's helpers.
/// Signal: no.   Cost: at most 60 ns, no lock, no allocation, no syscall: this delays the network.
/// Errors: none; what finds no slot, and what is of another process, is counted.
#pragma once

#include "nccl/state.h"

namespace aon::nccl {

/// Handles of the events, null when there is nothing to follow.
void* start_proxy(const void* context, const Descriptor* descriptor);
void* start_step(const Descriptor* descriptor);
void* note_network_event(const Descriptor* descriptor);  ///< null: its end tells nothing

void change_step(const Handle& handle, int state, const StateArguments* arguments);
/// Ends a step or a piece.
void stop_proxy(const Handle& handle);

/// Writes what the pieces of a communicator have so far: no more is told of them.
void end_proxies(uint32_t place);

}  // namespace aon::nccl
