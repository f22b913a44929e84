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
  /// True when signal `number` is pending for the witness, or was for an earlier one that did not
  /// tell of it yet; a new one takes its place then. One that comes twice while it is judged is
  /// seen once.
  bool saw(int number);
  pid_t pid() const noexcept { return pid_; }

 private:
  pid_t pid_ = -1;
  uint64_t earlier_ = 0;  ///< signals of earlier witnesses that were not told of, a bit each
};

}  // namespace aon::launcher
