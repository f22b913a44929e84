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

/// `worker` counts those of the agent, from 1. Several agents, one after the other, may write into
/// one folder: when it began keeps a gap apart where losses are merged.
inline LossDefinition agent_gap(uint32_t worker, uint64_t start_ticks, uint64_t end_ticks) {
  LossDefinition gap{};
  gap.process = kNodeProcess;
  gap.slot = kAgentGapSlot;
  gap.reason = static_cast<uint32_t>(LossReason::kPoolFull);  // which is what it may lead to
  gap.context = static_cast<uint16_t>(worker);
  gap.first_sequence = start_ticks;
  gap.start_ticks = start_ticks;
  gap.end_ticks = end_ticks;
  return gap;
}

inline bool is_agent_gap(const LossDefinition& loss) { return loss.slot == kAgentGapSlot; }
inline uint32_t worker_behind(const LossDefinition& gap) { return gap.context; }

}  // namespace aon::spool
