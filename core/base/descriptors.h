/// Descriptors that come from whoever started a program, and what is done where they run short.
/// Thread: one.
#pragma once

#include <string>
#include <vector>

#include "core/base/unique_fd.h"

namespace aon {

/// Of stdin, stdout and stderr what came closed is /dev/null from here on, and closed again for the
/// programs that exec() starts. First thing in main(): otherwise the next file that is opened takes
/// the number, and what is printed goes there.
void hold_standard_descriptors();

/// Writes what is left of standard output. What is wrong with it, as a full disk behind a
/// redirection: who reads what was printed has to have it. Empty: nothing.
std::string flush_output();

/// Closes every descriptor above stderr but `kept` (negative ones count for nothing).
void close_descriptors_but(std::vector<int> kept);

/// True for one of the last dozen numbers below the limit: they are for what is opened for a moment
/// (files of /proc, libraries, a pipe), not for what stays. Plugins leave twice as many (perf).
bool is_among_the_last(int fd);

/// For a listener: with this one, whoever calls when there is no other descriptor can be accepted
/// and sent away. He would wake us for ever.
class SpareDescriptor {
 public:
  SpareDescriptor();
  /// Accepts the next one that calls at `listener`, and hangs up. False: nobody calls, or another
  /// thread has taken the descriptor; then after 1 ms, for the listener would wake us at once.
  bool send_one_away(int listener);

 private:
  UniqueFd fd_;
};

}  // namespace aon
