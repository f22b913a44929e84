/// Ring files of processes that found no agent -> ordinary folders of the spool.
///
///     DIR/spool/NODE/fallback-PID-START.ring -->
///     DIR/spool/NODE~fallback-PID-START/{definitions.aon,
///                                                p0.0.aon}
///
/// The new folder is made aside, synced and renamed into place, then the ring file goes: whoever is
/// killed in between, nothing is there twice. A ring whose process still runs is left alone. One
/// that lies in another launch's folder (leftover_rings.h) goes the same way into that of its own.
/// Thread: one.   Cost: memory of one ring; about 40 ns per record.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace aon::writers {

/// What the ledger says of providers that only an agent has.
constexpr char kNoAgent[] = "no agent took this process";

/// Converts all leftover rings of the job `folder`; `scratch` is a folder on the same file system.
/// Returns one line for each ring that could not be read, or is another launch's.   Errors: kIo.
Result<std::vector<std::string>> convert_leftover_rings(const std::filesystem::path& folder,
                                                        const std::filesystem::path& scratch);

}  // namespace aon::writers
