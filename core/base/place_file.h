/// Puts a whole file under a name that nobody has yet: of several who try, on whatever nodes, one
/// does, and who reads the file reads all of it. By link(), also on NFS; where a file system has no
/// hard links (exFAT, gcsfuse, s3fs, dfuse), by a rename that replaces nothing; where it has no
/// such rename either, by making the file: then it is empty for a moment.
/// Thread: any.   Signal: never.   Cost: a system call; a few without links.
#pragma once

#include <string>

namespace aon {

/// Gives the name `path` to the file `fresh` on the same file system, which holds `text`. `fresh`
/// may be there afterwards, or not: the caller removes it.
/// Errors: errno; EEXIST: the name is taken.
[[nodiscard]] int place_file(const std::string& fresh, const std::string& path,
                             const std::string& text);

}  // namespace aon
