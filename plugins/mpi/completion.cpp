#include "mpi/completion.h"

#include <aon/mpi.h>

#include "mpi/files.h"
#include "mpi/memory.h"

namespace aon::mpi {
namespace {

/// What a receive asked for.
struct Asked {
  int32_t peer;
  int32_t tag;
  uint64_t number;
};

/// The record of the end of a message; once for all, for it is long.
[[gnu::noinline]] void put_end(Writer* w, uint64_t now, uint16_t flags, const Request& request,
                               uint64_t bytes, uint64_t peer_tag, uint64_t number) {
  if (AON_UNLIKELY(request.is_partitioned)) flags |= kPartitioned;
  const uint64_t words[] = {peer_tag, number, request.channel};
  put_event<3>(w, RecordKind::kCompletion, now, flags, 0, request.communicator->id, bytes, words);
}

/// A receive from MPI_PROC_NULL got nothing, whatever the status says: MPICH 4.0's says rank 0.
void complete_receive(Writer* w, uint64_t now, const Request& request, const Asked& asked,
                      const Status* status, uint16_t flags) {
  int32_t peer = asked.peer;
  int32_t tag = asked.tag;
  uint64_t bytes = 0;
  if ((flags & (kFailed | kCancelled)) == 0 && asked.peer != kNoPeer) {
    peer = peer_in(*request.communicator, status_source(status));
    tag = status_tag(status);
    bytes = status_bytes(status);
  }
  put_end(w, now, flags | kIncoming, request, bytes, pack_pair(peer, tag), asked.number);
}

inline void complete_send(Writer* w, uint64_t now, const Request& request, uint16_t flags) {
  put_end(w, now, flags | kOutgoing, request, request.bytes, pack_pair(request.peer, request.tag),
          request.number);
}

/// With all that its start knew (aon/mpi.h): another thread may have made that record.
void complete_collective(Writer* w, uint64_t now, const Request& request, uint16_t flags) {
  const uint64_t words[] = {pack_pair(request.peer, request.tag), request.number,
                            request.bytes_received};
  constexpr auto kWhat = static_cast<uint32_t>(RecordKind::kCollective);
  put_event<3>(w, RecordKind::kCompletion, now, flags, kWhat, request.communicator->id,
               request.bytes, words);
}

void complete_rma(Writer* w, uint64_t now, const Request& request, uint16_t flags) {
  put_completion(w, now, flags, request.window, request.bytes, pack_pair(request.peer, request.tag),
                 request.number);
}

/// MPI_Isendrecv tells in the status what it received. MPICH 4.0 leaves there what an earlier
/// request did: then nobody can know.
std::atomic<bool> g_exchange_is_told;
std::atomic<bool> g_exchange_is_learned;

bool exchange_is_told() { return g_exchange_is_told.load(std::memory_order_relaxed); }

/// The completion of a receive of which it is not known what it received.
void put_unknown_receive(Writer* w, uint64_t now, const Request& request, uint64_t number) {
  put_end(w, now, kIncoming, request, 0, pack_pair(kAnyPeer, abi.any_tag), number);
}

/// What a read or write has moved.
void complete_io(Writer* w, uint64_t now, const Request& request, uint64_t moved_bytes,
                 uint16_t flags) {
  put_io_completion(w, now, flags, static_cast<uint32_t>(request.peer), moved_bytes,
                    pack_pair(request.tag & 0xff, request.tag >> 8), request.number);
}

/// The record of one request that has been taken out of the table.
void put_completed(Writer* w, uint64_t now, const Request& request, const Status* status,
                   int result) {
  if (w == nullptr) return;  // paused
  uint16_t flags = failed(result);
  switch (request.kind) {
    case RequestKind::kReceive:
      if (result == kSuccess && status_cancelled(status)) flags |= kCancelled;
      complete_receive(w, now, request, {request.peer, request.tag, request.number}, status, flags);
      break;
    case RequestKind::kSend:
      if (result == kSuccess && status_cancelled(status)) flags |= kCancelled;
      complete_send(w, now, request, flags);
      break;
    case RequestKind::kExchange:
      complete_send(w, now, request, flags);
      if (result == kSuccess && request.source != kNoPeer && !exchange_is_told()) {
        put_unknown_receive(w, now, request, request.number + 1);
        break;
      }
      complete_receive(w, now, request, {request.source, abi.any_tag, request.number + 1}, status,
                       flags);
      break;
    case RequestKind::kCollective:
      complete_collective(w, now, request, flags);
      break;
    case RequestKind::kRma:
      if (!request.is_told) complete_rma(w, now, request, flags);
      break;
    case RequestKind::kFile:  // cannot be cancelled; Open MPI 4.1 leaves that field as it was
      complete_io(w, now, request, flags == 0 ? status_bytes(status) : 0, flags);
      break;
    case RequestKind::kMessage:
      break;
  }
}

/// Whether a call that failed tells nothing but that: of all that it completed nobody knows more.
bool keeps_failures(Handles requests) {
  return requests.convert != nullptr && abi.fortran.keeps_failures;
}

/// Whether `handle`, which was at `index` before a call that failed, is a request still. An INTEGER
/// that was not written may be none: the library says.
bool is_there(Handle handle, Handles requests, int index) {
  if (!requests.has_kept(index, handle)) return false;
  if (!keeps_failures(requests) || (handle & kOfFortran) == 0) return true;
  return queries.request_f2c(static_cast<const int32_t*>(requests.data)[index]) != 0;
}

/// A call that failed and left the handle as it was has refused its arguments and waited for
/// nothing; only persistent requests keep their handle when they are complete.
bool is_refused(const Request& request, Handle handle, Handles requests, int index, int result) {
  return AON_UNLIKELY(result != kSuccess) && !request.is_persistent &&
         is_there(handle, requests, index);
}

}  // namespace

/// Memory for the copies of one call, kept in a list while no call uses it.
struct WaitMany::Block {
  Block* next;
  size_t byte_count;
  int capacity;

  Handle* handles() { return reinterpret_cast<Handle*>(this + 1); }
  Status* statuses() { return reinterpret_cast<Status*>(handles() + capacity); }
};

namespace {
SpinLock g_blocks_lock;
void* g_blocks AON_GUARDED_BY(g_blocks_lock);  // list of WaitMany::Block
}  // namespace

void complete_claimed(Writer* w, uint64_t now, const Request& claimed, Handle handle,
                      Handles requests, int index, const Status* status, int result) noexcept {
  if (is_refused(claimed, handle, requests, index, result)) {
    Request again = claimed;
    again.handle = handle;
    put_request(w, again);
  } else {
    if (claimed.kind == RequestKind::kFile) note_transfer_over(claimed);
    put_completed(w, now, claimed, status, result);
  }
}

/// More requests than lie on the stack.
void WaitMany::prepare(Handles requests, Status* statuses, bool is_ignored) noexcept {
  if (!use_block(count_)) {  // no memory: this call completes nothing that we would know
    count_ = 0;
    statuses_ = statuses;
    return;
  }
  handles_ = block_->handles();
  if (is_ignored) statuses_ = block_->statuses();
  requests.copy(count_, handles_);
}

bool WaitMany::use_block(int count) {
  {
    Guard guard(&g_blocks_lock);
    block_ = static_cast<Block*>(g_blocks);
    if (block_ != nullptr) g_blocks = block_->next;
  }
  if (block_ != nullptr && block_->capacity >= count) return true;
  if (block_ != nullptr) munmap(block_, block_->byte_count);
  const size_t capacity = (static_cast<size_t>(count) + 511) / 512 * 512;
  const size_t byte_count = sizeof(Block) + capacity * (sizeof(Handle) + kMaxStatusBytes);
  block_ = static_cast<Block*>(map_bytes(byte_count));
  if (block_ == nullptr) return false;
  block_->byte_count = byte_count;
  block_->capacity = static_cast<int>(capacity);
  return true;
}

void WaitMany::release_block() {
  Guard guard(&g_blocks_lock);
  block_->next = static_cast<Block*>(g_blocks);
  g_blocks = block_;
}

bool WaitMany::is_active() const noexcept {
  for (int i = 0; i < count_; ++i) {
    if (may_be_active(handles_[i], newest_)) return true;
  }
  return false;
}

void WaitMany::complete_one(Writer* w, uint64_t now, int index, int status_index,
                            int result) const noexcept {
  if (index < 0 || index >= count_) return;
  complete_request(w, now, handles_[index], newest_, requests_, index,
                   status_at(statuses_, status_index), result);
}

void WaitMany::complete_any(Writer* w, uint64_t now, int index, int result) const noexcept {
  if (AON_LIKELY(result == kSuccess)) return complete_one(w, now, index, 0, result);
  const bool is_told = !keeps_failures(requests_);
  for (int i = 0; i < count_; ++i) {
    const bool is_meant = is_told && i == index;
    if (is_meant || !is_there(handles_[i], requests_, i)) complete_one(w, now, i, 0, result);
  }
}

/// The error fields of the statuses are only set with MPI_ERR_IN_STATUS; any other error means that
/// the call did not wait at all and has written nothing: no count, no indices.
void WaitMany::complete_all(Writer* w, uint64_t now, int result) const noexcept {
  const bool is_in_status = is_error_class(result, abi.error_in_status);
  if (result != kSuccess && !is_in_status) return;
  const bool is_told = is_in_status && !keeps_failures(requests_);
  for (int i = 0; i < count_; ++i) {
    const int one_result = is_told ? status_error(status_at(statuses_, i)) : result;
    if (!is_error_class(one_result, abi.error_pending)) complete_one(w, now, i, i, one_result);
  }
}

void WaitMany::complete_some(Writer* w, uint64_t now, int outcount, const int* indices, int first,
                             int result) const noexcept {
  const bool is_in_status = is_error_class(result, abi.error_in_status);
  if (outcount == abi.undefined || (result != kSuccess && !is_in_status)) return;
  const bool is_kept = is_in_status && keeps_failures(requests_);
  if (is_kept) first = 0;
  for (int i = 0; i < outcount && i < count_; ++i) {
    const bool is_told = is_in_status && !is_kept;
    const int one_result = is_told ? status_error(status_at(statuses_, i)) : result;
    complete_one(w, now, indices[i] - first, i, one_result);
  }
}

void learn_exchange_status(Handle communicator) noexcept {
  constexpr int kTag = 30583;
  constexpr int kBytes = 3;
  const char out[kBytes] = {};
  char in[kBytes];
  uint64_t request = 0;
  OwnStatus status = {};
  int rank = 0;
  int is_inter = 0;
  if (queries.isendrecv == nullptr || queries.wait == nullptr || abi.fortran.byte == 0) return;
  if (queries.comm_test_inter != nullptr) queries.comm_test_inter(communicator, &is_inter);
  if (is_inter != 0 || g_exchange_is_learned.exchange(true, std::memory_order_relaxed)) return;
  if (queries.comm_rank(communicator, &rank) != kSuccess ||
      queries.isendrecv(out, kBytes, abi.fortran.byte, rank, kTag, in, kBytes, abi.fortran.byte,
                        rank, kTag, communicator, &request) != kSuccess ||
      queries.wait(&request, status.get()) != kSuccess) {
    return;
  }
  g_exchange_is_told.store(status_source(status.get()) == rank &&
                               status_tag(status.get()) == kTag &&
                               status_bytes(status.get()) == kBytes,
                           std::memory_order_relaxed);
}

void follow_start(Handle given, Handles requests, int index) noexcept {
  if (requests.is_null() || AON_LIKELY(requests.has_kept(index, given))) return;
  Request moved;
  if (!forget_request(nullptr, given, &moved)) return;
  // Freed, its handle may be that of a request which another thread has just begun.
  if (!moved.is_persistent) return put_request(nullptr, moved);
  const bool is_integer = requests.convert != nullptr && (given & kOfFortran) != 0;
  moved.handle = is_integer ? request_of_fortran(static_cast<const int32_t*>(requests.data)[index])
                            : requests[index];
  put_request(nullptr, moved);
}

void WaitMany::follow_starts() const noexcept {
  for (int i = 0; i < count_; ++i) follow_start(handles_[i], requests_, i);
}

void put_not_started(Writer* w, const Request& request) noexcept {
  const uint64_t now = ticks(w);
  if (request.kind == RequestKind::kSend) {
    complete_send(w, now, request, kCancelled);
  } else if (request.kind == RequestKind::kReceive) {
    complete_receive(w, now, request, {request.peer, request.tag, request.number}, nullptr,
                     kCancelled);
  } else {
    complete_collective(w, now, request, kFailed);
  }
}

void note_status(Handle handle, const Status* status, int result) noexcept {
  if (result != kSuccess || canonical(handle) == abi.request_null) return;
  tell_request(canonical(handle), {status_source(status), status_tag(status), status_bytes(status),
                                   status_cancelled(status)});
}

namespace {

/// The end of a freed request whose status the program has seen.
void complete_told(Writer* w, uint64_t now, const Request& request) {
  const bool is_exchange = request.kind == RequestKind::kExchange;
  const uint16_t flags = request.is_cancelled ? kCancelled : 0;
  if (request.kind == RequestKind::kFile) {
    complete_io(w, now, request, request.bytes_received, 0);
    return;
  }
  if (is_exchange || request.kind == RequestKind::kSend) complete_send(w, now, request, flags);
  if (request.kind == RequestKind::kSend) return;
  const uint64_t number = request.number + (is_exchange ? 1 : 0);
  if (is_exchange && !exchange_is_told()) {
    put_unknown_receive(w, now, request, number);
    return;
  }
  const bool has_come = flags == 0;
  put_end(w, now, flags | kIncoming, request, has_come ? request.bytes_received : 0,
          pack_pair(request.source, request.told_tag), number);
}

}  // namespace

void free_request(Writer* w, Handle handle) noexcept {
  Request request;
  if (handle == abi.request_null || !forget_request(w, handle, &request) || request.number == 0) {
    return;
  }
  if (request.kind == RequestKind::kFile) note_transfer_over(request);
  if (w == nullptr) return;  // paused
  const uint64_t now = ticks(w);
  if (request.is_told && request.kind == RequestKind::kRma) return;
  if (request.is_told) {
    complete_told(w, now, request);
    return;
  }
  const bool is_exchange = request.kind == RequestKind::kExchange;
  const int32_t source = is_exchange ? request.source : request.peer;
  const uint64_t receive_number = request.number + (is_exchange ? 1 : 0);
  // Of one that was cancelled nobody knows whether it was sent.
  const uint16_t send_flags = request.is_cancelled ? kFailed : 0;
  if (is_exchange || request.kind == RequestKind::kSend) complete_send(w, now, request, send_flags);
  if (is_exchange || request.kind == RequestKind::kReceive) {
    if (source == kNoPeer) {
      complete_receive(w, now, request, {source, abi.any_tag, receive_number}, nullptr, 0);
    } else {
      put_unknown_receive(w, now, request, receive_number);
    }
  } else if (request.kind == RequestKind::kRma) {
    complete_rma(w, now, request, 0);
  } else if (request.kind == RequestKind::kFile) {
    complete_io(w, now, request, 0, kCancelled);
  } else if (request.kind != RequestKind::kSend) {
    complete_collective(w, now, request, 0);
  }
}

}  // namespace aon::mpi
