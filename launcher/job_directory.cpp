#include "launcher/job_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/base/containers.h"
#include "core/base/lease.h"
#include "core/base/name_hash.h"
#include "core/base/owner.h"
#include "core/base/place_file.h"
#include "core/base/unique_fd.h"
#include "launcher/runtime_folder.h"
#include "launcher/say.h"

namespace aon::launcher {
namespace {

constexpr rlim_t kLeastFileBytes = 4096;  ///< a write beyond the limit would end us
constexpr int kNamesInTurn = 99;          ///< DIR.1 and so on
constexpr uint64_t kFirstFarName = 100'000;
constexpr uint64_t kFarNames = 900'000;
constexpr int kMaxAttempts = 1000;
constexpr int kOwnNames = 10;  ///< of a process's own file
/// Of one launch start within this time; clocks of nodes differ by less.
constexpr time_t kStartSeconds = 120;
constexpr int kLooksAtEmpty = 1000;  ///< at an identity that is being written, a millisecond apart
constexpr char kIdentityFile[] = "/.launch";

Error path_error(const std::string& path, int error_number) {
  return {is_wrong_path(error_number) ? Code::kInvalid : Code::kIo,
          "cannot use output directory " + path + ": " + strerror(error_number) +
              "; choose another with -o DIR"};
}

std::string identity_text(const Launch& launch) {
  return "launch " + launch.id + "\nevidence " + launch.evidence + "\n";
}

/// What DIR/.launch, or another file like it, says; nothing where another user than the folder's
/// wrote it.
std::string read_identity(int folder, const char* name = kIdentityFile + 1) {
  const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  const UniqueFd fd(openat(folder, name, flags));
  struct stat of_folder {};
  struct stat of_file {};
  if (!fd || fstat(folder, &of_folder) != 0 || fstat(fd.get(), &of_file) != 0 ||
      !S_ISREG(of_file.st_mode) || of_file.st_uid != of_folder.st_uid)
    return {};
  char buffer[4096];
  const ssize_t count = read(fd.get(), buffer, sizeof(buffer));
  return count > 0 ? std::string(buffer, static_cast<size_t>(count)) : std::string();
}

/// The same of a file that somebody may have begun just now (place_file.h).
std::string read_begun_identity(int folder, const char* name) {
  for (int look = 0; look < kLooksAtEmpty; ++look) {
    struct stat status {};
    if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode) ||
        status.st_size != 0)
      break;
    usleep(1000);
  }
  return read_identity(folder, name);
}

/// True when `dir` holds nothing but identity files that are being made.
bool is_unused(const std::string& dir) {
  DIR* entries = opendir(dir.c_str());
  if (entries == nullptr) return false;
  bool is_empty = true;
  while (const dirent* entry = readdir(entries)) {
    const bool is_own = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
                        strncmp(entry->d_name, kIdentityFile + 1, strlen(kIdentityFile + 1)) == 0;
    if (!is_own) is_empty = false;
  }
  closedir(entries);
  return is_empty;
}

/// True: `path`, which has the name of a file of this process, was left by a launch that was
/// killed; it has gone now. A file that is used, as by a node of the same name, is younger.
bool remove_leftover(const std::string& path) {
  struct stat status {};
  const bool is_leftover = lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
                           std::abs(time(nullptr) - status.st_mtime) > kStartSeconds;
  return is_leftover && unlink(path.c_str()) == 0;
}

/// Makes a file in DIR that no other process has; `path` is its name. Pids come again, in
/// containers soon: what has the name already goes where it is a leftover, else another name is
/// taken.   -1: errno says why.
int make_own_file(const std::string& dir, std::string* path) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  const std::string name =
      dir + kIdentityFile + "-" + host_of_pids() + "-" + std::to_string(getpid());
  int fd = -1;
  for (int attempt = 0; fd < 0 && attempt < kOwnNames; ++attempt) {
    *path = attempt == 0 ? name : name + "-" + std::to_string(attempt);
    fd = open(path->c_str(), kFlags, 0600);
    if (fd >= 0 || errno != EEXIST) return fd;
    if (remove_leftover(*path)) {
      say("removed " + *path + ", which a launch that was killed has left");
      fd = open(path->c_str(), kFlags, 0600);
    } else {
      say(*path + " is there already and stays as it is");
    }
  }
  if (fd < 0) errno = EEXIST;
  return fd;
}

/// Puts `text` into DIR/.launch, or `file`, unless another rank was first.
Status claim(const std::string& dir, const std::string& text,
             const std::string& file = kIdentityFile) {
  std::string fresh;
  const int fd = make_own_file(dir, &fresh);
  if (fd < 0) return path_error(dir, errno);
  const bool is_written = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  int error_number = is_written ? 0 : errno;
  close(fd);
  if (error_number == 0) error_number = place_file(fresh, dir + file, text);
  unlink(fresh.c_str());
  if (error_number != 0 && error_number != EEXIST) return path_error(dir, error_number);
  return {};
}

/// Creates the folders above `path` as mkdir -p does.
Status make_parents(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    const std::string parent = path.substr(0, slash);
    if (access(parent.c_str(), F_OK) == 0) continue;
    if (mkdir(parent.c_str(), 0777) != 0 && errno != EEXIST) return path_error(path, errno);
  }
  return {};
}

/// What is at `dir`, opened; empty where it is another user's, or a link that another user made.
/// Errors: it is this user's and no folder, or one that he may not read.
Result<UniqueFd> open_if_own(const std::string& dir) {
  struct stat entry {};
  if (lstat(dir.c_str(), &entry) != 0) return path_error(dir, errno);
  const bool is_link = S_ISLNK(entry.st_mode);
  if (is_link && entry.st_uid != geteuid() && entry.st_uid != 0) return UniqueFd();
  const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | (is_link ? 0 : O_NOFOLLOW);
  UniqueFd fd(open(dir.c_str(), flags));
  if (!fd && entry.st_uid == geteuid()) return path_error(dir, errno);
  if (fd && !is_of_this_user(fd.get())) return UniqueFd();
  return fd;
}

/// Whether an agent of this directory lives (core/cluster/presence.h).
bool has_live_agent(int folder) {
  const std::string agents = "/proc/self/fd/" + std::to_string(folder) + "/agents";
  DIR* entries = opendir(agents.c_str());
  if (entries == nullptr) return false;
  bool is_alive = false;
  while (const dirent* entry = readdir(entries)) {
    const std::string_view name = entry->d_name;
    if (!name.ends_with(".lease")) continue;
    const auto owner = read_lease(agents + "/" + entry->d_name);
    is_alive = is_alive || (owner && owner->is_alive);
  }
  closedir(entries);
  return is_alive;
}

/// Whether a launch with the same id and evidence is the same one.
bool is_same_launch(int folder, const Launch& launch) {
  if (!launch.may_come_again || has_live_agent(folder)) return true;
  struct stat status {};
  if (fstatat(folder, "aon.json", &status, AT_SYMLINK_NOFOLLOW) == 0) return false;
  return fstatat(folder, kIdentityFile + 1, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
         std::abs(time(nullptr) - status.st_mtime) <= kStartSeconds;
}

/// An archive whose spool was dropped: what the launch records from here on would take its place.
bool has_archive_alone(int folder) {
  struct stat status {};
  return fstatat(folder, "aon.json", &status, AT_SYMLINK_NOFOLLOW) == 0 &&
         fstatat(folder, "spool", &status, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT;
}

enum class Owner { kOurs, kForeign };

/// Takes a folder that has no launch yet. What others may have put into it is looked for when they
/// can put nothing more.
Result<Owner> take_directory(const std::string& dir, int folder, bool is_new,
                             const std::string& text) {
  const auto is_used = [&] { return !is_unused(dir) && read_identity(folder).empty(); };
  if (!is_new) {
    if (access(dir.c_str(), W_OK | X_OK) != 0) return path_error(dir, errno);
    if (is_used()) return Owner::kForeign;
    close_to_others(folder);
    if (is_used()) return Owner::kForeign;
  }
  if (Status status = claim(dir, text); !status) return status.error();
  const bool is_ours = read_begun_identity(folder, kIdentityFile + 1) == text;
  return is_ours ? Owner::kOurs : Owner::kForeign;
}

/// Whether the ranks of this part that have been here are of this launch. This may be the first.
Result<Owner> take_part(const std::string& dir, int folder, const Launch& launch) {
  if (launch.part.empty()) return Owner::kOurs;
  const std::string file = std::string(kIdentityFile) + "." + launch.part;
  const std::string text = "part " + launch.part_evidence + "\n";
  if (read_identity(folder, file.c_str() + 1).empty()) {
    if (Status status = claim(dir, text, file); !status) return status.error();
  }
  const bool is_ours = read_begun_identity(folder, file.c_str() + 1) == text;
  return is_ours ? Owner::kOurs : Owner::kForeign;
}

/// Creates or judges one candidate.
Result<Owner> try_directory(const std::string& dir, const Launch& launch) {
  const std::string text = identity_text(launch);
  const bool is_new = mkdir(dir.c_str(), 0700) == 0;
  if (!is_new && errno != EEXIST) return path_error(dir, errno);
  Result<UniqueFd> folder = open_if_own(dir);
  if (!folder) return folder.error();
  if (!*folder) return Owner::kForeign;
  const std::string held = read_identity(folder->get());
  if (held.empty()) {
    Result<Owner> owner = take_directory(dir, folder->get(), is_new, text);
    if (!owner || *owner == Owner::kForeign) return owner;
    return take_part(dir, folder->get(), launch);
  }
  if (held != text || !is_same_launch(folder->get(), launch) || has_archive_alone(folder->get()))
    return Owner::kForeign;
  Result<Owner> owner = take_part(dir, folder->get(), launch);
  if (!owner || *owner == Owner::kForeign) return owner;
  struct stat status {};
  const bool is_open_to_others =
      fstat(folder->get(), &status) == 0 && (status.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  if (is_open_to_others) close_to_others(folder->get());
  return Owner::kOurs;
}

/// The name that is tried as the `attempt`-th, from 0. All ranks of a launch try the same ones, so
/// that they agree; and a search is short, as far names lie apart by what the launch is.
std::string candidate(const std::string& base, const Launch& launch, int attempt) {
  if (attempt == 0) return base;
  if (attempt <= kNamesInTurn) return base + "." + std::to_string(attempt);
  const uint64_t place = strtoull(name_hash(identity_text(launch)).c_str(), nullptr, 16);
  const uint64_t step = static_cast<uint64_t>(attempt - kNamesInTurn - 1);
  return base + "." + std::to_string(kFirstFarName + (place % kFarNames + step) % kFarNames);
}

/// Without "." and "..", so that a name can be put behind it. Where a link stands before "..", only
/// the file system knows what that means.
std::string normal(const std::filesystem::path& path) {
  std::filesystem::path result = path.lexically_normal();
  if (std::find(path.begin(), path.end(), "..") != path.end()) {
    std::error_code error;
    const std::filesystem::path real = std::filesystem::weakly_canonical(path, error);
    if (!error) result = real;
  }
  std::string text = result.string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

}  // namespace

bool is_wrong_path(int error_number) {
  switch (error_number) {
    case EACCES:
    case EPERM:
    case EROFS:
    case ENOENT:
    case ENOTDIR:
    case EEXIST:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
    case EINVAL:
      return true;
    default:
      return false;
  }
}

Status open_folder(const char* option, std::string& folder) {
  if (folder.empty()) return {};
  Result<std::string> path = absolute_path(folder);
  if (!path) return path.error();
  folder = std::move(*path);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  int error_number = error.value();
  if (error_number == 0 && access(folder.c_str(), W_OK | X_OK) != 0) error_number = errno;
  if (error_number == 0) return {};
  const bool is_wrong = is_wrong_path(error_number) && error_number != EROFS;
  return Error{is_wrong ? Code::kInvalid : Code::kIo, std::string(option) + ": cannot write into " +
                                                          folder + ": " + strerror(error_number) +
                                                          "; choose another folder"};
}

Result<std::string> absolute_path(const std::string& path) {
  std::string absolute = path;
  if (path.empty() || path.front() != '/') {
    char here[PATH_MAX];
    if (getcwd(here, sizeof(here)) == nullptr) return path_error(path, errno);
    absolute = std::string(here) + "/" + path;
  }
  return normal(absolute);
}

std::string read_launch_id(const std::string& dir) {
  constexpr char kPrefix[] = "launch ";
  const UniqueFd folder(open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return {};
  const std::string text = read_identity(folder.get());
  if (text.rfind(kPrefix, 0) != 0) return {};
  return text.substr(strlen(kPrefix), text.find('\n') - strlen(kPrefix));
}

Result<std::string> open_job_directory(const std::string& wanted, const Launch& launch) {
  rlimit file_limit{};
  if (getrlimit(RLIMIT_FSIZE, &file_limit) == 0 && file_limit.rlim_cur < kLeastFileBytes)
    return Error{Code::kUnavailable, "ulimit -f leaves no room for AON's files"};
  const OwnersRights rights;
  const Result<std::string> base = absolute_path(wanted);
  if (!base) return base.error();
  if (Status status = make_parents(*base); !status) return status.error();
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    const std::string dir = candidate(*base, launch, attempt);
    const Result<Owner> owner = try_directory(dir, launch);
    if (!owner && attempt > 0)
      return Error{owner.error().code,
                   *base + " is another launch's or another user's; " + owner.error().message};
    if (!owner) return owner.error();
    if (*owner == Owner::kOurs) return dir;
  }
  return Error{Code::kUnavailable, *base + " and " + std::to_string(kMaxAttempts - 1) +
                                       " names behind it are other launches'; choose another with "
                                       "-o DIR"};
}

}  // namespace aon::launcher
