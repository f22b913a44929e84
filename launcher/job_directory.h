/// The job directory: created 0700, or joined when it belongs to the same launch. All ranks of a
/// launch agree without talking to each other: DIR/.launch says whose it is, and is put in
/// place whole, also on NFS (core/base/place_file.h).
///
///     mkdir DIR --new or empty--> place .launch --ok-----> ours
///         |                            '--exists----> read it: same launch? ours : try DIR.1
///         '--has .launch-----------------------------> read it
///         '--holds something else, or an archive whose spool was dropped--> try DIR.1
///         '--another user's, or a link that another user made--> try DIR.1
///
/// Behind DIR.99 the next name is DIR.N, where N is of six digits and made of the launch's id: all
/// ranks get there without looking at the names of all others. Only then it is N + 1, and so on.
///
/// Where the id may come again, a directory is of the same launch only while an agent of it lives,
/// or when it was claimed in the last two minutes and there is no archive; and only if no other
/// launch has been there from this node: DIR/.launch.PART says which, put in place like .launch.
/// Nobody else may write a job directory: an own one that is empty, or of this launch, becomes
/// 0700. A link of the user's to a folder of the user's is as good as the folder.
///
/// Thread: one.   Cost: about 50 us for the first rank, 10 us for the others.
/// Errors: kInvalid where the path cannot be used (the option is wrong), kIo where the node or its
/// file systems refuse, which is no fault of the option's.
#pragma once

#include <string>

#include "core/base/result.h"
#include "launcher/launch_id.h"

namespace aon::launcher {

/// Absolute path of the job directory of `launch`, which exists when this returns.
Result<std::string> open_job_directory(const std::string& wanted, const Launch& launch);

/// Launch id that DIR/.launch holds; empty when there is none.
std::string read_launch_id(const std::string& dir);

/// The folder that `option` names, of this node: made where it is missing, absolute from here on.
/// Errors: as above; but a disk that is read-only is the node's fault, as disks become when they
/// fail.
Status open_folder(const char* option, std::string& folder);

/// Whether this errno says that the path is wrong, whenever and on whatever node one tries.
bool is_wrong_path(int error_number);

/// `path` made absolute with the current directory, without "." and "..".
Result<std::string> absolute_path(const std::string& path);

}  // namespace aon::launcher
