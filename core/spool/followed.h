/// Processes that their agent has followed from outside, without a word of their own: what the
/// kernel tells of them is there, and nothing that they did is known.
/// Thread: any.   Cost: a pass over the process's streams.
#pragma once

#include <algorithm>

#include "core/spool/format.h"
#include "core/spool/job.h"

namespace aon::spool {

/// True when `process` has told nothing itself: no record, no definition, no call.
inline bool is_only_followed(const Process& process) {
  if (process.identity || !process.regions.empty() || !process.open_calls.empty()) return false;
  return std::all_of(process.streams.begin(), process.streams.end(), [](const auto& stream) {
    return is_agent_slot(stream.second.slot) ||
           (stream.second.committed == 0 && stream.second.refused == 0);
  });
}

}  // namespace aon::spool
