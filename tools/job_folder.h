/// What of a job directory can be used, in words for who owns it and for who does not.
/// Thread: any.   Cost: some system calls.
#pragma once

#include <string>

#include "core/base/result.h"

namespace aon::tools {

/// What is said of a directory that has neither ledger nor spool, behind its name: aon-run made it
/// (it has .launch), or it is another one.
std::string without_spool(const std::string& dir);

/// Whether `dir` has the file or folder `part`, and this user may read it.
/// Errors: kInvalid ("DIR: no such directory"), kNotFound ("DIR has no PART"), kUnavailable ("DIR:
/// permission denied, it belongs to USER"), kIo.
Status find_part(const std::string& dir, const std::string& part);

/// The same of profile.h5, a file; what is missing is said with the command that makes it.
Status find_profile(const std::string& dir);

/// A line that anybody may have written, without what a terminal would obey: '?' instead.
std::string printable(std::string line);

}  // namespace aon::tools
