#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "core/cluster/nccl_wish.h"
#include "core/cluster/presence.h"
#include "core/spool/files.h"
#include "core/spool/job.h"
#include "core/spool/nccl_levels.h"
#include "core/spool/text.h"
#include "tools/command.h"
#include "tools/job_folder.h"
#include "tools/owner_rights.h"
#include "writers/assemble/leftover_rings.h"

namespace aon::tools {
namespace {

/// Processes of one node to which the same happened.
struct Those {
  std::vector<uint32_t> ranks;
  std::vector<int32_t> pids;  ///< of those without a rank
};

/// What the spool tells of all processes that use NCCL.
struct Standings {
  std::map<std::pair<std::string, std::string>, Those> lines;  ///< by node and what is said of it
  size_t process_count = 0;                                    ///< that use NCCL with our plugin
  size_t waiting_count = 0;                                    ///< have not answered yet
  size_t refused_count = 0;  ///< cannot be given what was asked for
  size_t off_count = 0;      ///< where NCCL has no plugin of ours, or one that is off
};

bool is_over(const std::string& dir) {
  const auto nodes = cluster::read_presence(dir);
  return std::none_of(nodes.begin(), nodes.end(), [](const cluster::NodePresence& node) {
    return node.presence == cluster::Presence::kLive;
  });
}

std::string text_of(const spool::NcclStanding& standing, bool has_answered) {
  std::string level = nccl_level_name(standing.level);
  if (!has_answered) return level + "; it has not answered yet";
  if (standing.is_by_budget && standing.level < standing.answer.level)
    return level + ", lowered by the budget";
  if (standing.answer.reason != NcclLimit::kNone)
    return fmt::format("{}, not {}: {}", level, nccl_level_name(standing.answer.asked),
                       nccl_limit_text(standing.answer.reason));
  return level;
}

void add_process(const spool::Node& node, const spool::Process& process, uint32_t stamp,
                 Standings* all) {
  const auto standing = spool::nccl_standing(process);
  std::string text;
  if (standing) {
    const bool has_answered = stamp == 0 || standing->stamp == stamp;
    text = text_of(*standing, has_answered);
    ++all->process_count;
    if (!has_answered) ++all->waiting_count;
    if (has_answered && standing->answer.reason != NcclLimit::kNone) ++all->refused_count;
  } else {
    const auto provider = process.providers.find("nccl");
    const bool is_off =
        provider != process.providers.end() && provider->second.state == ProviderState::kOff;
    if (!is_off) return;
    text = "off: " + provider->second.reason;
    ++all->off_count;
  }
  Those& those = all->lines[{node.host, text}];
  const int32_t rank = process.identity ? process.identity->rank : process.start.rank;
  if (rank >= 0) {
    those.ranks.push_back(static_cast<uint32_t>(rank));
  } else {
    those.pids.push_back(process.start.pid);
  }
}

/// Of a live job those that have ended are left out.
Result<Standings> read_standings(const std::string& dir, uint32_t stamp, bool is_live) {
  const Result<spool::Job> job = spool::read_job(dir);
  if (!job) return job.error();
  Standings all;
  for (const spool::Node& node : job->nodes) {
    for (const auto& [number, process] : node.processes) {
      if (!is_live || !process.exit) add_process(node, process, stamp, &all);
    }
  }
  return all;
}

std::string names_of(Those those) {
  std::sort(those.ranks.begin(), those.ranks.end());
  std::string text;
  if (!those.ranks.empty())
    text = (those.ranks.size() == 1 ? "rank " : "ranks ") + spool::listed_ranks(those.ranks);
  std::sort(those.pids.begin(), those.pids.end());
  constexpr size_t kNamedPids = 8;
  for (size_t i = 0; i < std::min(those.pids.size(), kNamedPids); ++i)
    text += fmt::format("{}process {}", text.empty() ? "" : ", ", those.pids[i]);
  if (those.pids.size() > kNamedPids)
    text += fmt::format(" and {} more", those.pids.size() - kNamedPids);
  return text;
}

void print(const Standings& all) {
  for (const auto& [what, those] : all.lines) {
    const auto& [host, text] = what;
    fmt::print("{}\n", printable(fmt::format("{}  {}: {}", host, names_of(those), text)));
  }
}

/// Says whose level is not known here: the number of nodes whose spool this one does not get at,
/// and of processes without an agent, which have files of their own.
size_t tell_unseen(const std::string& dir) {
  const size_t node_count = spool::find_missing_links(dir).size();
  if (node_count != 0)
    fmt::print(
        "of {} node{} nothing is known here, for the spool is on that node's own disk "
        "(--spool-dir)\n",
        node_count, node_count == 1 ? "" : "s");
  const size_t process_count = writers::find_leftover_rings(dir).own.size();
  if (process_count != 0)
    fmt::print("{} process{} found no agent in time (--attach-ms) and cannot be asked\n",
               process_count, process_count == 1 ? "" : "es");
  return node_count + process_count;
}

/// Of a job without a live agent.
const char* end_text(const std::string& dir) {
  return find_part(dir, "aon.json") ? "the job is over"
                                    : "no agent is live: the job is over, or its agents have ended";
}

std::string utc(const timespec& time) {
  tm parts{};
  char text[32] = "";
  if (gmtime_r(&time.tv_sec, &parts) != nullptr)
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

int show(const LevelOptions& options, bool is_live) {
  cluster::NcclWishFile file(options.dir);
  const auto wish = file.look();
  if (!wish) {
    fmt::print("{}\n", printable(wish.error().message));
  } else if (*wish) {
    fmt::print("asked for: {}, since {}\n", nccl_level_name((*wish)->level), utc((*wish)->time));
  } else {
    fmt::print("nothing was asked for: the level is that of the launch (--nccl-level)\n");
  }
  const uint32_t stamp = is_live && wish && *wish ? (*wish)->stamp : 0;
  const auto all = read_standings(options.dir, stamp, is_live);
  if (!all) return fail("level", all.error().message);
  if (!is_live)
    fmt::print("{}; the levels that its processes had at the end:\n", end_text(options.dir));
  print(*all);
  if (tell_unseen(options.dir) == 0 && all->process_count + all->off_count == 0)
    fmt::print("no process {}NCCL with AON's plugin\n", is_live ? "uses " : "used ");
  return kExitDone;
}

/// What a later command asked for instead.
std::optional<NcclLevel> later_wish(const std::string& dir, uint32_t stamp) {
  const auto wish = cluster::NcclWishFile(dir).look();
  if (!wish || !*wish || (*wish)->stamp == stamp) return std::nullopt;
  return (*wish)->level;
}

/// What became of the wish, as soon as all have answered, another one took its place, or --wait is
/// over.
Result<Standings> wait_for_answers(const LevelOptions& options, uint32_t stamp) {
  for (uint32_t waited_s = 0;; ++waited_s) {
    const bool is_last = waited_s >= options.wait_s || is_over(options.dir) ||
                         later_wish(options.dir, stamp).has_value();
    Result<Standings> all = read_standings(options.dir, stamp, true);
    if (!all || is_last || all->waiting_count == 0) return all;
    sleep(1);
  }
}

int change(const LevelOptions& options, NcclLevel wanted, bool is_live) {
  if (!is_live)
    return fail("level",
                options.dir + ": " + end_text(options.dir) + "; nobody is left to heed it");
  const auto before = read_standings(options.dir, 0, true);
  if (!before) return fail("level", before.error().message);
  if (before->process_count == 0 && before->off_count != 0) {
    print(*before);
    return fail("level", "NCCL is not recorded in this job: nothing can be asked for");
  }
  const auto wish = cluster::write_nccl_wish(options.dir, wanted);
  if (!wish) return fail("level", wish.error().message);
  const auto all = wait_for_answers(options, wish->stamp);
  if (!all) return fail("level", all.error().message);
  if (const auto later = later_wish(options.dir, wish->stamp))
    return fail("level", fmt::format("a later aon level asked for {}, not {}",
                                     nccl_level_name(*later), options.level));
  print(*all);
  if (tell_unseen(options.dir) == 0 && all->process_count == 0)
    fmt::print("no process uses NCCL yet; those that will are asked for {}\n", options.level);
  if (all->waiting_count != 0)
    fmt::print(
        "{} of {} processes have not answered within {} s: their agents look every 2 s, and some "
        "file systems (NFS) show them a new file only after a minute; aon level {} tells\n",
        all->waiting_count, all->process_count, options.wait_s, options.dir);
  const bool has_nobody = all->process_count != 0 && all->refused_count == all->process_count;
  return has_nobody ? fail("level", "no process can be given " + options.level) : kExitDone;
}

}  // namespace

int level(const LevelOptions& options) {
  const auto wanted = cluster::parse_nccl_level(options.level);
  if (options.level == "off")
    return fail("level",
                "off is a level of a launch (--nccl-level off): ranks' operations are matched by "
                "their counts, so a job that has begun goes on counting them; api is its lowest",
                kExitUse);
  if (!options.level.empty() && !wanted)
    return fail("level", fmt::format("'{}' is no level: api, gpu, net or step", options.level),
                kExitUse);
  const Status spool = find_part(options.dir, "spool");
  if (!spool && spool.error().code == Code::kNotFound) {
    const bool is_job = find_part(options.dir, "aon.json").has_value();
    return is_job ? fail("level", options.dir + ": the job is over, and its spool is gone")
                  : fail("level", options.dir + without_spool(options.dir), kExitUse);
  }
  if (!spool) return fail("level", spool.error().message, kExitUse);
  take_owner_rights("level", {options.dir});
  const bool is_live = !is_over(options.dir);
  return wanted ? change(options, *wanted, is_live) : show(options, is_live);
}

}  // namespace aon::tools
