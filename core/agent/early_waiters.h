/// Those aon-runs that wait for the files only as long as no rank fails (Wait::ends_early). Under
/// hydra one that goes on waiting changes the exit code of the job: hydra waits for its stderr,
/// collects the status of the ranks that it killed meanwhile, and mixes it into the one that failed.
/// Thread: the serving one.   Cost: nothing until a rank fails.
#pragma once

#include <cstdint>
#include <map>

#include "core/agent/handover.h"
#include "core/agent/protocol.h"

namespace aon::agent {

class EarlyWaiters {
 public:
  /// `fd` stays the caller's, and open until remove().
  void add(uint32_t connection, int fd) { fds_[connection] = fd; }
  void remove(uint32_t connection) { fds_.erase(connection); }

  /// Tells all of them that the files come later; the keeper has nothing more to tell them.
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

 private:
  std::map<uint32_t, int> fds_;
};

}  // namespace aon::agent
