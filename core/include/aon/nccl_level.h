/// The level that NCCL is asked for while a job runs: what plugin, agent and readers of the spool
/// have in common. The mode word of kNcclProxySite or kNcclFixedSite (nccl.h) is the level now.
///
///     plugin, at init:   word of kNcclLimitsSite = NcclLimits   which levels its NCCL can be given
///     agent:             word of the level = what the user asked for, within those; the budget
///                        lowers it from there
///                        word of kNcclAskedSite = stamp of what it has heeded, which outlives it
///     agent, in spool:   BudgetDefinition of kNcclAskedSite, when it first sees the process and
///                        when it has heeded: old_mode is an NcclAnswer, new_mode the stamp
///
/// Words are read without their bit kModePaused. Depends on nccl.h and ring.h only.
#pragma once

#include <aon/nccl.h>
#include <aon/ring.h>

#include <cstdint>

namespace aon {

constexpr uint32_t kNcclLimitsSite = 1003;  ///< defined as a region, which is none
constexpr uint32_t kNcclAskedSite = 1004;
constexpr uint32_t kNcclUncountedSite = 1005;  ///< as kNcclLimitsSite; not 0: see counts_differ()

enum class NcclLevel : uint32_t { kOff = 0, kApi, kGpu, kNet, kStep };
constexpr uint32_t kNcclLevelCount = 5;

constexpr const char* nccl_level_name(NcclLevel level) {
  constexpr const char* kNames[kNcclLevelCount] = {"off", "api", "gpu", "net", "step"};
  const auto number = static_cast<uint32_t>(level);
  return number < kNcclLevelCount ? kNames[number] : "unknown";
}

/// Why a process cannot be given every level from api to step.
enum class NcclLimit : uint32_t {
  kNone = 0,
  kOldNccl,
  kSmallShm,
  kFixedChannels,
  kCountsDiffer,
  kUntoldGraphs
};

constexpr const char* nccl_limit_text(NcclLimit limit) {
  switch (limit) {
    case NcclLimit::kOldNccl:
      return "NCCL before 2.27 tells no times of the GPU";
    case NcclLimit::kSmallShm:
      return "/dev/shm is under 512 MiB, and NCCL would not survive it";
    case NcclLimit::kFixedChannels:
      return "NCCL 2.31 and later does not survive that channels are switched while it runs: "
             "between api and gpu only --nccl-level of the launch chooses";
    case NcclLimit::kCountsDiffer:
      return "a graph was captured at api, or a rank sent to itself, or nothing, or a Broadcast: "
             "NCCL before 2.31 might wait for channels that do not come. Only --nccl-level of the "
             "launch gives more";
    case NcclLimit::kUntoldGraphs:
      return "NCCL 2.27 does not tell which calls a graph captures, and may not survive that "
             "channels are switched: between api and gpu only --nccl-level of the launch chooses";
    default:
      return "";
  }
}

struct NcclLimits {
  NcclLevel lowest = NcclLevel::kApi;
  NcclLevel highest = NcclLevel::kApi;
  NcclLevel launch = NcclLevel::kApi;  ///< what the process began with
  NcclLimit reason = NcclLimit::kNone;

  /// Whether the level's word is that of kNcclFixedSite.
  constexpr bool keeps_channels() const { return lowest >= NcclLevel::kGpu; }
  constexpr uint32_t site() const { return keeps_channels() ? kNcclFixedSite : kNcclProxySite; }
  constexpr NcclLevel clamp(NcclLevel level) const {
    if (level < lowest) return lowest;
    return level > highest ? highest : level;
  }
  /// NCCL before 2.31 numbers the works of a channel twice, on the host and on the GPU, and asks
  /// for a work's times by the host's number. The two go apart with graphs that were captured
  /// without channels (counted once by the host, at each launch by the GPU) and with what a rank
  /// sends to itself (by the GPU alone). With channels from there on that only mixes up times;
  /// where they begin anew the proxy waits for numbers that no work has had, and
  /// ncclCommDestroy() for the proxy, for ever. So they do not begin any more, at `now`.
  constexpr NcclLimits counts_differ(NcclLevel now) const {
    if (keeps_channels() || highest < NcclLevel::kGpu || now >= NcclLevel::kGpu) return *this;
    return {NcclLevel::kApi, NcclLevel::kApi, NcclLevel::kApi, NcclLimit::kCountsDiffer};
  }
  /// Never 0.
  constexpr uint32_t word() const {
    return static_cast<uint32_t>(lowest) | static_cast<uint32_t>(highest) << 4 |
           static_cast<uint32_t>(launch) << 8 | static_cast<uint32_t>(reason) << 12;
  }
};

/// Of a word that any process may have written. False: it says nothing.
constexpr bool read_nccl_limits(uint32_t word, NcclLimits* limits) {
  const auto level_at = [word](uint32_t shift) {
    return static_cast<NcclLevel>(word >> shift & 0xf);
  };
  *limits = {level_at(0), level_at(4), level_at(8), static_cast<NcclLimit>(word >> 12 & 0xf)};
  const bool is_ordered = NcclLevel::kApi <= limits->lowest && limits->lowest <= limits->launch &&
                          limits->launch <= limits->highest && limits->highest <= NcclLevel::kStep;
  return is_ordered && limits->reason <= NcclLimit::kUntoldGraphs;
}

/// The mode word that stands for a level, api and gpu being the lowest.
constexpr uint32_t nccl_mode_of(NcclLevel level, bool keeps_channels) {
  const NcclLevel lowest = keeps_channels ? NcclLevel::kGpu : NcclLevel::kApi;
  if (level <= lowest) return kModeCount;
  const uint32_t steps_up = static_cast<uint32_t>(level) - static_cast<uint32_t>(lowest);
  return kModeSample + kNcclLowestPeriod / (1u << (steps_up - 1)) - 1;
}

/// The level of a mode word, whatever that is.
constexpr NcclLevel nccl_level_of(uint32_t mode, bool keeps_channels) {
  for (const NcclLevel level : {NcclLevel::kStep, NcclLevel::kNet, NcclLevel::kGpu}) {
    if ((mode & ~kModePaused) == nccl_mode_of(level, keeps_channels)) return level;
  }
  return keeps_channels ? NcclLevel::kGpu : NcclLevel::kApi;
}

/// What became of what was asked of one process.
struct NcclAnswer {
  NcclLevel before = NcclLevel::kApi;
  NcclLevel level = NcclLevel::kApi;
  NcclLevel asked = NcclLevel::kOff;  ///< kOff: nothing was; it is there
  NcclLimit reason = NcclLimit::kNone;

  constexpr uint32_t word() const {
    return static_cast<uint32_t>(before) | static_cast<uint32_t>(level) << 8 |
           static_cast<uint32_t>(asked) << 16 | static_cast<uint32_t>(reason) << 24;
  }
  static constexpr NcclAnswer of(uint32_t word) {
    return {static_cast<NcclLevel>(word & 0xff), static_cast<NcclLevel>(word >> 8 & 0xff),
            static_cast<NcclLevel>(word >> 16 & 0xff), static_cast<NcclLimit>(word >> 24)};
  }
};

}  // namespace aon
