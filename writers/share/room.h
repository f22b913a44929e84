/// Temporary files are bounded by no setting, so they leave something to others: half of what the
/// spool leaves (core/agent/segments.h), so that there is room for a result where that one is full.
/// Thread: any.   Cost: a system call.   Errors: kIo.
#pragma once

#include <sys/statvfs.h>

#include <algorithm>
#include <cstdint>

#include "core/base/result.h"

namespace aon::writers::share {

/// Whether `bytes` more may be written to `fd`. Where the file system does not tell, they may.
inline Status check_room(int fd, uint64_t bytes) {
  struct statvfs status {};
  if (fstatvfs(fd, &status) != 0 || status.f_blocks == 0) return {};
  const uint64_t floor = std::min<uint64_t>(status.f_blocks * status.f_frsize / 40, 1ull << 29);
  if (status.f_bavail * status.f_frsize >= floor + bytes) return {};
  return Error{Code::kIo, "the disk is nearly full (2.5 %, at most 512 MiB, are left to others)"};
}

}  // namespace aon::writers::share
