/// Whole reads and writes that resume after EINTR and short counts. Thread: any.   Signal: never.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/base/result.h"
#include "core/base/unique_fd.h"

namespace aon {

/// Opens `path` with `flags` | O_CLOEXEC. Never waits: without O_NONBLOCK only a file or folder is
/// taken, no pipe or device.   Errors: kNotFound, kUnavailable (permission), kInvalid (kind), kIo.
Result<UniqueFd> open_file(const std::string& path, int flags, int mode = 0600);

/// Reads up to `bytes` at `offset`; fewer only at the end of the file.
Result<size_t> read_at(int fd, void* buffer, size_t bytes, uint64_t offset);

/// Writes all of `buffer` at the file's position.
Status write_all(int fd, const void* buffer, size_t bytes);

/// Reads a small text file, at most `limit_bytes` of it (files of /proc and /sys have no size).
Result<std::string> read_text_file(const std::string& path, size_t limit_bytes = 1 << 20);

/// An Error of `code` chosen from errno: "`what` `path`: strerror".
Error errno_error(const std::string& what, const std::string& path, int error_number);

}  // namespace aon
