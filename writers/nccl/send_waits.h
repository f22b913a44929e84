/// What the proxies of each member waited for in each operation. Their records name the call that
/// they work for; here that becomes what all members' parts are brought together by:
///
///     of a process:  operations  (communicator, call) -> communicator, key, sequence, place, begin
///                    works       (communicator, call, channel, direction, peer) -> waits
///                    when its events have passed both are joined
///     of all:        of an operation and member that sends, a row: of its links' channels the one
///                    that waited longest for the network, summed up over steps. Channels side by
///                    side would hide that one of them stalls, and ranks have more or fewer
///                    of each whom it receives from, a row: on one channel, what came and waited
///                    for the GPU
///
/// What sends wait for the GPU before its kernel begins is no part of it: NCCL's proxy works from
/// the launch on. Only level step tells it. Sends whose operation is not known, or has no times on
/// the GPU, are left out and counted.
/// Thread: one.   Cost: some ns per record; memory 4 MiB, the rest in files in the output's folder:
/// kOperationBytes per operation (more, where it receives from several), and 64 per record of steps
/// of the current process.
/// Errors: kIo, when these have no room.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <tuple>
#include <vector>

#include "writers/state.h"
#include "writers/waits/sorted_store.h"
#include "writers/writer.h"

namespace aon::writers::nccl {

/// A member's part of an operation, by what parts are brought together (lateness.h).
struct PartKey {
  uint64_t key;
  uint64_t sequence;
  uint32_t communicator;  ///< global
  uint32_t place;
  bool is_of_one(const PartKey& other) const {
    return communicator == other.communicator && key == other.key && sequence == other.sequence;
  }
  bool operator<(const PartKey& other) const {
    return std::tie(communicator, key, sequence, place) <
           std::tie(other.communicator, other.key, other.sequence, other.place);
  }
};

/// Of a member's sends, or of its receives from one other. Steps run side by side: waits are the
/// sums of theirs, and may be more than the time they took.
struct SendWaits {
  PartKey part;
  uint64_t network_ns;
  uint64_t all_ns;  ///< for the GPU, from its kernel's begin on, for the peer and for the network
  /// Of receives: what came waited for the GPU. Of sends: on one channel that, from all whom the
  /// member receives from, and at the same time those whom it sends to waited for its GPU.
  uint64_t gpu_ns;
  uint32_t peer;  ///< rank in the communicator
  uint32_t is_receive;
  bool operator<(const SendWaits& other) const {
    if (part < other.part || other.part < part) return part < other.part;
    return std::tie(is_receive, peer) < std::tie(other.is_receive, other.peer);
  }
};

/// Of a link's waiting.
constexpr bool is_most(uint64_t part_ns, uint64_t all_ns) {
  return static_cast<double>(part_ns) >= 2.0 / 3 * static_cast<double>(all_ns);
}

/// What waited longest in an operation, of what can have held it up.
struct LongestWaits {
  const SendWaits* link = nullptr;  ///< null: all that was sent waited for its receiver's GPU
  std::vector<uint64_t> others_ns;  ///< of all members but the link's
  uint64_t network_ns = 0;          ///< of any link, the longest
  const SendWaits* gpu = nullptr;   ///< of the member whose GPU was waited for longest
  std::vector<uint64_t> other_gpus_ns;
};
/// `rows`: all of the operation, in order.   Cost: a search per row.
LongestWaits find_longest(std::span<const SendWaits> rows, bool is_transfer);

/// Whether any process may tell steps of its proxies.
bool may_have_steps(const Group& group);
bool may_have_steps(const Model& model);

class SendWaitStore {
 public:
  static constexpr size_t kOperationBytes = 48 + 2 * sizeof(SendWaits);  ///< of temporary files
  static constexpr size_t kMaxSources = 16;  ///< whom it receives from; beyond, those who wait less

  explicit SendWaitStore(std::filesystem::path folder);

  /// Of the current process, whose ids `communicator` and `call` are, and whose GPU began then.
  Status add_operation(uint32_t communicator, uint64_t call, const PartKey& part,
                       uint64_t begin_ns);
  Status add(const NcclProxyWork& work);
  /// What follows is another process's.
  Status end_group();

  uint64_t left_out_count() const { return left_out_count_; }

  /// All of it, in order; after end_group().
  class Reader {
   public:
    explicit Reader(SortedStore<SendWaits>::Reader rows) : rows_(std::move(rows)) {}
    /// The rows of an operation, which comes behind the one before.
    Status take(const PartKey& operation, size_t member_count, std::vector<SendWaits>* to);

   private:
    Status advance();
    SortedStore<SendWaits>::Reader rows_;
    const SendWaits* next_ = nullptr;
    bool is_begun_ = false;
  };
  Result<Reader> read();

  Status save(StateOut* out);
  Status load(const Model& model, StateIn* in);

 private:
  struct Operation {
    PartKey part;
    uint64_t begin_ns;
    uint64_t call;
    uint64_t communicator;
    bool operator<(const Operation& other) const {
      return std::tie(communicator, call, part) <
             std::tie(other.communicator, other.call, other.part);
    }
  };
  static_assert(sizeof(Operation) + 2 * sizeof(SendWaits) == kOperationBytes);
  /// A record of steps.
  struct Work {
    uint64_t gpu_ns;
    uint64_t network_ns;
    uint64_t other_ns;       ///< for the peer, for the flush
    uint64_t first_data_ns;  ///< of a send, when the GPU gave it, if this is from before; or 0
    uint64_t waited_ns;      ///< for how long its steps had waited then
    uint64_t call;
    uint32_t communicator;
    uint32_t channel;
    uint32_t is_receive;
    uint32_t peer;
    uint64_t before_ns(uint64_t begin_ns) const;
    bool is_of(const Operation& one) const {
      return communicator == one.communicator && call == one.call;
    }
    bool is_before(const Operation& one) const {
      return std::tie(communicator, call) < std::tie(one.communicator, one.call);
    }
    bool operator<(const Work& other) const {
      return std::tie(communicator, call, channel, is_receive, peer) <
             std::tie(other.communicator, other.call, other.channel, other.is_receive, other.peer);
    }
  };
  class Sums;

  Status join();

  std::filesystem::path folder_;
  SortedStore<SendWaits> rows_;
  uint64_t left_out_count_ = 0;
  // Of the current process.
  SortedStore<Operation> operations_;
  SortedStore<Work> works_;
  uint64_t work_count_ = 0;
};

}  // namespace aon::writers::nccl
