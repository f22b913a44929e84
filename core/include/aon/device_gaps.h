/// Why work of devices may be missing in a time. Each cause is the name of a region: who records
/// work writes intervals of it on the timeline "GPU work not recorded", and writers know it again.
/// Depends on nothing.
#pragma once

#include <cstdint>

namespace aon {

enum class GapCause : uint8_t {
  kUnknown = 0,  ///< of older spools
  kBudget,       ///< above --budget it rests
  kPause,        ///< the program asked for it
  kDropped,      ///< by CUPTI, which had buffers
  kPoolFull,     ///< there was no buffer for CUPTI
  kUnusable,     ///< records without times, damaged, or of no known kind
  kKept,         ///< CUPTI did not hand records over
  kUnread,       ///< the program ended before all were read
  kStopped,      ///< CUPTI stopped, or could not be switched on again
  kRing,         ///< records did not fit in the process's ring: no interval, LOST records tell
  kLeftOut,      ///< by --disk, when the files were made: no interval
};
constexpr uint32_t kGapCauseCount = 11;

/// Name of its region; those of causes that are no interval are words alone.
constexpr const char* gap_name(GapCause cause) {
  constexpr const char* kNames[kGapCauseCount] = {"[GPU work not recorded]",
                                                  "[GPU work not recorded: above --budget]",
                                                  "[GPU work not recorded: paused]",
                                                  "[GPU work not recorded: dropped by CUPTI]",
                                                  "[GPU work not recorded: no buffer]",
                                                  "[GPU work not recorded: unusable records]",
                                                  "[GPU work not recorded: kept by CUPTI]",
                                                  "[GPU work not recorded: not read]",
                                                  "[GPU work not recorded: CUPTI stopped]",
                                                  "[GPU work not recorded: ring full]",
                                                  "[GPU work not recorded: left out]"};
  return kNames[static_cast<uint32_t>(cause)];
}

}  // namespace aon
