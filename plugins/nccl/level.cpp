#include "nccl/level.h"

#include <string.h>

namespace aon::nccl {
namespace {

constexpr uint64_t kApiEvents =
    kColl | kP2p | kGroupApi | kCollApi | kP2pApi | kKernelLaunch | kCopyEngineColl;
constexpr int kFirstWithTimer = 4;  ///< version whose channels tell GPU times

bool is(const char* text, const char* word) { return strcmp(text, word) == 0; }

}  // namespace

LevelChoice choose_level(const char* text, int version, uint64_t shared_bytes) {
  if (text == nullptr || text[0] == '\0' || is(text, "api")) return {Level::kApi, "", ""};
  if (is(text, "off")) {
    return {Level::kOff, "AON_NCCL_LEVEL is off", "unset AON_NCCL_LEVEL"};
  }
  const bool wants_proxy = is(text, "net") || is(text, "step");
  if (!is(text, "gpu") && !wants_proxy) {
    return {Level::kApi, "AON_NCCL_LEVEL has no such level: api is used",
            "AON_NCCL_LEVEL=api or gpu"};
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
  if (wants_proxy) {
    return {Level::kGpu, "events of NCCL's proxy are not recorded: level gpu is used",
            "AON_NCCL_LEVEL=gpu"};
  }
  return {Level::kGpu, "", ""};
}

int mask_of(Level level, int version) {
  if (level == Level::kOff) return 0;
  const uint64_t events = level == Level::kGpu ? kApiEvents | kKernelChannel : kApiEvents;
  return static_cast<int>(events & events_of(version));
}

}  // namespace aon::nccl
