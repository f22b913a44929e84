/// Handles: what NCCL keeps for us and gives back. They are numbers, never pointers, for some come
/// from another process (PXN) or from a time before (double stops, replayed graphs): whoever gets
/// one looks whether it is of this process and whether the slot still belongs to it.
///
///     63      48 47   45 44          35 34  21 20     15 14         0
///     | process | role  | communicator  | slot | channel | generation |
///
/// `process` is never 0, so no handle is null. In a fork()ed child no handle of the parent is its
/// own.   Thread: any.   Cost: none.
#pragma once

#include <cstdint>

namespace aon::nccl {

constexpr uint32_t kMaxCommunicators = 1024;  ///< of a process at a time
constexpr uint32_t kMaxOperations = 16384;    ///< in flight, of a communicator
constexpr uint32_t kMaxChannels = 64;
constexpr uint32_t kGenerationMask = (1u << 15) - 1;
constexpr uint32_t kGroupAsksGpu = 1;   ///< channels are told of what the group calls, and kept
constexpr uint32_t kGroupCounts = 2;    ///< they are told, if only for a chained plugin or RAS
constexpr uint32_t kCallAsksGpu = 1;    ///< they are told of what NCCL makes of the call
constexpr uint32_t kCallUncounted = 2;  ///< a graph has captured it without (kNcclUncounted)

enum class Role : uint32_t {
  kCommunicator = 0,  ///< the context; slot 0, the communicator's own generation
  kApi,               ///< the call of the program; channel: one of kCall... or 0
  kWork,              ///< what NCCL made of it: Coll, P2p
  kChannel,           ///< its kernel on one channel
  kGroup,             ///< a GroupApi: the generation is a count, the slot has kGroup... bits
  kProxy,             ///< what the proxy does for a channel; slot: of State::proxies
  kStep,              ///< one of its steps; channel: its number modulo kStepsInFlight
};

struct Handle {
  uint32_t process;
  Role role;
  uint32_t communicator;
  uint32_t slot;
  uint32_t channel;
  uint32_t generation;

  static Handle of(const void* pointer) {
    const uint64_t bits = reinterpret_cast<uint64_t>(pointer);
    return {static_cast<uint32_t>(bits >> 48),
            static_cast<Role>(bits >> 45 & 7),
            static_cast<uint32_t>(bits >> 35 & (kMaxCommunicators - 1)),
            static_cast<uint32_t>(bits >> 21 & (kMaxOperations - 1)),
            static_cast<uint32_t>(bits >> 15 & (kMaxChannels - 1)),
            static_cast<uint32_t>(bits & kGenerationMask)};
  }
  void* pointer() const {
    return reinterpret_cast<void*>(uint64_t{process} << 48 |
                                   uint64_t{static_cast<uint32_t>(role)} << 45 |
                                   uint64_t{communicator} << 35 | uint64_t{slot} << 21 |
                                   uint64_t{channel} << 15 | (generation & kGenerationMask));
  }
};

}  // namespace aon::nccl
