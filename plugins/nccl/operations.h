/// The callbacks' work: from events to one kNcclCall per operation, and the host's calls as
/// regions.
///
/// | event              | what is done                                                          |
/// |--------------------|-----------------------------------------------------------------------|
/// | CollApi, P2pApi    | opens an operation and a region on the calling thread                 |
/// | KernelLaunch       | notes when                                                            |
/// | Coll, P2p, CeColl  | completes the operation of its parent, or opens one that had no call  |
/// |                    | (old NCCL, replayed graphs); its end commits at level api             |
/// | KernelCh           | GPU times; the last channel commits at level gpu                      |
/// | ProxyOp, ProxyStep | records of their own (proxy.h)                                        |
/// | Group              | has a handle before version 5, for the sake of what is in it          |
/// | GroupApi, state 24 | region ncclGroupEnd, from the state to the end                        |
///
/// Thread: any.   Signal: no.   Cost: at most 60 ns, no lock, no allocation, no syscall (the first
/// event of a thread attaches it).   Errors: none; handles that are not ours do nothing.
#pragma once

#include "nccl/state.h"

namespace aon::nccl {

/// Returns the handle of the event, null when there is nothing to follow.
void* start_event(int version, void* context, const Descriptor* descriptor, uint64_t type);
void stop_event(void* handle);
void record_state(void* handle, int state, const StateArguments* arguments);

/// Commits what is in flight on the communicator at `place`.   Thread: any.
void commit_all(uint32_t place);

}  // namespace aon::nccl
