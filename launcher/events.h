/// Names of hardware and software events (--events) and what they are to the kernel. libpfm4 knows
/// them: those of perf(1) ("cycles", "page-faults", "l1-dcache-load-misses") and those of this
/// machine's CPU ("zen4::retired_ops", "inst_retired:any_p"), with modifiers (":u" user mode).
///
/// aon-run resolves them before the program starts, for nobody else links libpfm4: the agent
/// and the program get each as TYPE/CONFIG/CONFIG1/CONFIG2/EXCLUDE/NAME.
/// Thread: one.   Cost: about 2 ms, only with --events.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace aon::launcher {

/// Those that can be read at the borders of calls: one group has to fit on the PMU.
constexpr size_t kMaxBorderEvents = 4;

/// Each event encoded.   Errors: kInvalid with the names that are nearest to an unknown one.
Result<std::vector<std::string>> resolve_events(const std::vector<std::string>& names);

/// Value of AON_COUNTERS for encoded events: the first four that hardware counts.
std::string border_events(const std::vector<std::string>& encoded);

/// Insertions, deletions and replacements that make `b` of `a` (Levenshtein).
size_t edit_distance(std::string_view a, std::string_view b);

/// At most `count` of `candidates`, by edit distance; case and '-' for '_' make no difference.
std::vector<std::string> nearest_names(std::string_view name,
                                       const std::vector<std::string>& candidates, size_t count);

}  // namespace aon::launcher
