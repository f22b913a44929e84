#include "core/agent/span.h"

#include <algorithm>
#include <set>

namespace aon::agent {
namespace {

uint32_t ranks_that_came(const State& state, uint32_t world_size) {
  std::set<int32_t> ranks;
  const uint32_t count = state.header().process_count.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < count; ++i) {
    const ProcessCell& cell = state.process(i);
    if (cell.rank >= 0 && cell.world_size == world_size) ranks.insert(cell.rank);
  }
  return static_cast<uint32_t>(ranks.size());
}

}  // namespace

void note_world(State* state, uint32_t world_size) noexcept {
  std::atomic<uint32_t>& told = state->header().world_size;
  if (world_size > told.load(std::memory_order_relaxed))
    told.store(world_size, std::memory_order_relaxed);
}

void decide_span(State* state, bool is_late) {
  StateHeader& header = state->header();
  const uint32_t world_size = header.world_size.load(std::memory_order_relaxed);
  const uint32_t expected = header.expected_ranks.load(std::memory_order_relaxed);
  if (world_size <= std::max(expected, 1u) || (expected == 0 && !is_late)) return;
  if (expected == 0 && world_size <= ranks_that_came(*state, world_size)) return;
  header.spans_nodes.store(1, std::memory_order_relaxed);
}

}  // namespace aon::agent
