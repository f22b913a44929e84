/// Whether a launch has ranks on other nodes. Then the agents look for each other, exchange their
/// clocks, and one of them makes the archive of all.
///
/// Thread: the drain thread of a worker; the keeper when its worker has ended. All that is known
/// stands in the state, so a worker that takes the place of a killed one knows it, too.
/// Cost: a few loads; at the end a pass over the processes.
#pragma once

#include <cstdint>

#include "core/agent/state.h"

namespace aon::agent {

/// How long the first aon-run beside a rank may take to say how many ranks are here.
constexpr uint64_t kRegisterWaitNs = 5'000'000'000;
constexpr uint64_t kAtTheEnd = UINT64_MAX;  ///< as a time: nobody comes any more

/// `world_size`: of a rank, as it or its aon-run says; 0: unknown. Told when its process is in the
/// state.
void note_world(State* state, uint32_t world_size, uint64_t now_ns) noexcept;

/// Sets spans_nodes where more ranks are told of than are expected here: the others are on other
/// nodes. How many are expected is not known before the first aon-run beside a rank has
/// registered, which a program that starts fast may precede, and never where an aon-run has
/// started the launcher, or there is none: then, kRegisterWaitNs after a world of that size was
/// first told of, those count that have come. Called often.
void decide_span(State* state, uint64_t now_ns);

}  // namespace aon::agent
