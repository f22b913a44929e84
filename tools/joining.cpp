#include "tools/joining.h"

#include <aon/record.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "core/base/file.h"
#include "core/base/unique_fd.h"
#include "core/spool/files.h"
#include "core/spool/job.h"

namespace aon::tools {
namespace {

namespace fs = std::filesystem;

using spool::kOriginFile;
constexpr char kUnfinished[] = ".join-";  ///< begins the name of a folder that is being filled
constexpr int kMaxSameNames = 1000;

/// What the note in a node folder says: a path, or kBroughtOrigin, which may have one behind it on
/// a line of its own.
struct Origin {
  std::string path;
  bool is_brought = false;
};

Origin origin_of(const fs::path& node) {
  const Result<std::string> text = read_text_file((node / kOriginFile).string());
  const std::string brought = spool::kBroughtOrigin;
  if (!text) return {};
  if (*text == brought) return {"", true};
  if (text->starts_with(brought + "\n")) return {text->substr(brought.size() + 1), true};
  return {*text, false};
}

/// MPI knows better than the environment, as in the model (writers/assemble/groups.cpp).
int64_t rank_of(const spool::Process& process) {
  return process.identity ? process.identity->rank : process.start.rank;
}

uint32_t world_of(const spool::Process& process) {
  return process.identity ? process.identity->world_size : process.start.world_size;
}

/// One node folder of a spool, and what it knows of its launch.
struct NodeFolder {
  std::string dir;  ///< job directory that holds it
  fs::path path;
  std::string real_path;
  std::string origin;  ///< real path of where it was joined from; empty: of nowhere
  bool is_brought;     ///< by a courier (core/delivery), which may have been lost before its end
  std::string host;
  std::string launch_id;
  std::set<std::pair<int32_t, uint64_t>> processes;  ///< pid and start time
  std::set<uint32_t> evicted;                        ///< numbers of those that lost segments
  std::set<int64_t> ranks;
  uint32_t world = 0;  ///< 0 unknown
};

NodeFolder describe(const std::string& dir, const spool::Node& node) {
  Origin origin = origin_of(node.folder);
  NodeFolder folder{dir,
                    node.folder,
                    fs::canonical(node.folder),
                    std::move(origin.path),
                    origin.is_brought,
                    node.host,
                    node.launch_id,
                    {},
                    {},
                    {},
                    0};
  for (const auto& [number, process] : node.processes) {
    folder.processes.insert({process.start.pid, process.start.start_time_ticks});
    const bool has_evictions =
        std::any_of(process.losses.begin(), process.losses.end(), [](const LossDefinition& loss) {
          return loss.reason == static_cast<uint32_t>(LossReason::kEvictedByCap);
        });
    if (has_evictions) folder.evicted.insert(number);
    if (rank_of(process) >= 0) folder.ranks.insert(rank_of(process));
    folder.world = std::max(folder.world, world_of(process));
  }
  return folder;
}

Result<std::vector<NodeFolder>> read_folders(const std::string& dir) {
  for (const spool::MissingLink& missing : spool::find_missing_links(dir))
    return Error{Code::kNotFound, spool::describe(missing)};
  const Result<spool::Job> job = spool::read_job(dir);
  if (!job) return job.error();
  std::vector<NodeFolder> folders;
  for (const spool::Node& node : job->nodes) folders.push_back(describe(dir, node));
  return folders;
}

bool includes_processes(const NodeFolder& all, const NodeFolder& some) {
  return std::includes(all.processes.begin(), all.processes.end(), some.processes.begin(),
                       some.processes.end());
}

/// Where its node has recorded.
bool is_own(const NodeFolder& folder) { return folder.origin.empty() && !folder.is_brought; }

/// Where the node of `folder` was recorded, or brought to, as far as is known.
const std::string& source_of(const NodeFolder& folder) {
  return folder.origin.empty() ? folder.real_path : folder.origin;
}

/// Whether the note of `held` names `wanted`, or what that is a copy of.
bool names_origin(const NodeFolder& held, const NodeFolder& wanted) {
  return !held.origin.empty() &&
         (held.origin == wanted.real_path || held.origin == source_of(wanted));
}

std::string name_of(const NodeFolder& folder) {
  return fs::path(source_of(folder)).filename().string();
}

/// Was made of a ring (writers/assemble/fallback.h): of its process an agent may have seen the end,
/// and have it in another folder.
bool is_of_ring(const NodeFolder& folder) {
  return name_of(folder).find("~fallback-") != std::string::npos;
}

/// What came without a process says no more of itself than its name.
bool may_be_part_of(const NodeFolder& held, const NodeFolder& wanted) {
  return !held.processes.empty() || name_of(held) == name_of(wanted);
}

/// What was brought is part of what lies where it was recorded, as long as it does, and of a copy
/// of that.
bool is_brought_from(const NodeFolder& held, const NodeFolder& wanted) {
  return held.is_brought && !wanted.is_brought && held.host == wanted.host &&
         may_be_part_of(held, wanted) &&
         (held.launch_id.empty() || held.launch_id == wanted.launch_id) &&
         includes_processes(wanted, held);
}

/// True when `held` is `wanted`, joined earlier: by the note of its origin, where no other launch
/// has that directory since, or, where directories have moved, because all that ran there are the
/// same processes, or the first of them.
bool is_same_node(const NodeFolder& held, const NodeFolder& wanted) {
  const bool have_ids = !held.launch_id.empty() && !wanted.launch_id.empty();
  const bool is_other = have_ids && held.launch_id != wanted.launch_id;
  // Launches of one script may have one id.
  if (names_origin(held, wanted) && !is_other && includes_processes(wanted, held)) return true;
  if (is_brought_from(held, wanted)) return true;
  const bool has_name = !wanted.launch_id.empty() || !wanted.processes.empty();
  if (!has_name || held.host != wanted.host || held.launch_id != wanted.launch_id) return false;
  const bool is_older_copy =
      !is_own(held) && !held.processes.empty() && includes_processes(wanted, held);
  return is_older_copy || includes_processes(held, wanted);
}

/// Why the two cannot be of one launch; nothing when they can.
std::optional<std::string> contradiction(const NodeFolder& a, const NodeFolder& b) {
  if (a.host == b.host) return fmt::format("both hold host {}", a.host);
  for (const int64_t rank : a.ranks) {
    if (b.ranks.count(rank) != 0)
      return fmt::format("both have a rank {}, on {} and on {}", rank, a.host, b.host);
  }
  if (a.world != 0 && b.world != 0 && a.world != b.world)
    return fmt::format("one is of {} ranks, the other of {} ranks", a.world, b.world);
  return std::nullopt;
}

/// Node folders that are in the first directory or come into it, found by what two of them may have
/// in common: there may be thousands.
class KnownFolders {
 public:
  explicit KnownFolders(std::vector<NodeFolder> folders) {
    for (NodeFolder& folder : folders) add(std::move(folder));
  }

  void add(NodeFolder folder) {
    const size_t place = folders_.size();
    by_host_[folder.host].push_back(place);
    if (!folder.origin.empty()) by_origin_[folder.origin].push_back(place);
    by_world_[folder.world].push_back(place);
    for (const int64_t rank : folder.ranks) by_rank_[rank].push_back(place);
    folders_.push_back(std::move(folder));
  }
  NodeFolder& operator[](size_t place) { return folders_[place]; }

  /// Of `places`, without a ring's folder for another, or another for a ring's.
  std::set<size_t> of_one_kind(std::set<size_t> places, const NodeFolder& wanted) const {
    std::erase_if(places,
                  [&](size_t place) { return is_of_ring(folders_[place]) != is_of_ring(wanted); });
    return places;
  }

  /// All that are `wanted`, the first one first.
  std::set<size_t> held(const NodeFolder& wanted) const {
    std::set<size_t> places;
    const auto look_at = [&](const auto& index, const auto& key) {
      const auto found = index.find(key);
      if (found == index.end()) return;
      for (const size_t place : found->second) {
        if (is_same_node(folders_[place], wanted)) places.insert(place);
      }
    };
    look_at(by_origin_, wanted.real_path);
    look_at(by_origin_, source_of(wanted));
    look_at(by_host_, wanted.host);
    return places;
  }

  /// What cannot be of one launch with `folder`, the first of all but `left_out`, and why.
  std::optional<std::pair<const NodeFolder*, std::string>> contradiction_to(
      const NodeFolder& folder, const std::set<size_t>& left_out) const {
    size_t first = folders_.size();
    const auto look_at = [&](const std::vector<size_t>& places) {
      for (const size_t place : places) {
        if (place >= first) break;
        if (left_out.count(place) == 0) first = place;
      }
    };
    if (const auto found = by_host_.find(folder.host); found != by_host_.end())
      look_at(found->second);
    for (const int64_t rank : folder.ranks) {
      if (const auto found = by_rank_.find(rank); found != by_rank_.end()) look_at(found->second);
    }
    for (const auto& [world, places] : by_world_) {
      if (world != 0 && folder.world != 0 && world != folder.world) look_at(places);
    }
    if (first == folders_.size()) return std::nullopt;
    return std::pair(&folders_[first], *contradiction(folders_[first], folder));
  }

 private:
  std::vector<NodeFolder> folders_;
  std::unordered_map<std::string, std::vector<size_t>> by_host_;  ///< places, ascending
  std::unordered_map<std::string, std::vector<size_t>> by_origin_;
  std::unordered_map<int64_t, std::vector<size_t>> by_rank_;
  std::map<uint32_t, std::vector<size_t>> by_world_;
};

/// Whether `copy` is a link to `file`, or was copied from it as it is now.
bool is_as_now(const fs::path& copy, const fs::path& file) {
  std::error_code error;
  if (fs::equivalent(file, copy, error)) return true;
  const uintmax_t byte_count = fs::file_size(copy, error);
  if (error || fs::file_size(file, error) != byte_count) return false;
  return fs::last_write_time(file, error) == fs::last_write_time(copy, error) && !error;
}

/// Links `file` to `target`, or copies it where links are not possible.
void take_file(const fs::path& file, const fs::path& target) {
  if (is_as_now(target, file)) return;
  const fs::path fresh = target.parent_path() / (kUnfinished + target.filename().string());
  std::error_code error;
  fs::create_hard_link(file, fresh, error);
  if (error == std::errc::no_such_file_or_directory) return;  // a live agent has replaced it
  if (error) {
    const fs::file_time_type time = fs::last_write_time(file);
    fs::copy_file(file, fresh);
    fs::last_write_time(fresh, time);
  }
  fs::rename(fresh, target);
}

/// A ring of the node folder `to` that became a folder of its own (writers/assemble/fallback.h).
bool is_converted(const fs::path& to, const fs::path& file) {
  return file.extension() == ".ring" &&
         fs::exists(to.parent_path() / (to.filename().string() + "~" + file.stem().string()));
}

/// Puts what the node folder `from` has now into `to`. Definitions come last, as they are written:
/// what they tell of is there. Segments that `from` has no more go where its processes `evicted`
/// some; else they were lost there, and these are all that is left of them.
void take_files(const fs::path& from, const fs::path& to, const std::set<uint32_t>& evicted) {
  std::set<fs::path> names;
  for (const auto& file : fs::directory_iterator(from)) {
    const fs::path name = file.path().filename();
    if (file.is_regular_file() && name != kOriginFile && !is_converted(to, name))
      names.insert(name);
  }
  const bool has_definitions = names.erase(spool::kDefinitionsFile) != 0;
  for (const fs::path& name : names) take_file(from / name, to / name);
  if (!has_definitions) return;
  take_file(from / spool::kDefinitionsFile, to / spool::kDefinitionsFile);
  std::vector<fs::path> gone;
  for (const auto& file : fs::directory_iterator(to)) {
    const fs::path name = file.path().filename();
    const auto segment = spool::parse_segment_file_name(name.string());
    if (segment && evicted.count(segment->process) != 0 && names.count(name) == 0)
      gone.push_back(file.path());
  }
  for (const fs::path& segment : gone) fs::remove(segment);
}

/// Of a copy that was made while the node was live. The times of what was brought are those of its
/// arrival, but definitions grow.
bool is_older(const NodeFolder& wanted, const NodeFolder& held) {
  std::error_code error;
  if (is_brought_from(held, wanted)) {
    const uintmax_t held_bytes = fs::file_size(held.path / spool::kDefinitionsFile, error);
    if (error || is_own(wanted)) return false;
    return fs::file_size(wanted.path / spool::kDefinitionsFile, error) < held_bytes || error;
  }
  const auto time = fs::last_write_time(wanted.path / spool::kDefinitionsFile, error);
  const bool is_known = !error;
  const auto held_time = fs::last_write_time(held.path / spool::kDefinitionsFile, error);
  return !includes_processes(wanted, held) || (is_known && !error && time < held_time);
}

/// What a join left that was interrupted: no reader takes it for a node, or for a file of one.
void remove_unfinished(const fs::path& spool) {
  std::vector<fs::path> unfinished;
  for (fs::recursive_directory_iterator at(spool), end; at != end; ++at) {
    if (!at->path().filename().string().starts_with(kUnfinished)) continue;
    unfinished.push_back(at->path());
    at.disable_recursion_pending();
  }
  for (const fs::path& path : unfinished) fs::remove_all(path);
}

Status write_origin(const fs::path& file, const std::string& origin) {
  const Result<UniqueFd> fd = open_file(file.string(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW);
  if (!fd) return fd.error();
  Status status = write_all(fd->get(), origin.data(), origin.size());
  if (status) return status;
  return Error{status.error().code, file.string() + ": " + status.error().message};
}

/// A node may have been joined while it was live: it has other files since. Whatever is no copy is
/// left alone. What was brought is a copy like any other when all of it has come.
Status take_again(const NodeFolder& held, const NodeFolder& wanted) {
  const bool is_part = is_brought_from(held, wanted);
  const bool is_copy = !is_own(held) && is_own(wanted);
  if (!(is_part || is_copy || names_origin(held, wanted)) || is_older(wanted, held)) return {};
  take_files(wanted.path, held.path, wanted.evicted);
  if (!is_part) return {};
  const fs::path fresh = held.path / (std::string(kUnfinished) + kOriginFile);
  Status status = write_origin(fresh, source_of(wanted));
  if (status) fs::rename(fresh, held.path / kOriginFile);
  return status;
}

/// Puts `folder` into `spool` of the job directory `dir` under its own name, or with "~2", "~3" ...
/// when another folder has it. It is that one then, and what comes later is compared with it.
Status join_node(const std::string& dir, const fs::path& spool, NodeFolder* folder) {
  const fs::path from = folder->path;
  for (int number = 1; number < kMaxSameNames; ++number) {
    const std::string suffix = number == 1 ? "" : fmt::format("~{}", number);
    const fs::path target = spool / (from.filename().string() + suffix);
    if (fs::exists(target)) continue;
    const fs::path fresh = spool / (kUnfinished + from.filename().string());
    fs::create_directory(fresh);
    fs::permissions(fresh, fs::perms::owner_all);
    take_files(from, fresh, {});
    // Without it a later join would leave alone what is here, as if it were no copy. Of a copy it
    // is where that came from: there is what came since.
    folder->origin = source_of(*folder);
    const std::string brought = folder->is_brought ? spool::kBroughtOrigin + std::string("\n") : "";
    Status status = write_origin(fresh / kOriginFile, brought + folder->origin);
    if (!status) {
      fs::remove_all(fresh);
      return status;
    }
    fs::rename(fresh, target);
    folder->dir = dir;
    folder->path = target;
    folder->real_path = fs::canonical(target).string();
    return status;
  }
  return Error{Code::kInvalid, fmt::format("{} has too many nodes of one name", spool.string())};
}

/// Of every node folder of the other directories, in order: `visit_held(held, folder)` where the
/// first directory has it already, else `visit_new(known, left_out, &folder)`: what is known of
/// other launches so far is all but `left_out`. Folders of one directory are of one launch with all
/// they hold, and with what was joined from it.
template <class VisitHeld, class VisitNew>
Status for_each_folder(const std::vector<std::string>& dirs, VisitHeld visit_held,
                       VisitNew visit_new) {
  if (dirs.size() < 2) return {};
  Result<std::vector<NodeFolder>> first = read_folders(dirs.front());
  if (!first) return first.error();
  KnownFolders known(std::move(*first));
  for (size_t i = 1; i < dirs.size(); ++i) {
    if (fs::equivalent(dirs[i], dirs.front())) continue;
    Result<std::vector<NodeFolder>> others = read_folders(dirs[i]);
    if (!others) return others.error();
    std::vector<std::set<size_t>> held;
    std::set<size_t> left_out;
    for (const NodeFolder& folder : *others) {
      const std::set<size_t> places = known.held(folder);
      left_out.insert(places.begin(), places.end());
      held.push_back(known.of_one_kind(places, folder));
    }
    std::vector<NodeFolder> fresh;
    for (size_t at = 0; at < others->size(); ++at) {
      NodeFolder& folder = (*others)[at];
      const bool is_held = !held[at].empty();
      Status status = is_held ? visit_held(known[*held[at].begin()], folder)
                              : visit_new(known, left_out, &folder);
      if (!status) return status;
      if (!is_held) {
        fresh.push_back(std::move(folder));
      } else if (NodeFolder& one = known[*held[at].begin()]; includes_processes(folder, one)) {
        one.processes = folder.processes;  // it has these now
      }
    }
    for (NodeFolder& folder : fresh) known.add(std::move(folder));
  }
  return {};
}

template <class Call>
Status guarded(Call call) {
  try {
    return call();
  } catch (const fs::filesystem_error& error) {
    return Error{Code::kIo, error.what()};
  }
}

}  // namespace

Status check_one_launch(const std::vector<std::string>& dirs) {
  const auto accept = [](const NodeFolder&, const NodeFolder&) -> Status { return {}; };
  const auto compare = [](const KnownFolders& known, const std::set<size_t>& left_out,
                          const NodeFolder* folder) -> Status {
    const auto found = known.contradiction_to(*folder, left_out);
    if (!found) return {};
    return Error{Code::kInvalid, fmt::format("{} and {} cannot be one launch: {}",
                                             found->first->dir, folder->dir, found->second)};
  };
  return guarded([&] { return for_each_folder(dirs, accept, compare); });
}

Status join_directories(const std::vector<std::string>& dirs) {
  return guarded([&] {
    const fs::path spool = fs::path(dirs.front()) / "spool";
    const auto join = [&](const KnownFolders&, const std::set<size_t>&, NodeFolder* folder) {
      return join_node(dirs.front(), spool, folder);
    };
    remove_unfinished(spool);
    try {
      return for_each_folder(dirs, take_again, join);
    } catch (const fs::filesystem_error&) {  // a full disk gets its room back
      remove_unfinished(spool);
      throw;
    }
  });
}

}  // namespace aon::tools
