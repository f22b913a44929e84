/// The hidden folder in which a result is made, and its way into the job directory.
///
///     DIR/.assemble-PID/{traces.otf2, traces.def, traces.marker, traces/, profile.h5, aon.json}
///                                                                                   made, synced
///     DIR/.assemble-PID/old/...                                                  the older result
///
/// Owner: assemble(), under the lease.   Thread: one.
#pragma once

#include <cstdint>
#include <filesystem>

#include "core/base/result.h"

namespace aon::writers {

/// Removes what dead assemblers of this user left in `folder`; what others could have put there
/// stays.   Errors: kIo.
Status remove_stale_staging(const std::filesystem::path& folder);

/// Removes `path` with all that is below it. Files become empty first: what a failed writer has
/// open still would keep its room on the disk, which others may need.
void remove_with_room(const std::filesystem::path& path);

class Staging {
 public:
  /// Makes DIR/.assemble-PID (0700) and removes what dead assemblers left.   Errors: kIo.
  static Result<Staging> create(const std::filesystem::path& folder);

  Staging(Staging&& other) noexcept
      : folder_(std::move(other.folder_)), staging_(std::move(other.staging_)) {
    other.staging_.clear();
  }
  Staging& operator=(Staging&&) = delete;
  /// Removes the hidden folder with all that is still in it.
  ~Staging();

  const std::filesystem::path& path() const { return staging_; }

  /// Syncs every file and folder in it to disk and gives all of them their modes (0600, 0700).
  /// Returns their bytes.
  Result<uint64_t> sync();

  /// Moves every entry into the job directory; entries of the same name move out first, and those
  /// of the older archive go also when the new one has none. The anchor traces.otf2 comes last of
  /// the archive, aon.json last of all. Where one cannot be moved, the older result stays.
  Status publish();

  /// Takes an entry out of the job directory, whole or not at all. It goes with the hidden folder.
  void discard(const char* entry);

 private:
  Staging(std::filesystem::path folder, std::filesystem::path staging)
      : folder_(std::move(folder)), staging_(std::move(staging)) {}

  std::filesystem::path folder_;
  std::filesystem::path staging_;  ///< empty: moved from
};

/// Removes DIR/spool, and what its links point to where that is laid out as --spool-dir does
/// (aon-LAUNCH/NODE) in folders of this user alone; the folder of the launch goes when it is empty.
void remove_spool(const std::filesystem::path& folder);

}  // namespace aon::writers
