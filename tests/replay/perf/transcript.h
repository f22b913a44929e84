/// A transcript of what the perf provider asked the kernel, and what it was told, as text:
///
///     paranoid = 2                         calls and results, in any order between two drives
///     open 1 3 kt 4242 = 7                 type, config, k: kernel side left out, t: threads only,
///                                          thread -> descriptor or -errno
///     tasks 4242 = 4242 4243
///     task 4242 4243 = 17 2                context switches, migrations (- unknown); `none`: ended
///     read 7 = 1000 5000 5000              value, enabled_ns, running_ns; or -errno
///     > start 1 4242                       what the agent did: process number, pid
///     > tick 100
///     > end 1
///     # a comment
///
/// Recorder writes one on a real machine (record.cpp), Replay is the kernel of one.
/// Thread: one.
#pragma once

#include <deque>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "plugins/perf/kernel.h"

namespace aon::perf::test {

/// A kernel that passes every call on to the real one and writes it to `out`.
const Kernel& recording_kernel(std::ostream& out);

/// Results of a transcript, by call, in order.
struct Replay {
  explicit Replay(const std::string& transcript);
  /// The next result of `call`; "" and a note in `missing` when there is none.
  std::string next(const std::string& call);

  std::vector<std::string> drives;  ///< without "> "
  std::map<std::string, std::deque<std::string>> results;
  std::vector<std::string> missing;
  std::vector<int> open_descriptors;
};

/// The kernel of `replay`, which must outlive it.
const Kernel& replay_kernel(Replay& replay);

}  // namespace aon::perf::test
