/// Stacks of threads that seem to hang: asked for by the drain thread, taken once a second by the
/// housekeeping thread (thread_look.h), and told to the spool as kStack.
///
/// Thread: ask() the drain thread's, work() the housekeeping thread's; one lock.
/// Cost: nothing but a load where nobody hangs; some 0.2 ms a stack, and 10 ms for each program or
/// library that was not seen before. At most kStacksPerSecond; the others wait.
#pragma once

#include <aon/mutex.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/agent/inbox.h"
#include "core/agent/stack_walker.h"
#include "core/agent/thread_look.h"
#include "core/clock/snapshot.h"

namespace aon::agent {

constexpr size_t kStacksPerSecond = 64;
constexpr size_t kMaxStackRequests = 4096;  ///< beyond these they are not asked for
constexpr size_t kMaxStackFrames = 62;

struct StackRequest {
  uint32_t process;
  pid_t pid;
  pid_t tid;
  uint64_t quiet_ticks;  ///< as of StackDefinition
  bool is_in_call;       ///< that does not return: it may be stopped for a look
};

class StuckThreads {
 public:
  explicit StuckThreads(Inbox* inbox) : inbox_(inbox) {}

  void ask(const StackRequest& request);
  void work(clock::TickSource ticks, uint64_t now_ns);

 private:
  std::vector<StackRequest> take_requests();
  std::string frames_of(const StackRequest& request, ThreadLook* look, uint64_t now_ns);

  Inbox* inbox_;
  StackWalker walker_;  ///< of the housekeeping thread

  Mutex m_;
  std::vector<StackRequest> requests_ AON_GUARDED_BY(m_);
};

}  // namespace aon::agent
