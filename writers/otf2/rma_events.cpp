// Events of one-sided communication, as Score-P's archives have them.

#include "writers/otf2/events.h"

namespace aon::writers::otf2 {
namespace {

constexpr uint64_t kLockId = 0;  ///< a window has one lock per target

RmaOperation operation_of(const Event& event) { return static_cast<RmaOperation>(event.tag); }

/// All processes of the window where there is no target.
uint32_t remote_of(const Event& event) {
  return event.peer < 0 ? OTF2_UNDEFINED_UINT32 : static_cast<uint32_t>(event.peer);
}

OTF2_CollectiveOp collective_of(RmaOperation operation) {
  switch (operation) {
    case RmaOperation::kCreate:
      return OTF2_COLLECTIVE_OP_CREATE_HANDLE;
    case RmaOperation::kCreateAllocated:
      return OTF2_COLLECTIVE_OP_CREATE_HANDLE_AND_ALLOCATE;
    case RmaOperation::kFree:
      return OTF2_COLLECTIVE_OP_DESTROY_HANDLE;
    case RmaOperation::kFreeAllocated:
      return OTF2_COLLECTIVE_OP_DESTROY_HANDLE_AND_DEALLOCATE;
    default:
      return OTF2_COLLECTIVE_OP_BARRIER;
  }
}

/// OTF2's examples: creation synchronizes processes, the end of an epoch memory, a fence both.
OTF2_RmaSyncLevel level_of(RmaOperation operation) {
  switch (operation) {
    case RmaOperation::kCreate:
    case RmaOperation::kCreateAllocated:
    case RmaOperation::kFree:
    case RmaOperation::kFreeAllocated:
      return OTF2_RMA_SYNC_LEVEL_PROCESS;
    case RmaOperation::kFence:
      return OTF2_RMA_SYNC_LEVEL_PROCESS | OTF2_RMA_SYNC_LEVEL_MEMORY;
    case RmaOperation::kComplete:
    case RmaOperation::kWait:
    case RmaOperation::kTest:
      return OTF2_RMA_SYNC_LEVEL_MEMORY;
    default:
      return OTF2_RMA_SYNC_LEVEL_NONE;
  }
}

OTF2_RmaAtomicType atomic_of(RmaOperation operation) {
  switch (operation) {
    case RmaOperation::kAccumulate:
      return OTF2_RMA_ATOMIC_TYPE_ACCUMULATE;
    case RmaOperation::kCompareAndSwap:
      return OTF2_RMA_ATOMIC_TYPE_COMPARE_AND_SWAP;
    default:
      return OTF2_RMA_ATOMIC_TYPE_FETCH_AND_ACCUMULATE;
  }
}

}  // namespace

OTF2_ErrorCode EventEncoder::transfer(const Event& event) {
  const uint32_t target = remote_of(event);
  switch (operation_of(event)) {
    case RmaOperation::kPut:
      return OTF2_EvtWriter_RmaPut(file_, nullptr, event.time_ns, event.communicator, target,
                                   event.bytes, event.request);
    case RmaOperation::kGet:
      return OTF2_EvtWriter_RmaGet(file_, nullptr, event.time_ns, event.communicator, target,
                                   event.bytes_received, event.request);
    default:
      return OTF2_EvtWriter_RmaAtomic(file_, nullptr, event.time_ns, event.communicator, target,
                                      atomic_of(operation_of(event)), event.bytes,
                                      event.bytes_received, event.request);
  }
}

/// What made the window may lie before the archive's time, be evicted or be lost: then it is there
/// from its first event on, for each event of a window needs its create.
OTF2_ErrorCode EventEncoder::create_window(const Event& event) {
  const RmaOperation operation = operation_of(event);
  const bool creates =
      operation == RmaOperation::kCreate || operation == RmaOperation::kCreateAllocated;
  if (creates && event.kind == EventKind::kRmaCollectiveBegin) return OTF2_SUCCESS;
  if (!windows_.insert(event.communicator).second) return OTF2_SUCCESS;
  return OTF2_EvtWriter_RmaWinCreate(file_, nullptr, event.time_ns, event.communicator);
}

OTF2_ErrorCode EventEncoder::rma(const Event& event) {
  const RmaOperation operation = operation_of(event);
  const uint32_t window = event.communicator;
  if (event.kind == EventKind::kRmaLock) locks_.insert({window, event.peer});
  if (event.kind == EventKind::kRmaUnlock && locks_.erase({window, event.peer}) == 0)
    return OTF2_SUCCESS;  // what took it lies there, too
  if (const OTF2_ErrorCode code = create_window(event); code != OTF2_SUCCESS) return code;
  switch (event.kind) {
    case EventKind::kRmaCollectiveBegin:
      return OTF2_EvtWriter_RmaCollectiveBegin(file_, nullptr, event.time_ns);
    case EventKind::kRmaCollectiveEnd:
      return OTF2_EvtWriter_RmaCollectiveEnd(file_, nullptr, event.time_ns,
                                             collective_of(operation), level_of(operation), window,
                                             OTF2_COLLECTIVE_ROOT_NONE, 0, 0);
    case EventKind::kRmaWindowCreate:
      return OTF2_SUCCESS;  // create_window() has written it
    case EventKind::kRmaWindowDestroy:
      return OTF2_EvtWriter_RmaWinDestroy(file_, nullptr, event.time_ns, window);
    case EventKind::kRmaLocalComplete:
      return OTF2_EvtWriter_RmaOpCompleteBlocking(file_, nullptr, event.time_ns, window,
                                                  event.request);
    case EventKind::kRmaRequestComplete:
      return OTF2_EvtWriter_RmaOpCompleteNonBlocking(file_, nullptr, event.time_ns, window,
                                                     event.request);
    case EventKind::kRmaRemoteComplete:
      return OTF2_EvtWriter_RmaOpCompleteRemote(file_, nullptr, event.time_ns, window,
                                                event.request);
    case EventKind::kRmaGroupSync: {
      const auto group = static_cast<uint32_t>(event.request);
      return OTF2_EvtWriter_RmaGroupSync(file_, nullptr, event.time_ns, level_of(operation), window,
                                         group != 0 ? group : members_of_window(window));
    }
    case EventKind::kRmaLock:
      return OTF2_EvtWriter_RmaAcquireLock(
          file_, nullptr, event.time_ns, window, remote_of(event), kLockId,
          operation == RmaOperation::kLockExclusive ? OTF2_LOCK_EXCLUSIVE : OTF2_LOCK_SHARED);
    case EventKind::kRmaUnlock:
      return OTF2_EvtWriter_RmaReleaseLock(file_, nullptr, event.time_ns, window, remote_of(event),
                                           kLockId);
    case EventKind::kRmaSync:
      return OTF2_EvtWriter_RmaSync(file_, nullptr, event.time_ns, window, remote_of(event),
                                    OTF2_RMA_SYNC_TYPE_MEMORY);
    default:
      return transfer(event);
  }
}

}  // namespace aon::writers::otf2
