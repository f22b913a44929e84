/// Bytes of collective calls, counted as Score-P counts them: every pair of processes that exchange
/// data counts, a process with itself included (a Bcast's root sends its message once to each
/// process, itself too); MPI_IN_PLACE moves nothing between a process and itself.
///
/// A member function per form; a row of functions.table names it with the arguments it needs.
/// Arrays of counts are of int or, in large-count calls, of int64_t. For
/// inter-communicators the other group counts, and only MPI_ROOT is the root; the counts of a
/// Reduce_scatter are of the own group. Neighbours that a Cartesian grid ends before are none.
/// Thread: any.   Cost: O(1); forms with arrays of counts add them up: O(processes).
#pragma once

#include <aon/mpi.h>
#include <aon/mpi_records.h>
#include <aon/record.h>

#include "mpi/call.h"
#include "mpi/communicators.h"
#include "mpi/datatypes.h"
#include "mpi/requests.h"

namespace aon::mpi {

struct Bytes {
  uint64_t sent;
  uint64_t received;
  bool is_from_all = false;  ///< Alltoallv, Alltoallw: it gets something from every other process

  uint16_t flags() const { return is_from_all ? kFromAll : 0; }
};

class Traffic {
 public:
  explicit Traffic(Communicator* c) : c_(*c), peer_count_(c->peer_count) {}

  Bytes none() const { return {0, 0}; }

  Bytes broadcast(int64_t count, Handle type, int root) const {
    const uint64_t bytes = bytes_of(count, type);
    if (is_inter()) return is_root(root) ? Bytes{peer_count_ * bytes, 0} : to_all(root, bytes);
    return {is_root(root) ? peer_count_ * bytes : 0, bytes};
  }

  Bytes gather(const void* send, int64_t send_count, Handle send_type, int64_t receive_count,
               Handle receive_type, int root) const {
    const uint64_t sent = contributes(send, root) ? bytes_of(send_count, send_type) : 0;
    if (!is_root(root)) return {sent, 0};
    return {sent, others(send) * bytes_of(receive_count, receive_type)};
  }
  template <class Count>
  Bytes gatherv(const void* send, int64_t send_count, Handle send_type, const Count* receive_counts,
                Handle receive_type, int root) const {
    const uint64_t sent = contributes(send, root) ? bytes_of(send_count, send_type) : 0;
    if (!is_root(root)) return {sent, 0};
    return {sent, bytes_of(sum(receive_counts, in_place(send)), receive_type)};
  }

  Bytes scatter(int64_t send_count, Handle send_type, const void* receive, int64_t receive_count,
                Handle receive_type, int root) const {
    const uint64_t received =
        contributes(receive, root) ? bytes_of(receive_count, receive_type) : 0;
    if (!is_root(root)) return {0, received};
    return {others(receive) * bytes_of(send_count, send_type), received};
  }
  template <class Count>
  Bytes scatterv(const Count* send_counts, Handle send_type, const void* receive,
                 int64_t receive_count, Handle receive_type, int root) const {
    const uint64_t received =
        contributes(receive, root) ? bytes_of(receive_count, receive_type) : 0;
    if (!is_root(root)) return {0, received};
    return {bytes_of(sum(send_counts, in_place(receive)), send_type), received};
  }

  Bytes allgather(const void* send, int64_t send_count, Handle send_type, int64_t receive_count,
                  Handle receive_type) const {
    return alltoall(send, send_count, send_type, receive_count, receive_type);
  }
  template <class Count>
  Bytes allgatherv(const void* send, int64_t send_count, Handle send_type,
                   const Count* receive_counts, Handle receive_type) const {
    const uint64_t received = bytes_of(sum(receive_counts, in_place(send)), receive_type);
    if (!in_place(send)) return {peer_count_ * bytes_of(send_count, send_type), received};
    return {others(send) * bytes_of(receive_counts[c_.rank], receive_type), received};
  }

  Bytes alltoall(const void* send, int64_t send_count, Handle send_type, int64_t receive_count,
                 Handle receive_type) const {
    const uint64_t received = others(send) * bytes_of(receive_count, receive_type);
    return {in_place(send) ? received : peer_count_ * bytes_of(send_count, send_type), received};
  }
  template <class Count>
  Bytes alltoallv(const void* send, const Count* send_counts, Handle send_type,
                  const Count* receive_counts, Handle receive_type) const {
    const uint64_t received = bytes_of(sum(receive_counts, in_place(send)), receive_type);
    const bool is_from_all = received != 0 && has_all_parts(receive_counts);
    if (in_place(send)) return {received, received, is_from_all};
    return {bytes_of(sum(send_counts, false), send_type), received, is_from_all};
  }
  template <class Count>
  Bytes alltoallw(const void* send, const Count* send_counts, Handles send_types,
                  const Count* receive_counts, Handles receive_types) const {
    const Typed received = sum_typed(receive_counts, receive_types, in_place(send));
    if (in_place(send)) return {received.bytes, received.bytes, received.is_of_all};
    return {sum_typed(send_counts, send_types, false).bytes, received.bytes, received.is_of_all};
  }

  Bytes allreduce(const void* send, int64_t count, Handle type) const {
    const uint64_t bytes = others(send) * bytes_of(count, type);
    return {bytes, bytes};
  }
  Bytes reduce(const void* send, int64_t count, Handle type, int root) const {
    const uint64_t bytes = bytes_of(count, type);
    return {contributes(send, root) ? bytes : 0, is_root(root) ? others(send) * bytes : 0};
  }
  template <class Count>
  Bytes reduce_scatter(const void* send, const Count* receive_counts, Handle type) const {
    const int64_t own = receive_counts[own_rank()];
    const int64_t total = add(receive_counts, c_.local_size) - (in_place(send) ? own : 0);
    return {bytes_of(total, type), others(send) * bytes_of(own, type)};
  }
  Bytes reduce_scatter_block(const void* send, int64_t receive_count, Handle type) const {
    const uint64_t bytes = bytes_of(receive_count, type);
    return {without_one(c_.local_size, in_place(send)) * bytes, others(send) * bytes};
  }
  Bytes scan(const void* send, int64_t count, Handle type) const {
    const uint64_t bytes = bytes_of(count, type);
    const uint64_t self_count = in_place(send) ? 0 : 1;
    return {(later_count() + self_count) * bytes, (c_.rank + self_count) * bytes};
  }
  Bytes exscan(const void*, int64_t count, Handle type) const {
    const uint64_t bytes = bytes_of(count, type);
    return {later_count() * bytes, c_.rank * bytes};
  }

  Bytes neighbor_allgather(int64_t send_count, Handle send_type, int64_t receive_count,
                           Handle receive_type) const {
    return neighbor_alltoall(send_count, send_type, receive_count, receive_type);
  }
  template <class Count>
  Bytes neighbor_allgatherv(int64_t send_count, Handle send_type, const Count* receive_counts,
                            Handle receive_type) const {
    return {out_degree() * bytes_of(send_count, send_type),
            bytes_of(add_there(receive_counts, in_places()), receive_type)};
  }
  Bytes neighbor_alltoall(int64_t send_count, Handle send_type, int64_t receive_count,
                          Handle receive_type) const {
    return {out_degree() * bytes_of(send_count, send_type),
            in_degree() * bytes_of(receive_count, receive_type)};
  }
  template <class Count>
  Bytes neighbor_alltoallv(const Count* send_counts, Handle send_type, const Count* receive_counts,
                           Handle receive_type) const {
    return {bytes_of(add_there(send_counts, out_places()), send_type),
            bytes_of(add_there(receive_counts, in_places()), receive_type)};
  }
  template <class Count>
  Bytes neighbor_alltoallw(const Count* send_counts, Handles send_types,
                           const Count* receive_counts, Handles receive_types) const {
    return {add_there(send_counts, send_types, out_places()),
            add_there(receive_counts, receive_types, in_places())};
  }

 private:
  bool is_inter() const { return c_.kind == CommunicatorKind::kInter; }
  bool is_root(int root) const {
    return is_inter() ? root == abi.root : root == static_cast<int>(c_.rank);
  }
  /// Not between groups: there the buffer may be one that the call does not look at.
  bool in_place(const void* buffer) const { return buffer == abi.in_place && !is_inter(); }
  /// Bytes of a leaf of a rooted call on an inter-communicator: none in the root's own group.
  Bytes to_all(int root, uint64_t bytes) const { return {0, root == abi.proc_null ? 0 : bytes}; }
  bool contributes(const void* buffer, int root) const {
    if (is_inter()) return root >= 0;
    return !(in_place(buffer) && is_root(root));
  }
  /// Processes this one exchanges with.
  uint64_t others(const void* buffer) const { return without_one(peer_count_, in_place(buffer)); }
  /// Of a communicator of which nothing is known (id 0) nobody is there.
  static uint64_t without_one(uint64_t count, bool is_without) {
    return count - (is_without && AON_LIKELY(count != 0) ? 1 : 0);
  }
  /// Processes behind this one.
  uint64_t later_count() const { return without_one(peer_count_, true) - c_.rank; }
  /// In its own group: what is scattered after a reduction stays there.
  uint32_t own_rank() const { return c_.rank - static_cast<uint32_t>(c_.own_offset); }
  template <class Count>
  int64_t sum(const Count* counts, bool without_self) const {
    return add(counts, peer_count_) - (without_self ? counts[c_.rank] : 0);
  }
  template <class Count>
  static int64_t add(const Count* counts, uint64_t count) {
    int64_t total = 0;
    for (uint64_t i = 0; i < count; ++i) total += counts[i];
    return total;
  }
  /// Whether no part is empty, but perhaps its own. Not between groups.
  template <class Count>
  bool has_all_parts(const Count* counts) const {
    if (is_inter()) return false;
    uint64_t empty_count = 0;
    for (uint64_t i = 0; i < peer_count_; ++i) empty_count += counts[i] <= 0 ? 1 : 0;
    return empty_count == (counts[c_.rank] <= 0 ? 1 : 0);
  }
  struct Typed {
    uint64_t bytes;
    bool is_of_all;  ///< as has_all_parts()
  };
  template <class Count>
  Typed sum_typed(const Count* counts, Handles types, bool without_self) const {
    uint64_t total = 0;
    uint64_t other_count = 0;
    for (uint64_t i = 0; i < peer_count_; ++i) {
      if (counts[i] <= 0 || (without_self && i == c_.rank)) continue;
      const uint64_t bytes = bytes_of(counts[i], types[static_cast<int>(i)]);
      total += bytes;
      other_count += bytes != 0 && i != c_.rank ? 1 : 0;
    }
    return {total, !is_inter() && other_count + 1 == peer_count_};
  }
  /// Places for neighbours in the arrays of a call.
  uint64_t in_places() const {
    if (c_.in_degree == kUnknownDegree) learn_degrees(&c_);
    return c_.in_degree;
  }
  uint64_t out_places() const {
    if (c_.out_degree == kUnknownDegree) learn_degrees(&c_);
    return c_.out_degree;
  }
  bool is_there(uint64_t place) const {
    return place >= 64 || (c_.absent_neighbors >> place & 1) == 0;
  }
  /// Neighbours that are there.
  uint64_t in_degree() const { return count_there(in_places()); }
  uint64_t out_degree() const { return count_there(out_places()); }
  uint64_t count_there(uint64_t places) const {
    return places - static_cast<uint64_t>(__builtin_popcountll(c_.absent_neighbors));
  }
  template <class Count>
  int64_t add_there(const Count* counts, uint64_t places) const {
    int64_t total = 0;
    for (uint64_t i = 0; i < places; ++i) total += is_there(i) ? counts[i] : 0;
    return total;
  }
  template <class Count>
  uint64_t add_there(const Count* counts, Handles types, uint64_t places) const {
    uint64_t total = 0;
    for (uint64_t i = 0; i < places; ++i) {
      if (is_there(i)) total += bytes_of(counts[i], types[static_cast<int>(i)]);
    }
    return total;
  }

  Communicator& c_;
  uint64_t peer_count_;
};

constexpr int kNoRoot = -1;

/// The root as the records have it: a rank of the communicator (its union), -1 for none.
[[gnu::always_inline]] inline int32_t root_in(const Communicator& c, int root) {
  if (AON_LIKELY(root >= 0)) return root + c.peer_offset;
  return root == abi.root && c.kind == CommunicatorKind::kInter ? static_cast<int32_t>(c.rank) : -1;
}

[[gnu::always_inline]] inline void finish_blocking_collective(const OpenCall& call,
                                                              CollectiveOperation operation,
                                                              const Communicator& c, int root,
                                                              Bytes bytes, int result) {
  const auto flags = static_cast<uint16_t>(failed(result) | bytes.flags());
  finish_collective(call, flags, c.id, bytes.sent, bytes.received,
                    pack_pair(root_in(c, root), static_cast<int32_t>(operation)), 0);
}

/// Of a call that made a communicator, and was over at `end`.
[[gnu::always_inline]] inline void finish_creation_at(const OpenCall& call, uint64_t end,
                                                      const Communicator& c, int result) {
  const uint64_t words[] = {
      0, pack_pair(kNoRoot, static_cast<int32_t>(CollectiveOperation::kCreateHandle)), 0};
  finish_call_at<3>(call, end, RecordKind::kCollective, failed(result), c.id, 0, words);
}

/// The record of a call that starts a collective, and its request.
[[gnu::always_inline]] inline void finish_start_collective(const OpenCall& call,
                                                           CollectiveOperation operation,
                                                           Communicator* c, int root, Bytes bytes,
                                                           Handles request, int result) {
  if (AON_UNLIKELY(result != kSuccess)) {
    finish_collective(call, kNonblocking | kFailed, c->id, 0, 0,
                      pack_pair(root_in(*c, root), static_cast<int32_t>(operation)), 0);
    return;
  }
  const uint64_t number = next_request_number();
  const auto flags = static_cast<uint16_t>(kNonblocking | bytes.flags());
  finish_collective(call, flags, c->id, bytes.sent, bytes.received,
                    pack_pair(root_in(*c, root), static_cast<int32_t>(operation)), number);
  Request started = {load_handle(request),
                     number,
                     bytes.sent,
                     c,
                     root_in(*c, root),
                     static_cast<int32_t>(operation),
                     {0},
                     RequestKind::kCollective,
                     false};
  started.bytes_received = bytes.received;
  put_request(call.w, started);
}

/// MPI_Bcast_init and its like: a span; the request waits for MPI_Start. All members make those of
/// a communicator in one order (MPI-4.1, 6.13), so its count is the same everywhere.
[[gnu::always_inline]] inline void finish_prepare_collective(const OpenCall& call,
                                                             CollectiveOperation operation,
                                                             Communicator* c, int root, Bytes bytes,
                                                             Handles request, int result) {
  if (!finish_preparing(call, result)) return;
  Request prepared = {load_handle(request),
                      0,
                      bytes.sent,
                      c,
                      root_in(*c, root),
                      static_cast<int32_t>(operation),
                      {0},
                      RequestKind::kCollective,
                      true};
  prepared.bytes_received = bytes.received;
  prepared.is_from_all = bytes.is_from_all;
  prepared.preparation = c->preparation_count.fetch_add(1, std::memory_order_relaxed) + 1;
  prepared.start_count = 0;
  put_request(call.w, prepared);
}

/// MPI_Comm_idup: what it makes is known already (add_copy()), its request is a collective's.
[[gnu::always_inline]] inline void finish_start_create(const OpenCall& call, Communicator* parent,
                                                       Handles request, int result) {
  finish_start_collective(call, CollectiveOperation::kCreateHandle, parent, kNoRoot, Bytes{0, 0},
                          request, result);
}

}  // namespace aon::mpi
