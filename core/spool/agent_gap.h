/// Times in which the agent of a node took nothing, for its worker was killed and another one took
/// its place. In the spool each is a loss of the node (DefinitionType::kEviction, kNodeProcess) of
/// a slot that no stream has, with count 0: what was lost meanwhile stands with its streams.
/// Layout only.
#pragma once

#include <aon/definition.h>

#include <cstdint>

#include "core/spool/format.h"

namespace aon::spool {

constexpr uint16_t kAgentGapSlot = 0xfffd;
static_assert(!is_agent_slot(kAgentGapSlot));

/// `worker` counts those of the agent, from 1; it keeps gaps apart where losses are merged.
inline LossDefinition agent_gap(uint32_t worker, uint64_t start_ticks, uint64_t end_ticks) {
  LossDefinition gap{};
  gap.process = kNodeProcess;
  gap.slot = kAgentGapSlot;
  gap.reason = static_cast<uint32_t>(LossReason::kPoolFull);  // which is what it may lead to
  gap.first_sequence = worker;
  gap.start_ticks = start_ticks;
  gap.end_ticks = end_ticks;
  return gap;
}

inline bool is_agent_gap(const LossDefinition& loss) { return loss.slot == kAgentGapSlot; }

}  // namespace aon::spool
