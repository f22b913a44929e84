/// Which nodes take part in a launch, and how far they are: marks in DIR/agents, a folder that all
/// nodes see and that is gone when the archive has them all.
///
///     NODE.lease     the agent lives (core/base/lease.h)      no mark --agent starts--> live
///     NODE.done      its spool is complete                    live --its ranks ended--> done
///     NODE.address   where it can be reached (address.h)      live --killed, node lost--> lost
///     NODE.next      another agent of it waits for the lease  done --archive has it--> no mark
///
/// A node counts as lost when its lease is dead, kLeaseDeadSeconds after the last sign of life at
/// the latest. Thread: any.   Cost: a few file operations per node, and one file made in all
/// where leases are other nodes'.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/lease.h"
#include "core/base/result.h"

namespace aon::cluster {

enum class Presence { kLive, kDone, kLost };

struct NodePresence {
  std::string node;
  Presence presence;
  std::string token;  ///< of a mark: another agent of the same node makes another one
  std::string host;   ///< of a live or lost agent, as its lease says
  int32_t pid = 0;
  std::string note{};  ///< of a lost one that brought its spool: why it could not; often empty
};

/// Ends the token of an agent that waits for the archive and, when told to, does a share of it.
constexpr char kTakesShares[] = " shares";
bool takes_shares(const NodePresence& node);
/// Whether both tokens are one agent's, which may have changed its mind about shares.
bool is_same_agent(const std::string& one, const std::string& other);

std::string agent_lease(const std::string& job_folder, const std::string& node);
/// Held by an agent that waits for that one: what it has taken goes to the same spool.
std::string waiting_lease(const std::string& job_folder, const std::string& node);
/// Whether any agent waits so.
bool is_lease_awaited(const std::string& job_folder);
/// All nodes with a mark, sorted.
std::vector<NodePresence> read_presence(const std::string& job_folder);

/// Whether other nodes still record, for who asks again and again: while the one that lived when it
/// was last asked still does, only its marks are looked at. Otherwise the folder is listed, and
/// leases are read until one lives.
class LiveOthers {
 public:
  LiveOthers(std::string job_folder, std::string node)
      : job_folder_(std::move(job_folder)), node_(std::move(node)) {}
  bool are_any();
  /// Most that were listed, itself among them.
  size_t node_count() const { return node_count_; }

 private:
  bool lives(const std::string& node, LeaseClock* clock) const;

  std::string job_folder_;
  std::string node_;
  std::string live_;  ///< empty: none is known
  size_t node_count_ = 0;
};

/// An agent of `node` begins: older marks of its node go.
void clear_done(const std::string& job_folder, const std::string& node);
/// `token`: names this agent among all of its node; one line.
Status mark_done(const std::string& job_folder, const std::string& node, const std::string& token);
/// False only when the mark is known to be gone, or to be another agent's: then the archive has
/// this one's spool, or will have it by the other's doing.
bool is_done(const std::string& job_folder, const std::string& node, const std::string& token);

/// Of this process, whose mark is not there (is_done): what became of a later agent of its node,
/// which sees to its spool as well. kNone: the archive has it.
enum class Successor { kNone, kWorks, kLost };
Successor successor(const std::string& job_folder, const std::string& node);

/// The archive has what `nodes` had when they were read: their marks go, unless a later agent has
/// made a new one, and the folder with the last one. The leases of lost nodes stay, so that the
/// archive says the same when it is made again.
void mark_assembled(const std::string& job_folder, const std::vector<NodePresence>& nodes);

}  // namespace aon::cluster
