#include "writers/assemble/publish.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <system_error>
#include <vector>

#include "core/base/file.h"
#include "core/base/owner.h"
#include "core/base/sync_files.h"

namespace aon::writers {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = ".assemble-";
/// In the order in which they appear; the older result goes in the opposite one.
constexpr std::array<const char*, 8> kEntries = {"traces",     "traces.def",  "traces.marker",
                                                 "samples",    "traces.otf2", "series",
                                                 "profile.h5", "aon.json"};

/// The user may name it by a link.
Status sync_job_folder(const fs::path& folder) {
  const Result<UniqueFd> fd = open_file(folder.string(), O_RDONLY | O_DIRECTORY);
  return fd ? sync_files(fd->get(), {}) : fd.error();
}

Status set_mode(const fs::path& path, bool is_folder) {
  if (chmod(path.c_str(), is_folder ? 0700 : 0600) == 0) return {};
  return errno_error("chmod", path.string(), errno);
}

Status move_entry(const fs::path& from, const fs::path& to) {
  if (rename(from.c_str(), to.c_str()) == 0 || errno == ENOENT) return {};
  return errno_error("rename", from.string(), errno);
}

}  // namespace

void remove_spool(const fs::path& folder) {
  const fs::path spool = folder / "spool";
  std::error_code error;
  fs::directory_iterator entries;
  if (is_own_folder(spool)) entries = fs::directory_iterator(spool, error);
  for (const fs::directory_entry& entry : entries) {
    std::error_code ignored;
    if (!entry.is_symlink(ignored)) continue;
    const fs::path target = fs::canonical(entry.path(), ignored);
    const fs::path launch = target.parent_path();
    if (target.filename() != entry.path().filename() ||
        launch.filename().string().rfind("aon-", 0) != 0 || !is_own_folder(launch) ||
        !is_own_folder(target))
      continue;
    fs::remove_all(target, ignored);
    fs::remove(launch, ignored);  // fails while other nodes have folders there
  }
  fs::remove_all(spool, error);
}

void remove_with_room(const fs::path& path) {
  std::error_code ignored;
  const auto make_empty = [&ignored](const fs::path& file) {
    if (fs::is_regular_file(fs::symlink_status(file, ignored))) fs::resize_file(file, 0, ignored);
  };
  make_empty(path);
  if (fs::is_directory(fs::symlink_status(path, ignored))) {
    std::error_code error;
    fs::recursive_directory_iterator entries(path, error);
    for (; !error && entries != fs::recursive_directory_iterator(); entries.increment(error))
      make_empty(entries->path());
  }
  fs::remove_all(path, ignored);
}

Status remove_stale_staging(const fs::path& folder) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().filename().string().rfind(kPrefix, 0) != 0) continue;
    std::error_code ignored;
    if (!entry.is_symlink(ignored) && entry.is_regular_file(ignored))  // a summary
      fs::remove(entry.path(), ignored);
    if (!is_own_folder(entry.path())) continue;  // planted: its links may lead anywhere
    remove_spool(entry.path());  // a spool that was to be dropped, with what its links point to
    fs::remove_all(entry.path(), ignored);
  }
  if (error) return errno_error("read folder", folder.string(), error.value());
  return {};
}

Result<Staging> Staging::create(const fs::path& folder) {
  if (Status status = remove_stale_staging(folder); !status) return status.error();
  const fs::path staging = folder / (kPrefix + std::to_string(getpid()));
  if (mkdir(staging.c_str(), 0700) != 0) {
    return errno_error("create folder", staging.string(), errno);
  }
  return Staging(folder, staging);
}

Staging::~Staging() {
  if (staging_.empty()) return;
  std::error_code ignored;
  fs::remove_all(staging_, ignored);
}

Result<uint64_t> Staging::sync() {
  uint64_t bytes = 0;
  std::error_code error;
  fs::recursive_directory_iterator entries(staging_, error);
  for (; !error && entries != fs::recursive_directory_iterator(); entries.increment(error)) {
    const bool is_folder = entries->is_directory(error);
    if (!is_folder && !error) bytes += entries->file_size(error);
    if (error) break;
    Status status = set_mode(entries->path(), is_folder);
    if (!status) return status.error();
  }
  if (error) return errno_error("read folder", staging_.string(), error.value());
  if (Status status = sync_tree(staging_); !status) return status.error();
  return bytes;
}

Status Staging::publish() {
  const fs::path old = staging_ / "old";
  if (mkdir(old.c_str(), 0700) != 0) return errno_error("create folder", old.string(), errno);
  Status status;
  for (size_t i = kEntries.size(); i > 0 && status; --i)
    status = move_entry(folder_ / kEntries[i - 1], old / kEntries[i - 1]);
  size_t published_count = 0;
  while (status && published_count < kEntries.size()) {
    const char* entry = kEntries[published_count];
    status = move_entry(staging_ / entry, folder_ / entry);
    if (status) ++published_count;
  }
  if (status) return sync_job_folder(folder_);
  // The older result comes back, as far as it can.
  for (size_t i = published_count; i > 0; --i)
    static_cast<void>(move_entry(folder_ / kEntries[i - 1], staging_ / kEntries[i - 1]));
  for (const char* entry : kEntries) static_cast<void>(move_entry(old / entry, folder_ / entry));
  return status;
}

void Staging::discard(const char* entry) {
  if (move_entry(folder_ / entry, staging_ / entry)) (void)sync_job_folder(folder_);
}

}  // namespace aon::writers
