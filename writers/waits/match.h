/// The two ends of messages and the members of collectives -> who waited, and for how long (waits.h
/// has the rules).
/// Thread: one.   Cost: a sort of what it is given.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "writers/waits/waits.h"

namespace aon::writers {

/// One end of a message. It matches by communicator, source, destination and tag, in the order of
/// `posted_ns`.
struct MessageEnd {
  uint32_t communicator;  ///< global id
  uint32_t source;        ///< rank in the communicator
  uint32_t destination;
  int32_t tag;
  uint64_t posted_ns;  ///< the call that started the transfer
  uint64_t enter_ns;   ///< the call that completed it; 0 and 0: none that could wait
  uint64_t leave_ns;
  uint32_t location;  ///< index in Model::locations
  uint32_t region;    ///< of the completing call
  bool is_send;
  bool shares_call;  ///< that call completed other messages too
};

/// One process in a collective. It matches by communicator and number.
struct Member {
  uint32_t communicator;
  uint32_t location;
  uint64_t number;  ///< of the process's collectives on the communicator
  uint64_t enter_ns;
  uint64_t leave_ns;
  uint32_t region;
  CollectiveOperation operation;
  bool is_root;
};

/// One call's waiting.
struct Wait {
  uint32_t location;
  uint32_t region;
  WaitKind kind;
  bool shares_call;
  uint64_t enter_ns;
  uint64_t leave_ns;
  uint64_t wait_ns;
  uint64_t clock_error_ns;  ///< of the two locations' clocks together
};

/// What is known of the job beside the events.
class WaitContext {
 public:
  virtual ~WaitContext() = default;
  /// From when on nothing of the location can be matched; UINT64_MAX: never.
  virtual uint64_t cut_ns(uint32_t location) const = 0;
  /// Bound of the error between the clocks of two locations.
  virtual uint64_t clock_error_ns(uint32_t a, uint32_t b) const = 0;
  /// Members of a communicator; 0 where its collectives cannot be matched.
  virtual size_t member_count(uint32_t communicator) const = 0;
};

using WaitSink = std::function<Status(const Wait&)>;

/// Matches all messages of `ends`, which it sorts; what matches nothing is counted in `summary`.
Status match_messages(std::span<MessageEnd> ends, const WaitContext& context, WaitSummary* summary,
                      const WaitSink& sink);

/// Matches all collectives of `members`, which it sorts.
Status match_collectives(std::span<Member> members, const WaitContext& context,
                         WaitSummary* summary, const WaitSink& sink);

}  // namespace aon::writers
