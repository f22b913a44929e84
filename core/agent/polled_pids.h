/// Registered programs whose end no pidfd tells (Linux before 5.3, filters of containers): /proc is
/// asked ten times a second whether they are still there.
/// Thread: the drain thread.   Cost: 10 us for each, ten times a second.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/agent/state.h"
#include "core/base/unique_fd.h"

namespace aon::agent {

class PolledPids {
 public:
  /// False: there is no such process.
  bool add(uint32_t number, int32_t pid);
  /// Those of an earlier worker; not the `watched` ones.
  void adopt(const StateHeader& header, const std::map<uint32_t, UniqueFd>& watched);
  bool empty() const noexcept { return pids_.empty(); }
  /// The numbers of those that have ended, which are asked for no more.
  std::vector<uint32_t> take_ended(uint64_t now_ns);

 private:
  struct Pid {
    int32_t pid;
    uint64_t start_time_ticks;
  };
  std::map<uint32_t, Pid> pids_;
  uint64_t last_look_ns_ = 0;
};

}  // namespace aon::agent
