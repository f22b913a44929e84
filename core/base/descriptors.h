/// Closing what a child inherited and must not keep open.   Thread: one.
#pragma once

#include <vector>

namespace aon {

/// Closes every descriptor above stderr but `kept` (negative ones count for nothing).
void close_descriptors_but(std::vector<int> kept);

}  // namespace aon
