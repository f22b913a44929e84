/// The user's own folder on this node for sockets and locks: $XDG_RUNTIME_DIR/aon, or
/// /tmp/aon-UID. 0700, owned by the user, no symbolic link, short enough for a socket; otherwise
/// it is not used. Nor is /run/user/UID in a job of Slurm, which may outlive the user's login.
/// Thread: any.   Cost: two system calls.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

#include "core/base/result.h"

namespace aon::launcher {

/// While it lives, what is made is its owner's to use, whatever the umask of the job takes away.
class OwnersRights {
 public:
  OwnersRights() : mask_(umask(0777)) { umask(mask_ & 077); }
  ~OwnersRights() { umask(mask_); }
  OwnersRights(const OwnersRights&) = delete;
  OwnersRights& operator=(const OwnersRights&) = delete;

 private:
  mode_t mask_;
};

/// Its path; makes nothing.
std::string runtime_folder();

/// Creates it if need be.   Errors: kUnavailable with what is wrong with it.
Status make_runtime_folder(const std::string& dir);

/// `library_dir` in a form that LD_PRELOAD can name: itself, or, where it contains a space or a
/// colon (which separate entries there), a symbolic link to it in the runtime folder.
Result<std::string> preloadable_folder(const std::string& library_dir);

/// Notes the directory of a launch of Slurm's job `job` for the Epilog of this node, which knows
/// the job's number and user, and nothing of AON_OUTPUT or --chdir: /tmp/aon-UID/slurm-JOB, a line
/// for each. What cannot be noted (false) is not finished by the Epilog if all agents are killed,
/// no more.
bool note_for_epilog(const char* job, const std::string& directory);

/// Where the notes are: /tmp/aon-UID.
std::string notes_folder();

/// Whether `name` in `folder` is a note of more than 60 days ago: no Epilog takes notes here, or it
/// is of a job that has started nothing since.
bool is_old_note(const std::string& folder, const std::string& name);

}  // namespace aon::launcher
