/// Files that outlive a crash of their machine.
/// Thread: any.   Cost: some 10 ms a file, waited for; of more than kMostSyncedFiles as long as the
/// whole file system takes, with what others have written to it.
/// Errors: as open_file(); kIo.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace aon {

constexpr size_t kMostSyncedFiles = 64;

/// Files of `folder`, which may go through subfolders, and then the folder itself. Where there is
/// no descriptor for one, all of the file system.
Status sync_files(int folder, const std::vector<std::string>& names);

/// All that was written to the file system of `folder`.
Status sync_file_system(int folder);

/// All files and folders below `folder`, and itself.
Status sync_tree(const std::string& folder);

}  // namespace aon
