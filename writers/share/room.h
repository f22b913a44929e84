/// Whether there is room for temporary files, which leave something of the disk to others.
/// Thread: any.   Cost: a system call.   Errors: kIo.
#pragma once

#include <sys/statvfs.h>

#include <cstdint>

#include "core/base/disk_room.h"
#include "core/base/result.h"

namespace aon::writers::share {

/// Whether `bytes` more may be written to `fd`. Where the file system does not tell, they may.
inline Status check_room(int fd, uint64_t bytes) {
  struct statvfs status {};
  if (fstatvfs(fd, &status) != 0 || status.f_blocks == 0) return {};
  const uint64_t floor = left_by_assembly_bytes(status.f_blocks * status.f_frsize);
  if (status.f_bavail * status.f_frsize >= floor + bytes) return {};
  return Error{Code::kIo, "the disk is nearly full (2.5 %, at most 512 MiB, are left to others)"};
}

}  // namespace aon::writers::share
