/// What aon-run says, to standard error.
/// Thread: one.   Errors: none; where nobody reads, nothing is said, and nobody is hurt by it.
#pragma once

#include <string>
#include <string_view>

namespace aon::launcher {

constexpr int kReaderMs = 1000;  ///< for whoever reads

/// Writes `text` as far as somebody reads it: the program's start and end may not hang at us, nor
/// fail by the signal of a pipe that has no reader.
void write_bounded(std::string_view text, int timeout_ms);

/// A line of aon-run's.
void say(const std::string& text);

}  // namespace aon::launcher
