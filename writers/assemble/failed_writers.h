/// What becomes of writers that failed: their files go, the others' stay, and it is said.
/// Thread: one.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "writers/assemble/assemble.h"
#include "writers/assemble/event_pass.h"

namespace aon::writers {

/// Adds a failure and a warning for each that failed, and for what others could not make (`lacks`,
/// a line each). An error: no writer has made a file.
Status collect_failures(const std::filesystem::path& staging,
                        const std::vector<WriterSlot>& writers,
                        const std::vector<std::string>& lacks, AssembleReport* report);

}  // namespace aon::writers
