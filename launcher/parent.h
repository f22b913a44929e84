/// The one aon-run of a node that stays: it starts the program as its child and passes everything
/// through, so that whoever started aon-run cannot tell the difference.
///
/// | event                         | what happens                                              |
/// |-------------------------------|-----------------------------------------------------------|
/// | signal sent to aon-run        | sent on to the program, with its value                    |
/// | ... or to the whole group     | the program has had it already                            |
/// | ... by the kernel, alone      | sent on: the terminal of its session is gone              |
/// | ... by the program            | sent on to whoever started aon-run: it was meant for him; |
/// |                               | not within 2 s after it sent the same one to its group    |
/// | program stopped               | aon-run stops itself; SIGCONT goes on to the program      |
/// | ... continued, or killed then | aon-run goes on, within a tenth of a second               |
/// | program exits, dies by signal | aon-run exits alike, without a core file of its own       |
/// | aon-run dies                  | the program is killed (PR_SET_PDEATHSIG)                  |
///
/// It holds stderr and two descriptors of its own. Not where the launcher watches a socket of the
/// rank (waiter.h).
/// Thread: one.   Cost: two forks; then it sleeps.
#pragma once

#include <sys/signalfd.h>
#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "launcher/group_witness.h"

namespace aon::launcher {

/// How the program ended, as waitpid() told it.
struct ProgramEnd {
  int wait_status = 0;
  bool is_success() const noexcept { return wait_status == 0; }
};

class Parent {
 public:
  /// Starts `words` as a child, with the signal mask and the timers that aon-run was started with,
  /// and SIGCHLD ignored where it was. The child calls `prepare` first, with all signals blocked.
  /// Errors: kUnavailable when fork fails; nothing has happened then.
  static Result<Parent> start(
      const std::vector<std::string>& words, const std::function<void()>& prepare = [] {});

  pid_t child() const noexcept { return child_; }

  /// Closes every descriptor but stderr, `kept` and its own.
  void close_descriptors(int kept);

  /// Passes signals on until the program ends. `tell` hears of that before the program is reaped:
  /// others can still look at it.
  ProgramEnd wait_for_program(const std::function<void(const ProgramEnd&)>& tell = {});

  /// Waits until `fd` is readable or hung up. False: `timeout_ms` passed or a signal asked us to
  /// end.
  bool wait_for_input(int fd, int timeout_ms);

 private:
  Parent() = default;

  void forward(const signalfd_siginfo& info);
  bool may_be_for_group(int number) const;
  void forward_last_words();
  void stop_with_program();

  GroupWitness witness_;
  int signal_fd_ = -1;
  pid_t child_ = -1;
  pid_t waker_ = -1;          ///< the last one
  int group_number_ = 0;      ///< signal that the program has sent to its group last
  int64_t group_ms_ = 0;      ///< ... and when
  bool asks_to_end_ = false;  ///< somebody has, while the program ended
};

/// Ends this process as the program did.
[[noreturn]] void end_like(const ProgramEnd& end);

}  // namespace aon::launcher
