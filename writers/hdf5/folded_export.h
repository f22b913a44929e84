/// Folded stacks ("main;solve;dot 42"), the input of flame graph programs (flamegraph.pl,
/// speedscope, inferno), from the samples in profile.h5.
/// Thread: one.   Cost: proportional to the call paths that were hit.
#pragma once

#include <filesystem>

#include "core/base/result.h"

namespace aon::writers {

/// Writes one line per different stack of functions, over all processes; with `by_rank` each begins
/// with its rank, of a process without one with its row of /ranks. Errors: kNotFound when nothing
/// was sampled, kIo.
Status export_folded(const std::filesystem::path& folder, const std::filesystem::path& output,
                     bool by_rank);

}  // namespace aon::writers
