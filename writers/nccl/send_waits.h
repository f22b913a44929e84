/// What the sends of each member waited for in each operation. The proxy's records name the call
/// that they work for; here that becomes what all members' parts are brought together by:
///
///     of a process:  operations  (communicator, call) -> communicator, key, sequence, place
///                    sends       (communicator, call, peer, channel) -> what they waited
///                    when its events have passed both are joined
///     of all:        a row per operation and member that sends: of its links' channels the one
///                    that waited longest for the network, summed up over steps. Channels side by
///                    side would hide that one of them stalls, and ranks have more or fewer
///
/// Only level step tells it. Sends whose operation is not known, or has no times on the GPU, are
/// left out and counted.
/// Thread: one.   Cost: some ns per record; memory 4 MiB, the rest in files in the output's folder:
/// kOperationBytes per operation, and 32 per record of sends of the current process.
/// Errors: kIo, when these have no room.
#pragma once

#include <cstdint>
#include <filesystem>
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

/// Steps run side by side: waits are the sums of theirs, and may be more than the time they took.
struct SendWaits {
  PartKey part;
  uint64_t network_ns;
  uint64_t all_ns;  ///< for the GPU, for the peer and for the network
  uint32_t peer;    ///< rank in the communicator
  uint32_t reserved;
  bool operator<(const SendWaits& other) const { return part < other.part; }
};

/// Whether any process may tell steps of its proxies.
bool may_have_steps(const Group& group);
bool may_have_steps(const Model& model);

class SendWaitStore {
 public:
  static constexpr size_t kOperationBytes = 32 + sizeof(SendWaits);  ///< of temporary files

  explicit SendWaitStore(std::filesystem::path folder);

  /// Of the current process, whose ids `communicator` and `call` are.
  Status add_operation(uint32_t communicator, uint32_t call, const PartKey& part);
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
    uint32_t communicator;
    uint32_t call;
    bool operator<(const Operation& other) const {
      return std::tie(communicator, call, part) <
             std::tie(other.communicator, other.call, other.part);
    }
  };
  static_assert(sizeof(Operation) + sizeof(SendWaits) == kOperationBytes);
  struct Send {
    uint64_t network_ns;
    uint64_t all_ns;
    uint32_t communicator;
    uint32_t call;
    uint32_t peer;
    uint32_t channel;
    bool is_of(const Operation& one) const {
      return communicator == one.communicator && call == one.call;
    }
    bool is_before(const Operation& one) const {
      return std::tie(communicator, call) < std::tie(one.communicator, one.call);
    }
    bool operator<(const Send& other) const {
      return std::tie(communicator, call, peer, channel) <
             std::tie(other.communicator, other.call, other.peer, other.channel);
    }
  };

  Status join();

  std::filesystem::path folder_;
  SortedStore<SendWaits> rows_;
  uint64_t left_out_count_ = 0;
  // Of the current process.
  SortedStore<Operation> operations_;
  SortedStore<Send> sends_;
  uint64_t send_count_ = 0;
};

}  // namespace aon::writers::nccl
