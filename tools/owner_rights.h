/// Root who works on somebody else's job directory does so with its owner's rights: what is made
/// there is the owner's, and a link that he has planted leads no farther than he gets himself.
/// Thread: one, before others start.   Cost: some system calls.
#pragma once

#include <string>
#include <vector>

namespace aon::tools {

/// Becomes the owner of the first of `dirs` for good. Nothing for others than root, for root's own
/// directories, and where the owner does not get at all of `dirs`, which is told on stderr, as
/// "aon `command`: ...".
void take_owner_rights(const char* command, const std::vector<std::string>& dirs);

}  // namespace aon::tools
