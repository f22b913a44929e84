/// The one reading of AON_DISABLE: unset, "" and "0" are a no, everything else is a yes.
/// Thread: any.   Cost: two loads; no library, so that the runtime can use it.
#pragma once

namespace aon {

/// True when `value`, that of AON_DISABLE or null, asks for a plain program.
inline bool is_disabled_by(const char* value) noexcept {
  if (value == nullptr || value[0] == '\0') return false;
  return value[0] != '0' || value[1] != '\0';
}

}  // namespace aon
