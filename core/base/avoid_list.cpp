#include "core/base/avoid_list.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "core/base/account.h"
#include "core/base/file.h"
#include "core/base/owner.h"

namespace aon {
namespace {

constexpr size_t kMaxBytes = 256 << 10;

std::string line_of(const AvoidedProgram& entry) {
  return entry.version + "\t" + entry.date + "\t" + entry.place + "\t" + entry.program + "\n";
}

bool parse(std::string_view line, AvoidedProgram* entry) {
  std::string* const parts[] = {&entry->version, &entry->date, &entry->place};
  for (std::string* part : parts) {
    const size_t tab = line.find('\t');
    if (tab == std::string_view::npos) return false;
    *part = std::string(line.substr(0, tab));
    line.remove_prefix(tab + 1);
  }
  entry->program = std::string(line);
  return !entry->program.empty();
}

std::string today() {
  char text[16] = "";
  const time_t now = time(nullptr);
  tm parts{};
  if (gmtime_r(&now, &parts) != nullptr) strftime(text, sizeof(text), "%Y-%m-%d", &parts);
  return text;
}

/// ~/.config may be missing.
Status make_folders(const std::string& path) {
  for (size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1)) {
    const std::string folder = path.substr(0, at);
    if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
      return errno_error("cannot make", folder, errno);
  }
  return {};
}

bool is_own(int fd, const std::string& path) {
  struct stat status {};
  return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
         (status.st_mode & (S_IWGRP | S_IWOTH)) == 0 && is_own_file(fd, path);
}

}  // namespace

std::string resolved_program(const std::string& program) {
  char buffer[PATH_MAX];
  return realpath(program.c_str(), buffer) == nullptr ? program : std::string(buffer);
}

std::string AvoidList::default_path() {
  const char* config = secure_getenv("XDG_CONFIG_HOME");
  if (config != nullptr && config[0] == '/') return std::string(config) + "/aon/avoid";
  const Result<std::string> home = home_folder();
  return home ? *home + "/.config/aon/avoid" : "";
}

Result<std::vector<AvoidedProgram>> AvoidList::read() const {
  std::vector<AvoidedProgram> entries;
  if (path_.empty()) return entries;
  auto file = open_file(path_, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!file && file.error().code == Code::kNotFound) return entries;
  if (!file) return file.error();
  if (!is_own(file->get(), path_))
    return Error{Code::kInvalid, path_ + " is not this user's alone: it is not used"};
  std::string text(kMaxBytes, '\0');
  const Result<size_t> bytes = read_at(file->get(), text.data(), text.size(), 0);
  if (!bytes) return bytes.error();
  text.resize(*bytes);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    AvoidedProgram entry;
    if (parse(std::string_view(text).substr(at, end - at), &entry)) entries.push_back(entry);
    at = end + 1;
  }
  return entries;
}

bool AvoidList::holds(std::string_view program, AvoidedProgram* found) const {
  const auto entries = read();
  if (!entries) return false;
  const auto entry = std::find_if(entries->begin(), entries->end(), [&](const auto& one) {
    return one.program == program && one.version == AON_VERSION;
  });
  if (entry == entries->end()) return false;
  if (found != nullptr) *found = *entry;
  return true;
}

Status AvoidList::add(const std::string& program, const std::string& place) {
  if (path_.empty()) return Error{Code::kUnavailable, "no home directory to keep a list in"};
  if (program.empty() || (program + place).find_first_of("\t\n") != std::string::npos)
    return Error{Code::kInvalid, "'" + program + "' cannot stand in a list"};
  if (Status status = make_folders(path_); !status) return status;
  auto file = open_file(path_, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK);
  if (!file) return file.error();
  if (!is_own(file->get(), path_))
    return Error{Code::kInvalid, path_ + " is not this user's alone: it is not used"};
  ::flock(file->get(), LOCK_EX);  // of two that add, the second sees the first one's line
  if (holds(program)) return {};
  const std::string line = line_of({AON_VERSION, today(), place, program});
  return write_all(file->get(), line.data(), line.size());
}

Status AvoidList::remove(const std::string& program) {
  auto entries = read();
  if (!entries) return entries.error();
  const auto first = std::remove_if(entries->begin(), entries->end(),
                                    [&](const auto& one) { return one.program == program; });
  if (first == entries->end()) return Error{Code::kNotFound, program + " is not in " + path_};
  entries->erase(first, entries->end());
  const std::string fresh = path_ + "." + std::to_string(getpid());
  auto file = open_file(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW);
  if (!file) return file.error();
  std::string text;
  for (const AvoidedProgram& entry : *entries) text += line_of(entry);
  Status status = write_all(file->get(), text.data(), text.size());
  if (status && rename(fresh.c_str(), path_.c_str()) != 0)
    status = errno_error("cannot replace", path_, errno);
  if (!status) unlink(fresh.c_str());
  return status;
}

}  // namespace aon
