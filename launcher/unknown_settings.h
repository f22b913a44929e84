/// Variables that somebody took for settings of AON and that nobody reads: AON_BUGDET. Told are
/// those whose name is near a setting's; of the others nothing is known, for sites have variables
/// of their own (AON_ROOT).
/// Thread: any.   Cost: 20 us for each that begins with AON_ and that nobody reads; at most 8.
#pragma once

#include <span>
#include <vector>

#include "core/base/options.h"

namespace aon::launcher {

/// With the names that are near. `environment` is environ's form.
std::vector<WrongSetting> unknown_settings(std::span<const char* const> environment);

}  // namespace aon::launcher
