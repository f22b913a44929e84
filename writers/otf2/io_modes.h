/// How a file was opened (FileMode), in OTF2's words.   Thread: any.   Cost: none.
#pragma once

#include <aon/definition.h>
#include <otf2/otf2.h>

namespace aon::writers::otf2 {

inline OTF2_IoAccessMode io_access_mode(uint64_t mode) {
  if ((mode & kFileWrites) == 0) return OTF2_IO_ACCESS_MODE_READ_ONLY;
  return (mode & kFileReads) == 0 ? OTF2_IO_ACCESS_MODE_WRITE_ONLY : OTF2_IO_ACCESS_MODE_READ_WRITE;
}

inline OTF2_IoStatusFlag io_status_flags(uint64_t mode) {
  OTF2_IoStatusFlag flags = OTF2_IO_STATUS_FLAG_NONE;
  if ((mode & kFileAppends) != 0) flags |= OTF2_IO_STATUS_FLAG_APPEND;
  if ((mode & kFileDeletedOnClose) != 0) flags |= OTF2_IO_STATUS_FLAG_DELETE_ON_CLOSE;
  return flags;
}

}  // namespace aon::writers::otf2
