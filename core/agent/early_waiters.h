/// Those aon-runs that wait for the files only as long as no rank fails (Wait::ends_early). Under
/// hydra one that goes on waiting changes the exit code of the job: hydra waits for its stderr,
/// collects the status of the ranks that it killed meanwhile, and mixes it into the failed one's.
/// A worker that takes the place of a killed one knows of none: they wait for the files then; so
/// they do where the kernel does not tell how a program ended that its parent has reaped (Linux
/// before 6.13).
/// Thread: the serving one.   Cost: nothing until a rank fails.
#pragma once

#include <cstdint>
#include <map>

#include "core/agent/handover.h"
#include "core/agent/proc.h"
#include "core/agent/protocol.h"
#include "core/base/lease.h"

namespace aon::agent {

class EarlyWaiters {
 public:
  /// `fd` stays the caller's, and open until remove().
  void add(uint32_t connection, int fd, KeeperLink* keeper) {
    fds_[connection] = fd;
    if (has_failed_) release(keeper);
  }
  void remove(uint32_t connection) { fds_.erase(connection); }

  /// A registered program has ended. Where it failed, all of them are told that the files come
  /// later, and the keeper has nothing more to tell them.
  void program_ended(int pidfd, int32_t pid, KeeperLink* keeper) {
    const auto status = proc::exit_status(pidfd, pid, process_start_time_ticks(pid));
    if (!status || (status->signal == 0 && status->exit_code <= 0)) return;
    has_failed_ = true;
    release(keeper);
  }

 private:
  void release(KeeperLink* keeper) {
    Done done{};
    done.header = {kProtocolMagic, kProtocolVersion, MessageType::kDone, sizeof(Done)};
    done.complete = kDoneLater;
    for (const auto& [connection, fd] : fds_) {
      send_struct(fd, done);
      keeper->drop(KeepKind::kWaiter, connection);
    }
    fds_.clear();
  }

  std::map<uint32_t, int> fds_;
  bool has_failed_ = false;
};

}  // namespace aon::agent
