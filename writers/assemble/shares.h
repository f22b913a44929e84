/// An assembly in shares: N processes, on one node or on all of a job's, each go through the events
/// of their own groups; one, the combiner, makes the result from what they hand over. It never
/// sees their events: its work grows with definitions. All go on in steps, each of which begins
/// when the files of the one before are there:
///
///     combiner   plan                        who has which groups, options, call paths
///     share I    ends.I, first.I             ends of messages for the others; candidates of steps
///     combiner   steps                       the loops that all ranks have agreed on
///     share I    waits.I                     matched; needs all ends.*
///     share I    second.I, I's folder        what its writers know; event files, series
///     combiner   traces.otf2, profile.h5, aon.json ...
///
/// They lie in DIR/.assemble-shares (core/spool/files.h), all but the plan in a folder of this
/// assembly alone. A file appears whole (writers/share/files.h) and holds the same whoever made it,
/// so the combiner may do a share again of which nothing is heard any more.
/// The result is the same as that of one process, but for the series, which lie in files of the
/// shares behind links.
/// Thread: one each.   Cost: tests/bench/assemble.
/// Errors: kIo, kDamaged: then one process does all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "writers/assemble/model.h"
#include "writers/assemble/writer_set.h"
#include "writers/state.h"
#include "writers/waits/shares.h"

namespace aon::writers {

constexpr uint32_t kMaxShares = 65536;

struct SharePlan {
  ShareMap map;
  std::vector<std::string> names;  ///< of the shares: their nodes'
  uint32_t otf2_locations = kDefaultOtf2Locations;
  uint64_t archive_start_ns = 0;
  uint64_t fingerprint = 0;  ///< of the model
  std::string folder;        ///< of this assembly, beside the plan
  WriterPlan writers;
};

/// What all processes must agree on before one uses the numbers of another.
uint64_t model_fingerprint(const JobModel& parts);

/// Groups by their node; `names` are those of Model::job.nodes' folders.
SharePlan plan_by_node(const JobModel& parts);
/// Groups evenly over `count` shares.
SharePlan plan_evenly(const JobModel& parts, uint32_t count);

/// In the folder `shares`. With the model's call paths: these are looked up once.
Status write_plan(const std::filesystem::path& shares, const SharePlan& plan, const Model& model);
/// Reads the plan alone; then, with the model that was made without call paths, the rest of it.
Result<SharePlan> read_plan(const std::filesystem::path& shares);
Status read_call_paths(const std::filesystem::path& shares, Model* model);

inline std::filesystem::path share_file(const std::filesystem::path& work, const char* name,
                                        uint32_t share) {
  return work / (std::string(name) + "." + std::to_string(share));
}
inline std::filesystem::path first_file(const std::filesystem::path& work, uint32_t share) {
  return share_file(work, "first", share);
}
inline std::filesystem::path second_file(const std::filesystem::path& work, uint32_t share) {
  return share_file(work, "second", share);
}
inline std::filesystem::path steps_file(const std::filesystem::path& work) {
  return work / "steps";
}

/// Key of what is about a whole share in its second file; groups have their index.
constexpr uint64_t kWholeShare = UINT64_MAX;

/// Waits until a file is there. Who waits in vain is ended from outside (share_crew.h).
using FileWaiter = std::function<Status(const std::filesystem::path& path)>;

/// Does one share, from its first file to its second.
Status work_on_share(const JobModel& parts, const SharePlan& plan, uint32_t share,
                     const std::filesystem::path& work, const FileWaiter& wait,
                     const std::function<void()>& beat);

}  // namespace aon::writers
