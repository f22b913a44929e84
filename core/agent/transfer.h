/// The keeper's helper where the nodes of a launch share no job directory (core/delivery): a
/// process of its own that takes the spools of the others, on rank 0's node, or brings this one's.
///
///     none --launch spans nodes, nobody else is seen in DIR/agents--> receiver | courier
///     courier --rank 0 turns out to be here--> receiver
///     courier --deliver()--> the archive of rank 0's node has the spool, or not; as long as one is
///                            made, it is waited for
///
/// It alone touches the network, large files and the meeting folder, which may be in a home
/// directory that hangs; the keeper looks at what the two share, and leaves it when it does not
/// end. It dies with the keeper.
/// Thread: the keeper's.   Cost: a process of about 1 MiB, asleep but for a look at the spool every
/// second; nothing where DIR is shared.   Errors: told in the log; the spool stays here, and this
/// node makes an archive of its own.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>

#include "core/agent/config.h"
#include "core/agent/state.h"
#include "core/base/unique_fd.h"

namespace aon::agent {

class Transfer {
 public:
  Transfer(const Config& config, const State& state);
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  /// Starts the process when it is needed; called now and then.
  void advance();
  /// False: advance() is to be called soon again: in the first seconds of the launch, in which its
  /// ranks come, and in the first ones after it was seen to span nodes.
  bool is_settled() const;

  /// On rank 0's node, when its ranks have ended: waits, not for long, until those of the others
  /// are known. `beat` is called every two seconds.
  void await_guests(const std::function<void()>& beat);
  /// Nodes whose spools are not in an archive; and of these, the ones that still bring theirs.
  bool has_guests();
  bool has_open_guests();

  /// On the other nodes, when the spool is complete. True: the archive of rank 0's node has it, and
  /// it is gone from here.
  bool deliver(const std::function<void()>& beat);

  /// CPU time of the process, and of those before it.
  uint64_t cpu_time_ns() const noexcept;

  /// Receiver: its guests are told first.
  void stop();

 private:
  /// What keeper and process both see.
  struct Shared {
    std::atomic<uint32_t> guest_count;
    std::atomic<uint32_t> open_count;
    std::atomic<uint32_t> guest_ranks;   ///< of all that ever came
    std::atomic<int64_t> turn_ms;        ///< of the receiver, the last one
    std::atomic<int64_t> assembling_ms;  ///< when the courier last heard of an assembly; 0: never
  };
  enum class Role { kNone, kReceiver, kCourier };

  bool is_wanted();
  bool sees_others() const;
  uint32_t world_size() const;
  Role role_here() const;
  bool start(Role role);
  [[noreturn]] void run(Role role, int end_fd);
  bool is_running() const;
  bool is_hung();
  int64_t until(int64_t start_ms, int64_t timeout_ms) const;
  bool wait_for_end(int64_t timeout_ms, const std::function<void()>& beat);

  const Config& config_;
  const State& state_;
  Role role_ = Role::kNone;
  bool is_shared_ = false;  ///< DIR is seen by the other nodes
  int64_t started_ms_;
  int64_t first_ms_ = 0;  ///< when the launch was first seen to span nodes
  Shared* shared_ = nullptr;
  pid_t process_ = -1;
  uint64_t ended_cpu_ns_ = 0;
  bool is_hang_told_ = false;
  UniqueFd end_;  ///< closed: the process is to come to its end
};

}  // namespace aon::agent
