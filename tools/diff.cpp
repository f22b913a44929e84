#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <span>
#include <utility>

#include "tools/command.h"
#include "tools/compare/comparison.h"
#include "tools/job_folder.h"
#include "tools/ledger_summary.h"

namespace aon::tools {
namespace {

using compare::Change;
using compare::Comparison;
using compare::Interval;
using compare::Job;
using compare::Part;
using compare::Verdict;
using Json = nlohmann::json;

constexpr size_t kShownRegions = 10;
constexpr size_t kShownRanks = 4;
constexpr size_t kShownLoops = 3;
constexpr size_t kNameWidth = 40;

constexpr std::array<std::pair<const char*, const char*>, compare::kPartCount> kParts = {{
    {"duration_ns", "whole step"},
    {"compute_ns", "computing"},
    {"wait_ns", "waiting in MPI"},
    {"other_mpi_ns", "rest of MPI"},
}};

/// Behind the point, of four in all.
int digits_of(double value) {
  const double size = std::abs(value);
  return size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3;
}

/// Four digits and the unit that fits.
std::string time_text(double time_ns) {
  constexpr double kHour = 3600e9;
  if (std::isnan(time_ns)) return "not told";
  if (std::abs(time_ns) >= 3 * kHour) return fmt::format("{:.4g} h", time_ns / kHour);
  constexpr std::array<std::pair<double, const char*>, 3> kUnits = {
      {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}}};
  for (const auto& [unit_ns, name] : kUnits) {
    if (std::abs(time_ns) >= unit_ns)
      return fmt::format("{:.{}f} {}", time_ns / unit_ns, digits_of(time_ns / unit_ns), name);
  }
  return fmt::format("{:.4g} ns", time_ns);
}

std::string bytes_text(double bytes) {
  constexpr std::array<const char*, 5> kUnits = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < kUnits.size(); ++unit) bytes /= 1024;
  return fmt::format("{:.4g} {}", bytes, kUnits[unit]);
}

std::string signed_time(double time_ns) {
  return (time_ns < 0 ? "-" : "+") + time_text(std::abs(time_ns));
}

std::string signed_percent(double ratio) {
  const double percent = (ratio - 1) * 100;
  return std::abs(percent) < 100 ? fmt::format("{:+.2f}", percent)
                                 : fmt::format("{:+.0f}", percent);
}

/// `unknown`: why there is no interval.
std::string verdict_text(const Change& change, const char* unknown) {
  if (!(change.base > 0) || !(change.now > 0)) return "cannot be compared";
  const double ratio = change.now / change.base;
  const std::string percent = signed_percent(ratio) + " %";
  if (!change.ratio) return percent + ", no interval: " + unknown;
  const auto [low, high] = *change.ratio;
  const std::string interval =
      fmt::format("{} ({} to {})", percent, signed_percent(low), signed_percent(high));
  switch (compare::verdict(change)) {
    case Verdict::kSlower:
      return "slower, " + interval;
    case Verdict::kFaster:
      return "faster, " + interval;
    default:
      return "no difference seen, " + interval;
  }
}

std::string change_text(const Change& change) {
  std::string text = fmt::format("{:>10} -> {:>10}  {}", time_text(change.base),
                                 time_text(change.now), signed_time(change.now - change.base));
  if (!change.difference) return text;
  return fmt::format("{} ({} to {})", text, signed_time(change.difference->low),
                     signed_time(change.difference->high));
}

/// Whether a character of UTF-8 goes on there.
bool is_within_character(const std::string& text, size_t at) {
  return at < text.size() && (static_cast<uint8_t>(text[at]) & 0xc0) == 0x80;
}

/// As wide as a table's first column: begin and end, for kernels of one library begin alike.
std::string column_name(const std::string& name) {
  if (name.size() <= kNameWidth) return name;
  constexpr size_t kEnd = 15;
  size_t begin = kNameWidth - kEnd - 3;
  while (begin > 0 && is_within_character(name, begin)) --begin;
  size_t end = name.size() - kEnd;
  while (is_within_character(name, end)) ++end;
  return name.substr(0, begin) + "..." + name.substr(end);
}

void print_line(const std::string& line) { fmt::print("{}\n", printable(line)); }

void print_loop(const compare::LoopChange& loop, const char* unknown) {
  const Change& whole = loop.parts[static_cast<size_t>(Part::kDuration)];
  print_line(fmt::format("step '{}': {} -> {}: {}", loop.name, time_text(whole.base),
                         time_text(whole.now), verdict_text(whole, unknown)));
  for (size_t part = 1; part < compare::kPartCount; ++part) {
    const Change& change = loop.parts[part];
    if (change.base > 0 || change.now > 0)
      print_line(fmt::format("  {:<40} {}", kParts[part].second, change_text(change)));
  }
  for (size_t i = 0; i < std::min(loop.ranks.size(), kShownRanks); ++i) {
    const compare::RankChange& one = loop.ranks[i];
    const std::string node =
        one.base_node == one.node ? one.node : one.node + ", before on " + one.base_node;
    print_line(
        fmt::format("  rank {} (on {}) computes {:.3f} times as long as before ({:.3f} to "
                    "{:.3f}), the median rank {:.3f} times",
                    one.rank, node, one.computing.now / one.computing.base,
                    one.computing.ratio->low, one.computing.ratio->high, loop.median_rank));
  }
  if (loop.ranks.size() > kShownRanks)
    print_line(
        fmt::format("  and {} ranks more (--json has all)", loop.ranks.size() - kShownRanks));
}

bool is_other(double base, double now) {
  return std::abs(now - base) > compare::kLeastCounts * std::max(base, now);
}

std::string numbers_text(const compare::RegionChange& one) {
  std::string text;
  if (is_other(one.base_count, one.count))
    text += fmt::format("; {:.4g} -> {:.4g} {}", one.base_count, one.count,
                        one.is_kernel ? "launches" : "calls");
  if (is_other(one.base_bytes, one.bytes))
    text += fmt::format("; {} -> {}", bytes_text(one.base_bytes), bytes_text(one.bytes));
  return text;
}

void print_regions(std::span<const compare::RegionChange> regions, const std::string& title) {
  if (regions.empty()) return;
  print_line(title);
  for (const compare::RegionChange& one : regions.first(std::min(regions.size(), kShownRegions))) {
    print_line(fmt::format("  {:<40} {}{}", column_name(one.name), change_text(one.time_ns),
                           numbers_text(one)));
  }
  if (regions.size() > kShownRegions)
    print_line(fmt::format("  and {} more (--json has all)", regions.size() - kShownRegions));
}

constexpr const char* kMoreRuns = "; give several runs (--base, --new)";

/// What the intervals hold.
std::string method_text(const Comparison& all) {
  if (all.is_between_runs) {
    const bool is_single = all.base_runs == 1 || all.runs == 1;
    return fmt::format("intervals of 95 %, of {} and {} runs{}", all.base_runs, all.runs,
                       is_single ? "; the single one is taken to vary as the others do" : "");
  }
  if (all.loops.empty())
    return "one run of each, and no steps in both: nothing tells a change from chance" +
           std::string(kMoreRuns);
  return "intervals of 95 %, of the steps within these two runs: what differs from run to run is "
         "not in them" +
         std::string(kMoreRuns);
}

void print(const Comparison& all) {
  for (const std::string& warning : all.warnings) print_line("not the same: " + warning);
  const char* unknown = all.is_between_runs ? "the runs differ too much" : "too few steps";
  for (size_t i = 0; i < std::min(all.loops.size(), kShownLoops); ++i)
    print_loop(all.loops[i], unknown);
  if (all.loops.size() > kShownLoops)
    print_line(fmt::format("and {} loops more (--json has all)", all.loops.size() - kShownLoops));
  const auto others = std::find_if(all.regions.begin(), all.regions.end(),
                                   [](const auto& one) { return !one.is_of_steps; });
  const std::string title =
      all.is_between_runs ? "changed, by " : "other in these two runs (no interval), by ";
  print_regions({all.regions.begin(), others}, title + "process and step:");
  print_regions({others, all.regions.end()},
                title + (others == all.regions.begin() ? "process:" : "process, not of steps:"));
  print_line(fmt::format(
      "job: {} -> {}: {}", time_text(all.seconds.base * 1e9), time_text(all.seconds.now * 1e9),
      verdict_text(all.seconds, all.is_between_runs ? unknown : "that takes several runs")));
  print_line("(" + method_text(all) + ")");
}

Json json_of(const std::optional<Interval>& interval) {
  return interval ? Json::array({interval->low, interval->high}) : Json();
}

Json json_of(const Change& change) {
  return {{"base", change.base},
          {"new", change.now},
          {"difference_interval", json_of(change.difference)},
          {"ratio_interval", json_of(change.ratio)}};
}

const char* name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kSlower:
      return "slower";
    case Verdict::kFaster:
      return "faster";
    case Verdict::kSame:
      return "no difference seen";
    case Verdict::kUnknown:
      break;
  }
  return "unknown";
}

Json json_of(const compare::LoopChange& loop) {
  Json object = {{"name", loop.name},
                 {"base_steps", loop.base_count},
                 {"new_steps", loop.count},
                 {"median_rank_ratio", loop.median_rank},
                 {"ranks", Json::array()}};
  for (size_t part = 0; part < compare::kPartCount; ++part)
    object[kParts[part].first] = json_of(loop.parts[part]);
  for (const compare::RankChange& one : loop.ranks) {
    object["ranks"].push_back({{"rank", one.rank},
                               {"base_node", one.base_node},
                               {"new_node", one.node},
                               {"compute_ns", json_of(one.computing)}});
  }
  return object;
}

Json json_of(const Comparison& all) {
  Json object = {{"base_runs", all.base_runs},
                 {"new_runs", all.runs},
                 {"intervals_are_of", all.is_between_runs ? "runs" : "steps"},
                 {"decided_by", all.is_decided_by_steps ? "steps" : "job"},
                 {"verdict", name_of(compare::verdict(compare::main_change(all)))},
                 {"not_the_same", all.warnings},
                 {"seconds", json_of(all.seconds)},
                 {"cpu_s", json_of(all.cpu_s)},
                 {"loops", Json::array()},
                 {"regions", Json::array()}};
  for (const compare::LoopChange& loop : all.loops) object["loops"].push_back(json_of(loop));
  for (const compare::RegionChange& one : all.regions) {
    object["regions"].push_back({{"name", one.name},
                                 {"is_kernel", one.is_kernel},
                                 {"is_of_steps", one.is_of_steps},
                                 {"time_ns", json_of(one.time_ns)},
                                 {"base_count", one.base_count},
                                 {"new_count", one.count},
                                 {"base_bytes", one.base_bytes},
                                 {"new_bytes", one.bytes}});
  }
  return object;
}

/// Folders, whatever they are called.
using Seen = std::set<std::pair<dev_t, ino_t>>;

/// The jobs of `dirs`, none of which is among `seen`; the exit code of what is wrong with one.
int read_jobs(const std::vector<std::string>& dirs, Seen* seen, std::vector<Job>* jobs) {
  for (const std::string& dir : dirs) {
    if (const Status found = find_profile(dir); !found)
      return fail("diff", printable(found.error().message), kExitUse);
    struct stat status {};
    if (stat(dir.c_str(), &status) == 0 && !seen->emplace(status.st_dev, status.st_ino).second)
      return fail("diff", printable(dir) + " is given twice: it is one run", kExitUse);
    const Result<Json> ledger = read_ledger(dir);
    if (!ledger) return fail("diff", printable(ledger.error().message));
    Result<Job> job = compare::read_job(dir, *ledger);
    if (!job) return fail("diff", printable(job.error().message));
    jobs->push_back(std::move(*job));
  }
  return kExitDone;
}

/// Whether the second is slower than the limit allows; who cannot tell has not shown that it isn't.
int judge(const Comparison& all, double limit_percent) {
  const Change& change = compare::main_change(all);
  const double limit = 1 + limit_percent / 100;
  if (!change.ratio || change.ratio->holds(limit)) return kExitUndecided;
  return change.ratio->low > limit ? kExitSlower : kExitDone;
}

}  // namespace

int diff(const DiffOptions& options) {
  std::vector<Job> base;
  std::vector<Job> now;
  Seen seen;
  if (const int code = read_jobs(options.base, &seen, &base); code != kExitDone) return code;
  if (const int code = read_jobs(options.now, &seen, &now); code != kExitDone) return code;
  const Comparison all = compare::compare(base, now);
  if (options.as_json) {
    fmt::print("{}\n", json_of(all).dump(2, ' ', false, Json::error_handler_t::replace));
  } else {
    print(all);
  }
  return options.limit_percent ? judge(all, *options.limit_percent) : kExitDone;
}

}  // namespace aon::tools
