/// How a process was ended, in words.   Thread: any.
#pragma once

#include <signal.h>
#include <string.h>

#include <cstdint>
#include <string>

namespace aon {

/// "signal 9 (Killed)".
inline std::string signal_text(int32_t signal) {
  const char* name = signal < NSIG ? sigdescr_np(signal) : nullptr;
  return "signal " + std::to_string(signal) + " (" + (name != nullptr ? name : "unknown") + ")";
}

}  // namespace aon
