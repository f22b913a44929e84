/// The folders below DIR/spool that a receiver has made for couriers, and how much lies in those
/// whose couriers have gone.
///
///     an agent that comes                                  gets
///     again: its connection broke                          the folder it had, emptied
///     after an earlier one of its node whose files, which  that one's, emptied: all of it comes
///     are still in the spool that it brings, came here     again
///     otherwise                                            a new one: NODE, NODE~2, ...
///
/// What others brought, or recorded here, is left alone.
/// Thread: one.   Errors: kIo; kUnavailable for one agent too many.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "core/base/result.h"
#include "core/base/unique_fd.h"

namespace aon::delivery {

/// Who brings, and what.
struct Bringer {
  std::string agent;  ///< node, pid and start time
  std::string node;
  uint32_t spool = 0;  ///< frames.h
  uint32_t rank_count = 0;
};

class Places {
 public:
  /// `spool`: DIR/spool.
  explicit Places(std::string spool) : spool_(std::move(spool)) {}

  /// The agent whose folder this one gets; empty: a new one.
  std::string holder(const Bringer& bringer) const;
  Result<UniqueFd> open(const Bringer& bringer);

  /// It is told that an archive has what it brought, and removes its own.
  void tell(const std::string& agent) { by_agent_[agent].is_told = true; }
  /// Its courier has gone and has left so much.
  void leave(const std::string& agent, uint64_t bytes) { by_agent_[agent].left_bytes = bytes; }
  /// Of all that have gone.
  uint64_t left_bytes() const;
  /// Of all that ever came, but of those whose folder went over to another agent.
  uint32_t rank_count() const;

 private:
  struct Place {
    std::string name;  ///< below DIR/spool
    std::string node;
    uint32_t spool = 0;
    uint32_t rank_count = 0;
    uint64_t left_bytes = 0;
    bool is_told = false;
  };

  Result<UniqueFd> open_again(const std::string& holder, const Bringer& bringer);
  Result<UniqueFd> open_new(const Bringer& bringer);

  std::string spool_;
  std::map<std::string, Place> by_agent_;
};

}  // namespace aon::delivery
