/// Descriptors that come from whoever started a program.   Thread: one.
#pragma once

#include <vector>

namespace aon {

/// Of stdin, stdout and stderr what came closed is /dev/null from here on, and closed again for the
/// programs that exec() starts. First thing in main(): otherwise the next file that is opened takes
/// the number, and what is printed goes there.
void hold_standard_descriptors();

/// Closes every descriptor above stderr but `kept` (negative ones count for nothing).
void close_descriptors_but(std::vector<int> kept);

}  // namespace aon
