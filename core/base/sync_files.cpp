#include "core/base/sync_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "core/base/file.h"
#include "core/base/unique_fd.h"

namespace aon {
namespace {

namespace fs = std::filesystem;

constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;

/// Some file systems have nothing to sync (EINVAL).
Status sync_opened(int fd, const std::string& path) {
  return fsync(fd) == 0 || errno == EINVAL ? Status() : errno_error("sync", path, errno);
}

bool is_shortage(int error_number) {
  return error_number == EMFILE || error_number == ENFILE || error_number == ENOMEM;
}

}  // namespace

Status sync_file_system(int folder) {
  return syncfs(folder) == 0 ? Status() : errno_error("sync", "the file system", errno);
}

Status sync_files(int folder, const std::vector<std::string>& names) {
  if (names.size() > kMostSyncedFiles) return sync_file_system(folder);
  for (const std::string& name : names) {
    const UniqueFd file(
        openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!file && is_shortage(errno)) return sync_file_system(folder);
    if (!file) return errno_error("open", name, errno);
    if (Status status = sync_opened(file.get(), name); !status) return status;
  }
  return sync_opened(folder, "a folder");
}

Status sync_tree(const std::string& folder) {
  std::vector<std::string> files;
  std::vector<std::string> folders;
  std::error_code error;
  fs::recursive_directory_iterator entries(folder, error);
  for (; !error && entries != fs::recursive_directory_iterator(); entries.increment(error)) {
    const bool is_link = entries->is_symlink(error);
    const bool is_folder = !error && !is_link && entries->is_directory(error);
    if (error) break;
    if (is_folder) folders.push_back(entries->path());
    if (!is_folder && !is_link) files.push_back(entries->path().lexically_relative(folder));
  }
  if (error) return errno_error("read folder", folder, error.value());
  const Result<UniqueFd> top = open_file(folder, kFolderFlags);
  if (!top) return top.error();
  Status status = sync_files(top->get(), files);
  for (const std::string& path : folders) {
    if (!status) return status;
    const Result<UniqueFd> fd = open_file(path, kFolderFlags);
    status = fd ? sync_opened(fd->get(), path) : fd.error();
  }
  return status;
}

}  // namespace aon
