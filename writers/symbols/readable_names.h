/// Names of many functions as their authors wrote them, of which some may be made to harm.
/// Thread: as Helper.   Cost: as readable_name(); a fork where names use parts of themselves often.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace aon::symbols {

/// Whether readable_names() reads it in this process: the result is the same everywhere.
bool is_read_alike(const std::string& name);

/// readable_name() of each. One that takes too long or too much memory stays as it is.
std::vector<std::string> readable_names(std::span<const std::string> names);

}  // namespace aon::symbols
