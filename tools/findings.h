/// What stands out in a profile, in order of weight: sentences with numbers, from profile.h5 alone.
/// Thread: one.   Cost: reads the /profile table once.   Errors: none; no profile, no findings.
#pragma once

#include <string>
#include <vector>

namespace aon::tools {

std::vector<std::string> find_findings(const std::string& dir);

}  // namespace aon::tools
