/// Groups of which nothing is known but what the kernel told: no process, or one that the agent
/// followed from outside. What they did not record they may have done all the same.
/// Thread: any.   Cost: a pass over the process's streams.
#pragma once

#include "core/spool/followed.h"
#include "writers/writer.h"

namespace aon::writers::profile {

inline bool is_silent(const Group& group) {
  return group.process == nullptr || spool::is_only_followed(*group.process);
}

}  // namespace aon::writers::profile
