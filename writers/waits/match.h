/// The two ends of messages and the members of collectives -> who waited, and for how long (waits.h
/// has the rules).
/// Thread: one.   Cost: one pass over what is given; memory for the members of one collective.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <tuple>

#include "writers/waits/sorted_store.h"
#include "writers/waits/waits.h"

namespace aon::writers {

/// One end of a message, sends and receives apart. The i-th send of an envelope matches its i-th
/// receive, in the order of `posted_ns`, as long as one thread posted all of either side.
/// In MessageEnd::pair: a partitioned message, which meets no other.
constexpr uint64_t kInParts = uint64_t{1} << 63;

struct MessageEnd {
  uint64_t space;      ///< pack: communicator (global id), tag
  uint64_t pair;       ///< pack: source, destination, ranks in the communicator; kInParts
  uint64_t posted_ns;  ///< the call that started the transfer
  uint64_t enter_ns;   ///< the call that completed it; 0 and 0: none that could wait; of a poll
                       ///< the end of the last other call
  uint64_t leave_ns;
  uint32_t location;  ///< index in Model::locations: where it was completed
  uint32_t region;    ///< of the completing call
  uint32_t poster;    ///< location of the call that started the transfer
  uint32_t channel;   ///< of kInParts (partitioned_channel); 0: of another message, or not told

  auto envelope() const { return std::tie(space, pair, channel); }
  bool operator<(const MessageEnd& other) const {
    return std::tie(space, pair, channel, posted_ns) <
           std::tie(other.space, other.pair, other.channel, other.posted_ns);
  }
};
constexpr size_t kStoreBytes = 24u << 20;  ///< in memory, of each of four stores
constexpr uint64_t pack(uint32_t high, uint32_t low) { return uint64_t{high} << 32 | low; }

/// On what its members meet in a collective. Each has numbers of its own.
enum class Meeting : uint8_t {
  kCollective,    ///< on a communicator, with data or to synchronize
  kNeighborhood,  ///< the same, among neighbours
  kCommunicator,  ///< making another communicator of it, or freeing it
  kWindow,
  kFile,
};
constexpr size_t kMeetingCount = 5;

/// One process in a collective. It matches by communicator, meeting, preparation and number.
struct Member {
  uint32_t communicator;
  uint32_t location;
  uint64_t number;    ///< of the process's collectives on the communicator; of the starts of a
                      ///< persistent one; from kCommunicator on: pack: region, number of its calls
  uint64_t start_ns;  ///< the call that takes part in it
  uint64_t
      enter_ns;  ///< the call that completed it; the same of a blocking one; of a poll as above
  uint64_t leave_ns;
  uint32_t region;
  uint32_t rank;         ///< in the communicator
  uint32_t preparation;  ///< of a persistent one: number among those of the communicator; of
                         ///< kWindow and kFile: global id of the window or file; else 0
  CollectiveOperation operation;
  Meeting meeting;
  bool is_root : 1;
  bool has_data : 1;     ///< it sent and received something
  bool receives : 1;     ///< something
  bool is_from_all : 1;  ///< kFromAll
  bool is_of_some : 1;   ///< with whom it meets is not known
  bool is_alone : 1;     ///< the call has completed nothing else
  uint8_t reserved;      ///< 0
  uint64_t bytes : 44;   ///< that it sent or received, the larger: as many parts as there are
                         ///< members; at most kMostMemberBytes
  uint64_t completed_count : 20;  ///< of collectives that the call has completed

  bool is_blocking() const { return start_ns == enter_ns; }
  /// Of windows and files.
  bool has_object() const { return meeting >= Meeting::kWindow; }
  uint32_t object() const { return has_object() ? preparation : communicator; }
  /// From kCommunicator on: the region of the call that takes part in it.
  uint32_t function() const { return static_cast<uint32_t>(number >> 32); }
  auto instance() const { return std::tie(communicator, meeting, preparation, number); }
  bool operator<(const Member& other) const {
    return std::tie(communicator, meeting, preparation, number, location) <
           std::tie(other.communicator, other.meeting, other.preparation, other.number,
                    other.location);
  }
};
static_assert(sizeof(Member) == 64);
constexpr uint64_t kMostMemberBytes = (uint64_t{1} << 44) - 1;
constexpr uint64_t kMostCompleted = (uint64_t{1} << 20) - 1;

/// `enter_ns` of a member that was not seen to complete it.
constexpr uint64_t kUnseenNs = UINT64_MAX;

/// How long a call waited for `until_ns`, which came later than its beginning.
constexpr uint64_t wait_in(uint64_t enter_ns, uint64_t leave_ns, uint64_t until_ns) {
  const uint64_t end_ns = std::min(until_ns, leave_ns);
  return end_ns > enter_ns ? end_ns - enter_ns : 0;
}

/// A call's waiting for one partner. Of those of one call the last in order is the longest.
struct Wait {
  uint32_t location;
  uint32_t region;
  uint64_t enter_ns;
  uint64_t leave_ns;
  uint64_t wait_ns;
  uint64_t clock_error_ns;  ///< of the two locations' clocks together
  WaitKind kind;
  bool is_polled;  ///< at most that long, in polls and between them; enter_ns is their beginning

  auto call() const { return std::tie(location, enter_ns, is_polled); }
  bool operator<(const Wait& other) const {
    return std::tie(location, enter_ns, is_polled, wait_ns, other.kind) <
           std::tie(other.location, other.enter_ns, other.is_polled, other.wait_ns, kind);
  }
};

/// What is known of the job beside the events.
class WaitContext {
 public:
  virtual ~WaitContext() = default;
  /// From when on nothing of the location can be matched; UINT64_MAX: never.
  virtual uint64_t cut_ns(uint32_t location) const = 0;
  /// The same of its messages.
  virtual uint64_t message_cut_ns(uint32_t location) const = 0;
  /// The same of members that make and free communicators, or do something with windows and files.
  virtual uint64_t object_cut_ns(const Member& member) const = 0;
  /// Bound of the error between the clocks of two locations.
  virtual uint64_t clock_error_ns(uint32_t a, uint32_t b) const = 0;
  virtual uint32_t node(uint32_t location) const = 0;
  virtual uint32_t group(uint32_t location) const = 0;  ///< index in Model::groups
  /// How many members the collective of `member` has; 0 where such ones cannot be matched.
  virtual size_t member_count(const Member& member) const = 0;
  virtual bool is_of_worlds(uint32_t communicator) const = 0;
  /// Of an inter-communicator: the ranks of its first group; 0: it is none.
  virtual uint32_t first_group_count(uint32_t communicator) const = 0;
  /// Whose data the member of that rank gets in neighbourhood collectives; null: not known.
  virtual const std::vector<uint32_t>* sources(uint32_t communicator, uint32_t rank) const = 0;
  /// The region that starts collectives as that of `member`, or prepares persistent ones; that of
  /// the call that has completed it where no such region is known.
  virtual uint32_t starting_region(const Member& member) const = 0;
  /// Whether programs poll by calls of the region.
  virtual bool is_test(uint32_t region) const = 0;
  /// Called often while the matching goes on.
  virtual void beat() const = 0;
};

using WaitSink = std::function<Status(const Wait&)>;

/// Matches all messages; what matches nothing is counted in `summary`.
Status match_messages(SortedStore<MessageEnd>* sends, SortedStore<MessageEnd>* receives,
                      const WaitContext& context, WaitSummary* summary, const WaitSink& sink);

/// Matches all collectives. What they took goes to `times`, not to `summary`.
Status match_collectives(SortedStore<Member>* members, const WaitContext& context,
                         WaitSummary* summary, TrueTimeTable* times, const WaitSink& sink);

}  // namespace aon::writers
