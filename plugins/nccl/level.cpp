#include "nccl/level.h"

#include <string.h>

namespace aon::nccl {
namespace {

constexpr uint64_t kApiEvents =
    kColl | kP2p | kGroupApi | kCollApi | kP2pApi | kKernelLaunch | kCopyEngineColl;
constexpr int kFirstWithTimer = 4;  ///< version whose channels tell GPU times

constexpr int kFirstWithGraphs = 5;  ///< that tells which calls a graph captures
constexpr int kFirstWithFixedChannels = 7;

bool is(const char* text, const char* word) { return strcmp(text, word) == 0; }

/// kOff: there is no such level.
Level named_level(const char* text) {
  if (is(text, "gpu")) return Level::kGpu;
  if (is(text, "net")) return Level::kNet;
  return is(text, "step") ? Level::kStep : Level::kOff;
}

}  // namespace

LevelChoice choose_level(const char* text, int version, uint64_t shared_bytes) {
  if (text == nullptr || text[0] == '\0' || is(text, "api")) return {Level::kApi, "", ""};
  if (is(text, "off")) {
    return {Level::kOff, "AON_NCCL_LEVEL is off", "another --nccl-level or AON_NCCL_LEVEL"};
  }
  const Level wanted = named_level(text);
  if (wanted == Level::kOff) {
    return {Level::kApi, "AON_NCCL_LEVEL has no such level: api is used",
            "AON_NCCL_LEVEL=api, gpu, net or step"};
  }
  if (version < kFirstWithTimer) {
    return {Level::kApi, "this NCCL tells no times of the GPU: level api is used",
            "NCCL 2.27 or later"};
  }
  if (shared_bytes < kMinSharedBytes) {
    return {Level::kApi,
            "/dev/shm is so small that NCCL would not survive level gpu: level api is used",
            "a /dev/shm of 512 MiB or more (docker run --shm-size=1g)"};
  }
  return {wanted, "", ""};
}

int mask_of(Level level, int version) {
  if (level == Level::kOff) return 0;
  uint64_t events = kApiEvents;
  if (level >= Level::kGpu) events |= kKernelChannel;
  if (level >= Level::kNet) events |= kProxyOp;
  if (level >= Level::kStep) events |= kProxyStep | kNetPlugin;
  return static_cast<int>(events & events_of(version));
}

NcclLimits limits_of(Level launch, int version, uint64_t shared_bytes) {
  if (version < kFirstWithTimer) return {launch, launch, launch, NcclLimit::kOldNccl};
  if (shared_bytes < kMinSharedBytes) return {launch, launch, launch, NcclLimit::kSmallShm};
  if (version >= kFirstWithGraphs && version < kFirstWithFixedChannels)
    return {Level::kApi, Level::kStep, launch, NcclLimit::kNone};
  const NcclLimit reason =
      version < kFirstWithGraphs ? NcclLimit::kUntoldGraphs : NcclLimit::kFixedChannels;
  if (launch < Level::kGpu) return {launch, launch, launch, reason};
  return {Level::kGpu, Level::kStep, launch, reason};
}

Level level_of_mode(uint32_t mode, const NcclLimits& limits) {
  if ((mode & ~kModePaused) == kModeUndefined) return limits.launch;
  return limits.clamp(nccl_level_of(mode, limits.keeps_channels()));
}

}  // namespace aon::nccl
