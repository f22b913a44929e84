/// What becomes of writers that failed: their files go, the others' stay, and it is said.
/// Thread: one.
#pragma once

#include <filesystem>
#include <vector>

#include "writers/assemble/assemble.h"
#include "writers/assemble/event_pass.h"

namespace aon::writers {

/// Adds a warning for each that failed. An error: no writer has made a file.
Status collect_failures(const std::filesystem::path& staging,
                        const std::vector<WriterSlot>& writers, AssembleReport* report);

}  // namespace aon::writers
