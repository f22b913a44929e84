/// DIR/spool/HOST, where a process that found no agent leaves its records; DIR is AON_OUTPUT.
/// Behind a TaskProlog nobody need have made DIR, and its name can be guessed: where several users
/// may write, another one may have made it, or a link of that name, to have the records or to have
/// files made elsewhere. So each of the three has to be this user's (as core/base/owner.h has it),
/// and a link is followed only where this user or root has made it, as --spool-dir makes one.
/// Thread: any.   Cost: some 10 system calls; no memory.
#pragma once

#include <limits.h>

namespace aon::runtime {

/// The folder, made where it is missing. -1: there is none for this process. Overwrites `path`.
int open_node_folder(char (&path)[PATH_MAX]);

/// The same for who can have no descriptor: `path` names it. False also where it is this user's on
/// a file system that shows another owner: to know that takes a file.
bool find_node_folder(char (&path)[PATH_MAX]);

}  // namespace aon::runtime
