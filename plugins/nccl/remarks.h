/// What the ledger is told of this provider: all that is known to be wrong, one remark behind the
/// other, for its last word is the one that counts there.
/// Thread: any; a mutex.   Signal: no.   Cost: a definition where anything has changed.
#pragma once

#include <aon/definition.h>

namespace aon::nccl {

constexpr int kMaxReasonBytes = 640;  ///< of a remark, and of all
constexpr int kMaxRemedyBytes = 320;

enum class Topic : uint8_t { kMemory, kLevel, kMembers, kChain, kRoom, kLosses };
constexpr int kTopicCount = 6;

/// Takes the place of what was said of `topic`; kOn with "": nothing is wrong there.
void remark(Topic topic, ProviderState state, const char* reason, const char* remedy);

}  // namespace aon::nccl
