#include "tools/job_folder.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

#include "core/base/file.h"
#include "core/base/unique_fd.h"
#include "tools/ledger_summary.h"

namespace aon::tools {
namespace {

std::string owner_of(const struct stat& status) {
  const passwd* owner = getpwuid(status.st_uid);
  return owner != nullptr ? owner->pw_name : "user " + std::to_string(status.st_uid);
}

/// Behind the name of a directory without profile.h5.
std::string what_to_do(const std::string& dir) {
  const Result<nlohmann::json> ledger = read_ledger(dir);
  if (ledger && ledger->value("ranks", nlohmann::json::array()).empty())
    return ", for nothing was recorded; why: aon info " + dir;
  return "; run: aon finalize " + dir;
}

}  // namespace

std::string without_spool(const std::string& dir) {
  std::error_code ignored;
  return std::filesystem::exists(dir + "/.launch", ignored)
             ? ": nothing was recorded: there was no agent, and no process made an event"
             : " has no spool/: it is no job directory";
}

Status find_part(const std::string& dir, const std::string& part) {
  struct stat status {};
  const auto denied = [&] {
    return Error{Code::kUnavailable,
                 dir + ": permission denied, it belongs to " + owner_of(status)};
  };
  if (stat(dir.c_str(), &status) != 0) {
    if (errno == ENOENT) return Error{Code::kInvalid, dir + ": no such directory"};
    return errno_error("open", dir, errno);
  }
  if (!S_ISDIR(status.st_mode)) return Error{Code::kInvalid, dir + " is no directory"};
  const std::string path = dir + "/" + part;
  if (UniqueFd(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC))) return {};
  const int error = errno;
  if (error == ENOENT || error == ENOTDIR) return Error{Code::kNotFound, dir + " has no " + part};
  if (error != EACCES && error != EPERM) return errno_error("open", path, error);
  struct stat of_part {};
  if (stat(path.c_str(), &of_part) == 0) status = of_part;
  return denied();
}

Status find_profile(const std::string& dir) {
  if (const Status part = find_part(dir, "profile.h5"); !part)
    return part.error().code == Code::kNotFound
               ? Error{Code::kNotFound, part.error().message + what_to_do(dir)}
               : part.error();
  const std::filesystem::path file = std::filesystem::path(dir) / "profile.h5";
  std::error_code ignored;
  if (std::filesystem::is_regular_file(file, ignored)) return {};
  return Error{Code::kInvalid, file.string() + " is no file"};
}

std::string printable(std::string line) {
  for (size_t i = 0; i < line.size(); ++i) {
    const auto byte = static_cast<uint8_t>(line[i]);
    if (byte < 0x20 || byte == 0x7f) line[i] = '?';
    // U+0080 to U+009F are controls, too.
    const bool is_second = i != 0 && static_cast<uint8_t>(line[i - 1]) == 0xc2;
    if (is_second && byte >= 0x80 && byte < 0xa0) line[i - 1] = line[i] = '?';
  }
  return line;
}

}  // namespace aon::tools
