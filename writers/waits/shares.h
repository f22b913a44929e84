/// Waiting time in an assembly in shares (writers/assemble/shares.h). The two ends of a message are
/// events of two shares, so each share sends what it finds to the share that matches it: ends of
/// messages to that of the receiver, members of collectives to one by the collective's number.
/// That one sends the waits it finds to the share of the process that waited.
///
///     pass 1     WaitShare::write()  -> ends.I    of share I, for all others
///     match      match_share()       -> waits.I   the same; needs all ends.*
///     pass 2     make_share_waits()               the waits of I's processes; needs all waits.*
///     combiner   load_wait_summary(), then the rows of pass 2
///
/// Thread: one.   Cost and memory: those of waits.h.   Errors: kIo, kDamaged.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "writers/waits/waits.h"

namespace aon::writers {

/// Which share has which group.
struct ShareMap {
  uint32_t count = 0;
  std::vector<uint32_t> of_group;  ///< by index in Model::groups

  std::vector<bool> groups_of(uint32_t share) const {
    std::vector<bool> is_own;
    for (const uint32_t one : of_group) is_own.push_back(one == share);
    return is_own;
  }
};

std::filesystem::path ends_file(const std::filesystem::path& folder, uint32_t share);
std::filesystem::path waits_file(const std::filesystem::path& folder, uint32_t share);

/// Of the events of its share. A writer that makes no files before write().
class WaitShare : public Writer {
 public:
  /// Instead of finish(): leaves ends_file(folder, share).
  virtual Status write(const std::filesystem::path& folder, uint32_t share) = 0;
};
/// Temporary files go to `scratch`. `shares` outlives it.
std::unique_ptr<WaitShare> make_wait_share(const std::filesystem::path& scratch,
                                           const ShareMap& shares, std::function<void()> beat);

/// Matches what all shares sent to `share`.
Status match_share(const Model& model, const ShareMap& shares, uint32_t share,
                   const std::filesystem::path& folder, const std::filesystem::path& scratch,
                   const std::function<void()>& beat);

/// The waits of the share's own processes: finished, with the rows of its summary alone.
Result<std::unique_ptr<WaitAnalysis>> make_share_waits(const ShareMap& shares, uint32_t share,
                                                       const std::filesystem::path& folder,
                                                       const std::filesystem::path& scratch,
                                                       const std::function<void()>& beat);

/// The sums of all shares: a summary without rows.
Result<WaitSummary> load_wait_summary(const ShareMap& shares, const std::filesystem::path& folder);

/// What the combiner has: a summary, and no calls.
std::unique_ptr<WaitAnalysis> make_loaded_waits(WaitSummary summary);

}  // namespace aon::writers
