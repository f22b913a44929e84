// How many records the staging memory has, for tests of who puts them there.
#pragma once

#include <cstdint>

#include "core/agent/staging.h"
#include "core/agent/state.h"

namespace aon::agent {

/// Records of processes: also calls that were open when they ended.
inline uint64_t staged_count(State& state, Staging& staging) {
  uint64_t count = 0;
  const uint64_t head = state.header().staging_head.load();
  for (uint64_t at = 0; at < head; at += staging.entry(at)->entry_bytes)
    count += staging.entry(at)->counted;
  return count;
}

}  // namespace aon::agent
