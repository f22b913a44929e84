#include "core/cluster/nccl_wish.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>

#include "core/base/containers.h"
#include "core/base/file.h"
#include "core/base/owner.h"

namespace aon::cluster {
namespace {

constexpr std::string_view kName = "aon-nccl-level ";
constexpr std::string_view kVersion = "1";
constexpr uint32_t kStampBits = 0x7fffffff;

/// Takes the next line off `text`. False: it is not whole.
bool take_line(std::string_view* text, std::string_view* line) {
  const size_t end = text->find('\n');
  if (end == std::string_view::npos) return false;
  *line = text->substr(0, end);
  text->remove_prefix(end + 1);
  return true;
}

/// The value of the next line, if that is "`name`value".
std::optional<std::string_view> take_value(std::string_view* text, std::string_view name) {
  std::string_view line;
  if (!take_line(text, &line) || !line.starts_with(name)) return std::nullopt;
  return line.substr(name.size());
}

std::optional<uint32_t> parse_stamp(std::string_view word) {
  uint32_t stamp = 0;
  const char* end = word.data() + word.size();
  const auto [rest, error] = std::from_chars(word.data(), end, stamp, 16);
  const bool is_stamp = error == std::errc() && rest == end && stamp != 0 && stamp <= kStampBits;
  return is_stamp ? std::optional(stamp) : std::nullopt;
}

uint32_t make_stamp() {
  uint32_t stamp = 0;
  if (getrandom(&stamp, sizeof stamp, GRND_NONBLOCK) != sizeof stamp) {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    stamp = static_cast<uint32_t>(now.tv_nsec) ^ static_cast<uint32_t>(getpid()) << 12;
  }
  return std::max(stamp & kStampBits, 1u);
}

UniqueFd open_folder(const std::string& dir) {
  return UniqueFd(open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

/// Makes `name` in `folder` with `text`. What a killed one left under that name goes.
Status make_file(int folder, const std::string& name, const std::string& text) {
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  UniqueFd file(openat(folder, name.c_str(), flags, 0600));
  if (!file && errno == EEXIST && unlinkat(folder, name.c_str(), 0) == 0)
    file.reset(openat(folder, name.c_str(), flags, 0600));
  if (!file) return errno_error("cannot make", name, errno);
  return write_all(file.get(), text.data(), text.size());
}

Error unusable(const std::string& dir, const std::string& why) {
  return {Code::kInvalid, dir + "/" + kNcclWishFile + " " + why + ": it is not heeded"};
}

}  // namespace

std::optional<NcclLevel> parse_nccl_level(std::string_view word) {
  for (const NcclLevel level :
       {NcclLevel::kApi, NcclLevel::kGpu, NcclLevel::kNet, NcclLevel::kStep}) {
    if (word == nccl_level_name(level)) return level;
  }
  return std::nullopt;
}

std::string format_nccl_wish(const NcclWish& wish) {
  char stamp[16];
  snprintf(stamp, sizeof stamp, "%08x", wish.stamp);
  return std::string(kName) + std::string(kVersion) + "\nlevel " + nccl_level_name(wish.level) +
         "\nstamp " + stamp + "\n";
}

Result<NcclWish> parse_nccl_wish(std::string_view text) {
  const auto version = take_value(&text, kName);
  if (!version) return Error{Code::kInvalid, "is no level of NCCL"};
  if (*version != kVersion) return Error{Code::kUnavailable, "is another version's"};
  const auto word = take_value(&text, "level ");
  const auto level = word ? parse_nccl_level(*word) : std::nullopt;
  if (!level) return Error{Code::kInvalid, "names no level: api, gpu, net or step"};
  const auto stamp_word = take_value(&text, "stamp ");
  const auto stamp = stamp_word ? parse_stamp(*stamp_word) : std::nullopt;
  if (!stamp) return Error{Code::kInvalid, "has no stamp"};
  return NcclWish{*level, *stamp, {}};
}

Result<NcclWish> write_nccl_wish(const std::string& dir, NcclLevel level) {
  const UniqueFd folder = open_folder(dir);
  if (!folder) return errno_error("cannot open", dir, errno);
  if (!is_of_this_user(folder.get()))
    return Error{Code::kUnavailable, dir + " is another user's: its agents heed only that one"};
  const NcclWish wish{level, make_stamp(), {}};
  const std::string name =
      "." + std::string(kNcclWishFile) + "-" + host_of_pids() + "-" + std::to_string(getpid());
  Status status = make_file(folder.get(), name, format_nccl_wish(wish));
  if (status && renameat(folder.get(), name.c_str(), folder.get(), kNcclWishFile) != 0)
    status = errno_error("cannot replace", dir + "/" + kNcclWishFile, errno);
  if (status) return wish;
  unlinkat(folder.get(), name.c_str(), 0);
  return Error{status.error().code, dir + ": " + status.error().message};
}

bool NcclWishFile::has_changed(const struct stat& status) {
  const bool is_known = status.st_ino == known_.st_ino && status.st_size == known_.st_size &&
                        status.st_mtim.tv_sec == known_.st_mtim.tv_sec &&
                        status.st_mtim.tv_nsec == known_.st_mtim.tv_nsec &&
                        status.st_ctim.tv_sec == known_.st_ctim.tv_sec &&
                        status.st_ctim.tv_nsec == known_.st_ctim.tv_nsec;
  known_ = status;
  return !is_known;
}

Result<std::optional<NcclWish>> NcclWishFile::look() {
  if (!folder_) folder_ = open_folder(dir_);
  struct stat status {};
  // A directory that is gone, or not there for a moment, asks for nothing new.
  if (!folder_ || fstatat(folder_.get(), kNcclWishFile, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
      !has_changed(status))
    return wish_;
  Result<NcclWish> wish = read();
  if (wish) {
    wish_ = *wish;
    told_error_.clear();
    return wish_;
  }
  if (wish.error().code != Code::kInvalid) known_ = {};  // tried again
  if (wish.error().message == told_error_) return wish_;
  told_error_ = wish.error().message;
  return wish.error();
}

Result<NcclWish> NcclWishFile::read() const {
  const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  const UniqueFd file(openat(folder_.get(), kNcclWishFile, flags));
  if (!file && errno == ELOOP) return unusable(dir_, "is a link");
  if (!file) return errno_error("cannot open", dir_ + "/" + kNcclWishFile, errno);
  struct stat status {};
  if (fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))
    return unusable(dir_, "is no file");
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0 || !is_of_this_user(folder_.get(), file.get()))
    return unusable(dir_, "is not this user's alone");
  char text[kMaxNcclWishBytes + 1];
  const Result<size_t> bytes = read_at(file.get(), text, sizeof text, 0);
  if (!bytes) return bytes.error();
  if (*bytes > kMaxNcclWishBytes) return unusable(dir_, "is too long");
  Result<NcclWish> wish = parse_nccl_wish({text, *bytes});
  if (!wish) return unusable(dir_, wish.error().message);
  wish->time = status.st_mtim;
  return wish;
}

}  // namespace aon::cluster
