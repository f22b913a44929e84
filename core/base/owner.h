/// Whose a folder is, to be asked before anything in it is believed, used or removed: where others
/// may write, they may have made a folder or a link under a name that we are about to choose.
/// Thread: any.   Cost: two system calls; seven where the file system shows other owners.
#pragma once

#include <string>

namespace aon {

/// True when the folder behind `fd` is this user's. Some file systems show other owners than they
/// are told (NFS with root_squash, sshfs): there it is the one that our files get.
bool is_of_this_user(int fd);

/// True when the file behind `fd`, which lies in the folder behind `folder`, and that folder are
/// both this user's.
bool is_of_this_user(int folder, int fd);

/// True when the file behind `fd`, opened as `path`, is this user's: as the file system shows it,
/// or with its folder.
bool is_own_file(int fd, const std::string& path);

/// True for a folder of this user, no symbolic link, that nobody else may write.
bool is_own_folder(const std::string& path);

/// Lets nobody but the owner into the folder behind `fd`. One that hands its group on (setgid: a
/// project's, whose quota counts what is in it) goes on doing so.
void close_to_others(int fd);

}  // namespace aon
