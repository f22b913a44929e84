#include "launcher/runtime_folder.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "core/base/file.h"
#include "core/base/name_hash.h"

namespace aon::launcher {
namespace {

/// True when `dir` is a real folder of this user that nobody else can enter.
bool is_private_folder(const std::string& dir) {
  struct stat status {};
  return lstat(dir.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == geteuid() && (status.st_mode & 077) == 0;
}

bool is_link_to(const std::string& path, const std::string& target) {
  char buffer[PATH_MAX];
  const ssize_t length = readlink(path.c_str(), buffer, sizeof(buffer));
  return length > 0 && target == std::string(buffer, static_cast<size_t>(length));
}

/// With more there is no room for the name of a socket behind it (sun_path of sockaddr_un).
constexpr size_t kLongestSession = sizeof(sockaddr_un::sun_path) - sizeof("/aon/") - 32;

/// logind's: it goes when the last session of the user on this node has ended, jobs or not.
bool goes_with_the_login(const char* session) {
  constexpr char kOfLogind[] = "/run/user/";
  return strncmp(session, kOfLogind, sizeof(kOfLogind) - 1) == 0;
}

std::string folder_in_tmp() { return "/tmp/aon-" + std::to_string(geteuid()); }

constexpr char kNotePrefix[] = "slurm-";
constexpr time_t kNoteSeconds = 60 * 86'400;  ///< longer than jobs

bool is_job_number(const char* text) {
  return *text != '\0' && strspn(text, "0123456789") == strlen(text);
}

}  // namespace

std::string runtime_folder() {
  const char* session = getenv("XDG_RUNTIME_DIR");
  const char* job = getenv("SLURM_JOB_ID");
  const bool is_job = job != nullptr && *job != '\0';
  if (session != nullptr && *session == '/' && strlen(session) <= kLongestSession &&
      !(is_job && goes_with_the_login(session)) && is_private_folder(session))
    return std::string(session) + "/aon";
  return folder_in_tmp();
}

Status make_runtime_folder(const std::string& dir) {
  if (mkdir(dir.c_str(), 0700) != 0 && errno != EEXIST)
    return Error{Code::kUnavailable, "cannot create " + dir + ": " + strerror(errno)};
  if (!is_private_folder(dir))
    return Error{Code::kUnavailable, dir + " is not a 0700 folder of this user; remove it"};
  return {};
}

Result<std::string> preloadable_folder(const std::string& library_dir) {
  if (library_dir.find_first_of(": ") == std::string::npos) return library_dir;
  const std::string folder = runtime_folder();
  if (Status status = make_runtime_folder(folder); !status) return status.error();
  const std::string path = folder + "/lib-" + name_hash(library_dir);
  if (symlink(library_dir.c_str(), path.c_str()) != 0 && !is_link_to(path, library_dir))
    return Error{Code::kUnavailable, "cannot link " + path + " to " + library_dir};
  return path;
}

// Not below XDG_RUNTIME_DIR: the Epilog has none, and it goes with the session.
std::string notes_folder() { return folder_in_tmp(); }

bool note_for_epilog(const char* job, const std::string& directory) {
  if (job == nullptr || !is_job_number(job)) return false;
  if (directory.find('\n') != std::string::npos || !make_runtime_folder(notes_folder()))
    return false;
  const std::string path = notes_folder() + "/" + kNotePrefix + job;
  const auto file = open_file(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW);
  const std::string line = directory + "\n";
  return file && write_all(file->get(), line.data(), line.size());
}

bool is_old_note(const std::string& folder, const std::string& name) {
  struct stat status {};
  return name.starts_with(kNotePrefix) && is_job_number(name.c_str() + strlen(kNotePrefix)) &&
         lstat((folder + "/" + name).c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         time(nullptr) - status.st_mtime > kNoteSeconds;
}

}  // namespace aon::launcher
