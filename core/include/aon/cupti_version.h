/// What changed between versions of NVIDIA's CUPTI, by cuptiGetVersion(): 24 is CUDA 12.6, 130001
/// is 13.0 update 1; and of its driver, by cuDriverGetVersion(). Of both the plugin and
/// `aon doctor` know. Sources: cupti_version.h and NVIDIA's release notes.
/// Depends on nothing.
#pragma once

#include <stdint.h>

namespace aon {

constexpr uint32_t kCuptiWithGraphs = 24;  ///< recorded as one they may crash an older one
constexpr uint32_t kCuptiWithoutDeviceWaits = 130000;  ///< this one alone
constexpr uint32_t kCuptiWithSafeFlush = 130001;       ///< flushing may crash an older one
constexpr uint32_t kCuptiWithSubscribers = 130300;  ///< each client has its own buffers and kinds
constexpr int kDriverWithSubscribers = 13030;       ///< r610: the first that lets several be

}  // namespace aon
