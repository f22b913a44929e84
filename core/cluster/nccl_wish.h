/// DIR/nccl.level: the level of NCCL that the user asks the agents of a running job for. It is
/// written by `aon level`, and each agent looks for it:
///
///     aon-nccl-level 1
///     level net
///     stamp 1a2b3c4d          another one each time, so that the same level can be asked for again
///
/// 0600, put into place whole, at most kMaxNcclWishBytes. It is untrusted: no link is followed, and
/// it has to be this user's, as the file system shows it or with its folder (core/base/owner.h),
/// and nobody else's to write. Lines behind these are for later versions.
/// Thread: a value, one owner.   Cost: one stat() where nothing has changed, also while there is no
/// such file.
#pragma once

#include <aon/nccl_level.h>
#include <sys/stat.h>

#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/base/unique_fd.h"

namespace aon::cluster {

constexpr char kNcclWishFile[] = "nccl.level";
constexpr size_t kMaxNcclWishBytes = 512;

struct NcclWish {
  NcclLevel level = NcclLevel::kApi;
  uint32_t stamp = 0;  ///< never 0; without the highest bit, which mode words have for pauses
  timespec time{};     ///< of the file
};

/// api, gpu, net or step; nothing for other words.
std::optional<NcclLevel> parse_nccl_level(std::string_view word);

std::string format_nccl_wish(const NcclWish& wish);
/// Errors: kInvalid, with what is wrong; kUnavailable: a later version's.
Result<NcclWish> parse_nccl_wish(std::string_view text);

/// Asks for `level`: replaces the file.   Errors: kUnavailable: another user's folder; kIo.
Result<NcclWish> write_nccl_wish(const std::string& dir, NcclLevel level);

/// The file of one directory, for who asks again and again.
class NcclWishFile {
 public:
  explicit NcclWishFile(std::string dir) : dir_(std::move(dir)) {}

  /// What is asked for; nothing where nobody has asked. A file that cannot be used changes nothing.
  /// Errors: kInvalid, kIo: once for each such file, or as long as the reason is the same.
  Result<std::optional<NcclWish>> look();

 private:
  bool has_changed(const struct stat& status);
  Result<NcclWish> read() const;

  std::string dir_;
  UniqueFd folder_;       ///< which may be moved
  struct stat known_ {};  ///< of the last one that was looked into; st_ino 0: none
  std::optional<NcclWish> wish_;
  std::string told_error_;
};

}  // namespace aon::cluster
