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
    const int32_t rank = cell.rank.load(std::memory_order_relaxed);
    const bool is_of_it = cell.world_size.load(std::memory_order_relaxed) == world_size;
    if (rank >= 0 && is_of_it) ranks.insert(rank);
  }
  return static_cast<uint32_t>(ranks.size());
}

}  // namespace

void note_world(State* state, uint32_t world_size, uint64_t now_ns) noexcept {
  StateHeader& header = state->header();
  if (world_size <= header.world_size.load(std::memory_order_relaxed)) return;
  header.world_told_ns.store(now_ns, std::memory_order_relaxed);
  header.world_size.store(world_size, std::memory_order_relaxed);
}

void decide_span(State* state, uint64_t now_ns) {
  StateHeader& header = state->header();
  if (header.spans_nodes.load(std::memory_order_relaxed) != 0) return;
  const uint32_t world_size = header.world_size.load(std::memory_order_relaxed);
  const uint32_t expected = header.expected_ranks.load(std::memory_order_relaxed);
  if (world_size <= std::max(expected, 1u)) return;
  if (expected == 0) {
    if (now_ns - header.world_told_ns.load(std::memory_order_relaxed) <= kRegisterWaitNs) return;
    // Who has come does not go: a world that is here stays here.
    if (header.world_that_came.load(std::memory_order_relaxed) == world_size) return;
    if (ranks_that_came(*state, world_size) >= world_size) {
      header.world_that_came.store(world_size, std::memory_order_relaxed);
      return;
    }
  }
  header.spans_nodes.store(1, std::memory_order_relaxed);
}

}  // namespace aon::agent
