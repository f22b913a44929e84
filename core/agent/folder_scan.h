/// What an earlier agent of the same launch left in the spool folder. Thread: any, at start.
#pragma once

#include <cstdint>
#include <string>

namespace aon::agent {

/// The first process number that no file and no definition in `folder` uses; 0 for a new folder.
uint32_t next_process_number(const std::string& folder);

}  // namespace aon::agent
