/// Regions that began in a hole of the records and go on behind it. Their kEnter can only stand
/// where the hole ends, for nothing is in between; when they began is known, and told by its
/// `request`, which is 0 of all others.
/// Thread: any.   Cost: none.
#pragma once

#include <cstdint>

#include "writers/writer.h"

namespace aon::writers::profile {

inline void set_begin_in_hole(Event* enter, uint64_t begin_ns) { enter->request = begin_ns; }
inline bool began_in_hole(const Event& enter) { return enter.request != 0; }
/// When the region of a kEnter began, which may be earlier than its time.
inline uint64_t begin_ns(const Event& enter) {
  return began_in_hole(enter) ? enter.request : enter.time_ns;
}

}  // namespace aon::writers::profile
