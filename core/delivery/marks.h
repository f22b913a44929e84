/// What a receiver keeps in DIR/agents (presence.h) for one courier, whose agent cannot reach it:
/// the lease of its node while it brings, and the mark NODE.done when all of it is here.
///
///     --take_lease()--> live --mark_done()--> done --an archive that has it--> no mark
///                        |--no beat() for 20 s--> lost; the lease says why, if note() did
///
/// Of two agents of a node the one that brings has NODE.lease. Where another one's spool waits here
/// for its archive, that one's mark gets another name (give_way()): NODE.done says that NODE does
/// not record any more.
/// Owner: the receiver's guest.   Thread: one.   Cost: a few file operations.   Errors: as
/// open_file(), for which the file is as it was.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/lease.h"
#include "core/base/result.h"
#include "core/cluster/presence.h"

namespace aon::delivery {

/// True for a mark in DIR/agents, as it was just read, that a receiver keeps.
bool is_mark_of_guest(const std::string& job_folder, const cluster::NodePresence& node);

class Marks {
 public:
  /// `owner`: its node, pid and start time. `number`: another one each time one comes.
  Marks(std::string job_folder, LeaseOwner owner, uint64_t number);

  /// Who holds the lease of the node.
  std::optional<LeaseOwner> held() const;
  /// Names an agent: node, pid and start time.
  static std::string agent_name(const LeaseOwner& owner);
  /// Whether it is a lease that a receiver keeps for `agent`.
  static bool is_kept_for(const LeaseOwner& held, const std::string& node,
                          const std::string& agent);

  Status take_lease();
  void beat() const;
  /// Why its lease will run out.
  void note(const std::string& reason);
  /// Gives the lease back, too.
  Status mark_done();
  /// Where that could not be read: call it again.
  void release_lease();
  bool is_done() const;
  /// Another agent of its node is to have the names.   Errors: it has them not.
  Status give_way();
  /// What it brought is brought anew.
  void withdraw() const;
  /// What names this mark among all.
  const std::string& text() const { return text_; }

 private:
  std::string lease() const;
  bool is_own(const LeaseOwner& held) const;

  std::string job_folder_;
  LeaseOwner owner_;
  std::string text_;
  std::string mark_name_;  ///< before .done
  bool has_lease_ = false;
  bool has_mark_ = false;
};

}  // namespace aon::delivery
