/// What NCCL itself says of a job that runs: the text that its RAS service (NCCL 2.24 and later)
/// gives to whoever connects to it on a host of the job and writes "verbose status". It counts
/// launches, not completions, and may call a job healthy that hangs: it stands beside our own.
/// Thread: any.   Cost: at most kRasTimeoutMs and kRasMaxBytes, however the other side behaves.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace aon::tools {

constexpr char kRasAddress[] = "localhost:28028";  ///< where nobody sets NCCL_RAS_ADDR
/// Each of the two legs on which it asks the other hosts of its job has 5 s.
constexpr int kRasTimeoutMs = 12'000;
constexpr size_t kRasMaxBytes = 65536;
constexpr char kRasCutOff[] = "(cut off)";

/// Lines of the answer of `address` (HOST:PORT, [IPV6]:PORT) in ASCII that prints; of anything else
/// each byte is a question mark. One that did not come to its end has kRasCutOff as its last line.
/// It is of whatever job answers there.
/// Errors: kInvalid (no such address), kNotFound (nobody answers there), kIo.
Result<std::vector<std::string>> ask_ras(const std::string& address,
                                         int timeout_ms = kRasTimeoutMs);

}  // namespace aon::tools
