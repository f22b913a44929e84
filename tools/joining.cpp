#include "tools/joining.h"

#include <aon/record.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include "core/base/file.h"
#include "core/base/unique_fd.h"
#include "core/spool/files.h"
#include "core/spool/job.h"

namespace aon::tools {
namespace {

namespace fs = std::filesystem;

constexpr char kOriginFile[] = "joined-from";
constexpr char kUnfinished[] = ".join-";  ///< begins the name of a folder that is being filled
constexpr int kMaxSameNames = 1000;

std::string origin_of(const fs::path& node) {
  const Result<std::string> text = read_text_file((node / kOriginFile).string());
  return text ? *text : std::string();
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
  std::string origin;  ///< real path of where it was joined from; empty for a node of its own
  std::string host;
  std::string launch_id;
  std::set<std::pair<int32_t, uint64_t>> processes;  ///< pid and start time
  std::set<uint32_t> evicted;                        ///< numbers of those that lost segments
  std::set<int64_t> ranks;
  uint32_t world = 0;  ///< 0 unknown
};

NodeFolder describe(const std::string& dir, const spool::Node& node) {
  NodeFolder folder{dir,
                    node.folder,
                    fs::canonical(node.folder),
                    origin_of(node.folder),
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

/// True when `held` is `wanted`, joined earlier: by the note of its origin, where no other launch
/// has that directory since, or, where directories have moved, because all that ran there are the
/// same processes.
bool is_same_node(const NodeFolder& held, const NodeFolder& wanted) {
  const bool have_ids = !held.launch_id.empty() && !wanted.launch_id.empty();
  const bool is_other = have_ids && held.launch_id != wanted.launch_id;
  // Launches of one script may have one id.
  if (held.origin == wanted.real_path && !is_other && includes_processes(wanted, held)) return true;
  const bool has_name = !wanted.launch_id.empty() || !wanted.processes.empty();
  return has_name && held.host == wanted.host && held.launch_id == wanted.launch_id &&
         includes_processes(held, wanted);
}

/// Which of `folders` is `wanted`; null for none.
const NodeFolder* find_held(const std::vector<NodeFolder>& folders, const NodeFolder& wanted) {
  const auto found = std::find_if(folders.begin(), folders.end(), [&](const NodeFolder& held) {
    return is_same_node(held, wanted);
  });
  return found == folders.end() ? nullptr : &*found;
}

/// Folders of one directory are of one launch, whatever they hold: without what was joined from the
/// one that has `others`.
std::vector<NodeFolder> without_joined(const std::vector<NodeFolder>& known,
                                       const std::vector<NodeFolder>& others) {
  std::vector<NodeFolder> rest;
  std::copy_if(known.begin(), known.end(), std::back_inserter(rest), [&](const NodeFolder& held) {
    return std::none_of(others.begin(), others.end(),
                        [&](const NodeFolder& other) { return is_same_node(held, other); });
  });
  return rest;
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

/// Of a copy that was made while the node was live.
bool is_older(const NodeFolder& wanted, const NodeFolder& held) {
  std::error_code error;
  const auto time = fs::last_write_time(wanted.path / spool::kDefinitionsFile, error);
  const bool is_known = !error;
  const auto held_time = fs::last_write_time(held.path / spool::kDefinitionsFile, error);
  return !includes_processes(wanted, held) || (is_known && !error && time < held_time);
}

/// A node may have been joined while it was live: it has other files since. Whatever is no copy is
/// left alone.
Status take_again(const NodeFolder& held, const NodeFolder& wanted) {
  const bool is_copy = !held.origin.empty() && wanted.origin.empty();
  if ((is_copy || held.origin == wanted.real_path) && !is_older(wanted, held))
    take_files(wanted.path, held.path, wanted.evicted);
  return {};
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

/// Puts the node folder `from` into `spool` under its own name, or with "~2", "~3", ... when
/// another folder has it.
Status join_node(const fs::path& from, const fs::path& spool) {
  for (int number = 1; number < kMaxSameNames; ++number) {
    const std::string suffix = number == 1 ? "" : fmt::format("~{}", number);
    const fs::path target = spool / (from.filename().string() + suffix);
    if (fs::exists(target)) continue;
    const fs::path fresh = spool / (kUnfinished + from.filename().string());
    fs::create_directory(fresh);
    fs::permissions(fresh, fs::perms::owner_all);
    take_files(from, fresh, {});
    // Without it a later join would leave alone what is here, as if it were no copy.
    Status status = write_origin(fresh / kOriginFile, fs::canonical(from).string());
    if (status) {
      fs::rename(fresh, target);
    } else {
      fs::remove_all(fresh);
    }
    return status;
  }
  return Error{Code::kInvalid, fmt::format("{} has too many nodes of one name", spool.string())};
}

/// Of every node folder of the other directories, in order: `visit_held(held, folder)` where the
/// first directory has it already, else `visit_new(folders of other launches so far, folder)`.
template <class VisitHeld, class VisitNew>
Status for_each_folder(const std::vector<std::string>& dirs, VisitHeld visit_held,
                       VisitNew visit_new) {
  if (dirs.size() < 2) return {};
  Result<std::vector<NodeFolder>> known = read_folders(dirs.front());
  if (!known) return known.error();
  for (size_t i = 1; i < dirs.size(); ++i) {
    if (fs::equivalent(dirs[i], dirs.front())) continue;
    Result<std::vector<NodeFolder>> others = read_folders(dirs[i]);
    if (!others) return others.error();
    const std::vector<NodeFolder> rest = without_joined(*known, *others);
    std::vector<NodeFolder> fresh;
    for (NodeFolder& folder : *others) {
      const NodeFolder* held = find_held(*known, folder);
      Status status = held != nullptr ? visit_held(*held, folder) : visit_new(rest, folder);
      if (!status) return status;
      if (held == nullptr) fresh.push_back(std::move(folder));
    }
    std::move(fresh.begin(), fresh.end(), std::back_inserter(*known));
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
  const auto compare = [](const std::vector<NodeFolder>& known,
                          const NodeFolder& folder) -> Status {
    for (const NodeFolder& held : known) {
      const std::optional<std::string> reason = contradiction(held, folder);
      if (!reason) continue;
      return Error{Code::kInvalid, fmt::format("{} and {} cannot be one launch: {}", held.dir,
                                               folder.dir, *reason)};
    }
    return {};
  };
  return guarded([&] { return for_each_folder(dirs, accept, compare); });
}

Status join_directories(const std::vector<std::string>& dirs) {
  return guarded([&] {
    const fs::path spool = fs::path(dirs.front()) / "spool";
    const auto join = [&](const std::vector<NodeFolder>&, const NodeFolder& folder) {
      return join_node(folder.path, spool);
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
