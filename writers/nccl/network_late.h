/// Operations that were slow although nobody was late, because sends waited for the network: told
/// from the steps of NCCL's proxies (level step).
///
///     excess  = shortest part - usual one of the communicator, function and bytes, where the
///               shortest is kSlowOperationRatio times the usual or more (true_times.h)
///     waited  = what the sends of a member on one channel of one link waited for the network in
///               the operation; the longest of all members' counts, where two thirds of its
///               waiting is for the network: else the GPU or the peer held it up
///     usual   = the median of that in operations of the communicator, function and bytes; where
///               the link stands out among three others or more and these waited less, their median
///     network = min(excess, waited - usual), lost by each member, where waited is
///               kSlowOperationRatio times usual or more: sums of steps side by side differ by more
///               than the operation is longer, for no reason
///
/// The link stands out where it waited kSlowOperationRatio times as long as the (lower) median of
/// the other members' links, or is a transfer's. Else the network was slow for all, and no link is
/// named. Of a collective nothing is told where the steps of one member alone are known. What is
/// left of the excess is the GPUs', or not told.
///
/// Who comes late does not lengthen the shortest part, which is that of the last one to come: so a
/// late host or GPU has no excess, whatever the others' sends wait for meanwhile. By sockets, a
/// send to who comes late waits for the network: where the receiver came later than the sender by
/// half of the excess or more, nothing is told. By sockets a send also waits for the network while
/// the receiver's GPU does not take what came: where that is two thirds of it, it is no link's
/// (send_waits.h).
///
/// Where the network is not to blame, that GPU may be:
///
///     held = what a member's receives and sends waited for its GPU, all that it has on a channel:
///            what came was not taken, and what could go was not given; of sends without what may
///            be behind one that waits for its peer
///     lost = min(excess, held - usual), as above, where it stands out among two members or more
///
/// That is said of communicators alone whose members are on one machine each: of others a GPU may
/// have waited for its neighbours, which no proxy sees. Of transfers it is not said.
/// Thread: one.   Cost: some ns per operation; memory 1 MiB, the rest in a file of kOperationBytes
/// per operation of which steps are known, and a row per link and function, bounded.
/// Errors: kIo, when that has no room.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "writers/lateness/true_times.h"
#include "writers/waits/sorted_store.h"

namespace aon::writers::nccl {

/// A member whose proxy waited for its GPU.
struct HeldMember {
  uint64_t held_ns;    ///< 0: nothing is told of GPUs
  uint64_t others_ns;  ///< median of the others
  uint64_t late_ns;    ///< it came later than the first one
  uint32_t member;
  uint32_t others_count;
};

/// An operation, the link of it that waited longest for the network, and the slowest GPU.
struct SentOperation {
  uint64_t bytes;
  uint64_t time_ns;     ///< the shortest part
  uint64_t longest_ns;  ///< what any link's sends waited for the network, on one channel
  uint64_t network_ns;  ///< what those of that link did; 0: there is none
  uint64_t all_ns;      ///< and for anything
  uint64_t others_ns;   ///< median of the other members' links
  uint64_t late_ns;     ///< its receiver came later than its sender
  HeldMember gpu;
  uint32_t communicator;
  uint32_t region;
  uint32_t source;       ///< members
  uint32_t destination;  ///< the same
  uint32_t peer;         ///< the destination's rank in the communicator
  uint32_t others_count;
  uint32_t member_count;
  uint32_t reserved = 0;
  bool operator<(const SentOperation& other) const {
    return std::tie(communicator, region, bytes) <
           std::tie(other.communicator, other.region, other.bytes);
  }
};

struct NetworkLate {
  uint64_t count = 0;        ///< operations
  uint64_t lost_ns = 0;      ///< by all of their members
  uint32_t destination = 0;  ///< member, of a link
};

struct NetworkSummary {
  /// By communicator, region, member whose sends waited, and whom they go to (rank in the
  /// communicator).
  std::map<std::tuple<uint32_t, uint32_t, uint32_t, uint32_t>, NetworkLate> links;
  NetworkLate all;   ///< those without a link as well
  NetworkLate even;  ///< of these, where no link stands out
  /// Of GPUs instead, by communicator, region and member.
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, NetworkLate> gpus;
  NetworkLate all_gpus;
  /// By communicator, region and bytes: what operations took longer for it, each once.
  std::map<std::tuple<uint32_t, uint32_t, uint64_t>, uint64_t> excess_ns;  ///< by either
  uint64_t told_count = 0;      ///< operations of which steps are known
  uint64_t left_out_count = 0;  ///< operations beyond the rows
};

class NetworkLateness {
 public:
  static constexpr size_t kOperationBytes = sizeof(SentOperation);
  static constexpr size_t kMaxRows = 1u << 19;

  /// The file goes to `folder`.
  explicit NetworkLateness(std::filesystem::path folder);
  Status add(const SentOperation& operation);
  /// When all have come. `times`: what they take, in order of communicator, region and bytes.
  Status judge(std::span<const TrueTimes> times, NetworkSummary* to);

 private:
  static void note(const SentOperation& operation, uint64_t network_ns, NetworkSummary* to);
  static void note_gpu(const SentOperation& operation, uint64_t gpu_ns, NetworkSummary* to);

  SortedStore<SentOperation> store_;
  TrueTimeTable waits_;      ///< the longest of each operation
  TrueTimeTable gpu_waits_;  ///< the same
};

}  // namespace aon::writers::nccl
