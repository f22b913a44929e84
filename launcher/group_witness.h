/// Tells a signal that was sent to the whole process group (or to every process of a job step) from
/// one that was sent to aon-run alone: only the latter has to be passed on, or the program would
/// see the former twice. The kernel says nothing about it, so a child that blocks everything and
/// sleeps stands in the same group: what is pending for it went to the group.
///
///     mpirun --kill(-group, USR1)--> aon-run, program, witness    pending there: not passed on
///     user ---kill(pid, USR1)------> aon-run                      passed on
///
/// Thread: one; every signal is blocked in the caller.   Cost: one sleeping process per node; a
/// signal takes about 1 ms to judge.   Errors: without a witness none is seen to be the group's.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace aon::launcher {

class GroupWitness {
 public:
  /// Starts the witness.
  void start();
  /// Ends it.
  void stop();
  /// True when signal `number` is pending for the witness; a new one takes its place then.
  bool saw(int number);
  /// False without a witness and for a while after each new one: what was sent to the group before
  /// that, and is judged only now, is not pending for it.
  bool is_certain() const;
  pid_t pid() const noexcept { return pid_; }

 private:
  pid_t pid_ = -1;
  int64_t replaced_ms_ = 0;  ///< 0: it is the first
};

}  // namespace aon::launcher
