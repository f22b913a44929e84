/// What a process of aon-run that stays may hold: stderr and its own descriptors. Everything else
/// that the launcher gave us belongs to the program alone.
/// Thread: one.
#pragma once

#include <cstdint>
#include <vector>

namespace aon::launcher {

/// Closes every descriptor above stderr but `kept` (negative ones count for nothing); standard
/// input and output become /dev/null.
void keep_descriptors(std::vector<int> kept);

/// Of a process that only waits.
void close_all_descriptors();

}  // namespace aon::launcher
