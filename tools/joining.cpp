#include "tools/joining.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>

#include "core/base/file.h"
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
  std::string host;
  std::string launch_id;
  std::set<std::pair<int32_t, uint64_t>> processes;  ///< pid and start time
  std::set<int64_t> ranks;
  uint32_t world = 0;  ///< 0 unknown
};

NodeFolder describe(const std::string& dir, const spool::Node& node) {
  NodeFolder folder{dir, node.folder, node.host, node.launch_id, {}, {}, 0};
  for (const auto& [number, process] : node.processes) {
    folder.processes.insert({process.start.pid, process.start.start_time_ticks});
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

/// True when `held` is `wanted`, joined earlier: by the note of its origin, or, where directories
/// have moved since, because all that ran there are the same processes.
bool is_same_node(const NodeFolder& held, const NodeFolder& wanted) {
  if (origin_of(held.path) == fs::canonical(wanted.path).string()) return true;
  const bool has_name = !wanted.launch_id.empty() || !wanted.processes.empty();
  return has_name && held.host == wanted.host && held.launch_id == wanted.launch_id &&
         std::includes(held.processes.begin(), held.processes.end(), wanted.processes.begin(),
                       wanted.processes.end());
}

bool holds(const std::vector<NodeFolder>& folders, const NodeFolder& wanted) {
  return std::any_of(folders.begin(), folders.end(),
                     [&](const NodeFolder& held) { return is_same_node(held, wanted); });
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

/// Links every file of `from` into `to`, or copies where links are not possible.
void link_files(const fs::path& from, const fs::path& to) {
  fs::create_directory(to);
  fs::permissions(to, fs::perms::owner_all);
  for (const auto& file : fs::directory_iterator(from)) {
    if (!file.is_regular_file()) continue;
    const fs::path target = to / file.path().filename();
    std::error_code error;
    fs::create_hard_link(file.path(), target, error);
    if (error) fs::copy_file(file.path(), target, fs::copy_options::overwrite_existing);
  }
}

/// What a join left that was interrupted: no reader takes it for a node.
void remove_unfinished(const fs::path& spool) {
  std::vector<fs::path> unfinished;
  for (const auto& entry : fs::directory_iterator(spool)) {
    if (entry.path().filename().string().starts_with(kUnfinished))
      unfinished.push_back(entry.path());
  }
  for (const fs::path& path : unfinished) fs::remove_all(path);
}

/// Puts the node folder `from` into `spool` under its own name, or with "~2", "~3", ... when
/// another folder has it.
Status join_node(const fs::path& from, const fs::path& spool) {
  for (int number = 1; number < kMaxSameNames; ++number) {
    const std::string suffix = number == 1 ? "" : fmt::format("~{}", number);
    const fs::path target = spool / (from.filename().string() + suffix);
    if (fs::exists(target)) continue;
    const fs::path fresh = spool / (kUnfinished + from.filename().string());
    link_files(from, fresh);
    std::ofstream(fresh / kOriginFile) << fs::canonical(from).string();
    fs::rename(fresh, target);
    return {};
  }
  return Error{Code::kInvalid, fmt::format("{} has too many nodes of one name", spool.string())};
}

/// Calls `visit(folders so far, folder)` for every node folder that is not in the first directory
/// yet, in order.
template <class Visit>
Status for_each_new_folder(const std::vector<std::string>& dirs, Visit visit) {
  if (dirs.size() < 2) return {};
  Result<std::vector<NodeFolder>> known = read_folders(dirs.front());
  if (!known) return known.error();
  for (size_t i = 1; i < dirs.size(); ++i) {
    if (fs::equivalent(dirs[i], dirs.front())) continue;
    Result<std::vector<NodeFolder>> others = read_folders(dirs[i]);
    if (!others) return others.error();
    std::vector<NodeFolder> fresh;
    for (NodeFolder& folder : *others) {
      if (holds(*known, folder)) continue;
      if (Status status = visit(*known, folder); !status) return status;
      fresh.push_back(std::move(folder));
    }
    // Folders of one directory are of one launch, whatever they hold.
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
  return guarded([&] {
    return for_each_new_folder(
        dirs, [](const std::vector<NodeFolder>& known, const NodeFolder& folder) -> Status {
          for (const NodeFolder& held : known) {
            const std::optional<std::string> reason = contradiction(held, folder);
            if (!reason) continue;
            return Error{Code::kInvalid, fmt::format("{} and {} cannot be one launch: {}", held.dir,
                                                     folder.dir, *reason)};
          }
          return {};
        });
  });
}

Status join_directories(const std::vector<std::string>& dirs) {
  return guarded([&] {
    const fs::path spool = fs::path(dirs.front()) / "spool";
    remove_unfinished(spool);
    try {
      return for_each_new_folder(dirs,
                                 [&](const std::vector<NodeFolder>&, const NodeFolder& folder) {
                                   return join_node(folder.path, spool);
                                 });
    } catch (const fs::filesystem_error&) {  // a full disk gets its room back
      remove_unfinished(spool);
      throw;
    }
  });
}

}  // namespace aon::tools
