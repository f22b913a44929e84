/// Gives the processes of this node the level of NCCL that the user asks for while the job runs
/// (core/cluster/nccl_wish.h), within what each one's NCCL can be given (aon/nccl_level.h), and
/// puts into the spool what became of it. What was heeded stands in the process's own memory: a new
/// worker does not ask again for what the budget has lowered since.
/// The directory is looked at by a thread of its own, for which nobody waits: its file system may
/// hang, and that of the spool (--spool-dir) not.
/// Thread: the housekeeping thread.   Cost: a second: two loads per process; where any process uses
/// NCCL, a stat() every kLookPeriod.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/agent/drainer.h"
#include "core/agent/inbox.h"
#include "core/clock/snapshot.h"
#include "core/cluster/nccl_wish.h"

namespace aon::agent {

class NcclLevels {
 public:
  /// `forget(process, site)`: somebody else has changed that mode word.
  NcclLevels(std::string job_folder, ModeTable* modes, Inbox* inbox,
             std::function<void(uint32_t, uint32_t)> forget);
  ~NcclLevels();
  NcclLevels(const NcclLevels&) = delete;
  NcclLevels& operator=(const NcclLevels&) = delete;

  /// Once a second.
  void second(clock::TickSource ticks);

 private:
  struct Watch;
  /// Of a process that uses NCCL.
  struct Standing {
    uint32_t process;
    NcclLimits limits;
    uint32_t stamp;  ///< of what it has heeded
    NcclLevel level;
  };

  std::vector<Standing> read_standings() const;
  void read_wish();
  NcclAnswer give(const Standing& standing);
  void tell(const Standing& standing, const NcclAnswer& answer, clock::TickSource ticks);

  std::string job_folder_;
  std::shared_ptr<Watch> watch_;  ///< with its thread; null before any process uses NCCL
  ModeTable* modes_;
  Inbox* inbox_;
  std::function<void(uint32_t, uint32_t)> forget_;
  std::optional<cluster::NcclWish> wish_;
  std::set<uint32_t> told_;  ///< processes that stand in the spool
};

}  // namespace aon::agent
