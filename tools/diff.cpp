#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
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
constexpr size_t kNameWidth = 28;

constexpr std::array<std::pair<const char*, const char*>, compare::kPartCount> kParts = {{
    {"duration_ns", "whole step"},
    {"compute_ns", "computing"},
    {"wait_ns", "waiting in MPI"},
    {"other_mpi_ns", "rest of MPI"},
}};

/// Four digits and the unit that fits.
std::string time_text(double time_ns) {
  constexpr std::array<std::pair<double, const char*>, 3> kUnits = {
      {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}}};
  for (const auto& [unit_ns, name] : kUnits) {
    if (std::abs(time_ns) >= unit_ns) return fmt::format("{:.4g} {}", time_ns / unit_ns, name);
  }
  return fmt::format("{:.4g} ns", time_ns);
}

std::string signed_time(double time_ns) {
  return (time_ns < 0 ? "-" : "+") + time_text(std::abs(time_ns));
}

std::string signed_percent(double ratio) {
  const double percent = (ratio - 1) * 100;
  return std::abs(percent) < 100 ? fmt::format("{:+.2f}", percent)
                                 : fmt::format("{:+.0f}", percent);
}

std::string verdict_text(const Change& change) {
  if (change.base <= 0 || change.now <= 0) return "cannot be compared";
  const double ratio = change.now / change.base;
  const std::string percent = signed_percent(ratio) + " %";
  if (!change.ratio) return percent + ", no interval: one run of each has no other steps";
  const auto [low, high] = *change.ratio;
  const std::string interval =
      fmt::format("{} ({} to {})", percent, signed_percent(low), signed_percent(high));
  switch (compare::verdict(change)) {
    case Verdict::kSlower:
      return "slower, " + interval;
    case Verdict::kFaster:
      return "faster, " + interval;
    default:
      return fmt::format("no difference seen, {}; one below {:.2g} % would not be", interval,
                         (std::sqrt(high / low) - 1) * 100);
  }
}

std::string change_text(const Change& change) {
  std::string text = fmt::format("{:>10} -> {:>10}  {}", time_text(change.base),
                                 time_text(change.now), signed_time(change.now - change.base));
  if (!change.difference) return text;
  return fmt::format("{} ({} to {})", text, signed_time(change.difference->low),
                     signed_time(change.difference->high));
}

/// As wide as a table's first column; the end of a long name says less than its begin.
std::string column_name(const std::string& name) {
  return name.size() <= kNameWidth ? name : name.substr(0, kNameWidth - 3) + "...";
}

void print_line(const std::string& line) { fmt::print("{}\n", printable(line)); }

void print_loop(const compare::LoopChange& loop) {
  const Change& whole = loop.parts[static_cast<size_t>(Part::kDuration)];
  print_line(fmt::format("step '{}': {} -> {}: {}", loop.name, time_text(whole.base),
                         time_text(whole.now), verdict_text(whole)));
  for (size_t part = 1; part < compare::kPartCount; ++part) {
    const Change& change = loop.parts[part];
    if (change.base > 0 || change.now > 0)
      print_line(fmt::format("  {:<28} {}", kParts[part].second, change_text(change)));
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

std::string number_text(const char* what, double base, double now) {
  if (std::abs(now - base) <= compare::kLeastCounts * std::max(base, now)) return "";
  return fmt::format("; {:.4g} -> {:.4g} {}", base, now, what);
}

void print_regions(std::span<const compare::RegionChange> regions, const char* title) {
  if (regions.empty()) return;
  print_line(title);
  for (const compare::RegionChange& one : regions.first(std::min(regions.size(), kShownRegions))) {
    print_line(
        fmt::format("  {:<28} {}{}{}", column_name(one.name), change_text(one.time_ns),
                    number_text(one.is_kernel ? "launches" : "calls", one.base_count, one.count),
                    number_text("bytes", one.base_bytes, one.bytes)));
  }
  if (regions.size() > kShownRegions)
    print_line(fmt::format("  and {} more (--json has all)", regions.size() - kShownRegions));
}

/// What the intervals hold.
std::string method_text(const Comparison& all) {
  if (all.is_between_runs)
    return fmt::format("intervals of 95 %, of {} and {} runs", all.base_runs, all.runs);
  if (all.loops.empty())
    return "one run of each, and no steps in both: nothing tells a change from chance; give "
           "several "
           "runs of each (--base, --new)";
  return "intervals of 95 %, of the steps within these runs: what differs from run to run is not "
         "in "
         "them; give several runs of each (--base, --new)";
}

void print(const Comparison& all) {
  for (const std::string& warning : all.warnings) print_line("not the same: " + warning);
  for (size_t i = 0; i < std::min(all.loops.size(), kShownLoops); ++i) print_loop(all.loops[i]);
  const auto others = std::find_if(all.regions.begin(), all.regions.end(),
                                   [](const auto& one) { return !one.is_of_steps; });
  print_regions({all.regions.begin(), others}, "changed, by rank and step:");
  print_regions({others, all.regions.end()},
                all.loops.empty() ? "changed, by rank:" : "changed outside of steps, by rank:");
  print_line(fmt::format("job: {} -> {}: {}", time_text(all.seconds.base * 1e9),
                         time_text(all.seconds.now * 1e9), verdict_text(all.seconds)));
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
                 {"steps", loop.count},
                 {"median_rank_ratio", loop.median_rank},
                 {"ranks", Json::array()}};
  for (size_t part = 0; part < compare::kPartCount; ++part)
    object[kParts[part].first] = json_of(loop.parts[part]);
  for (const compare::RankChange& one : loop.ranks) {
    object["ranks"].push_back({{"rank", one.rank},
                               {"base_node", one.base_node},
                               {"node", one.node},
                               {"compute_ns", json_of(one.computing)}});
  }
  return object;
}

Json json_of(const Comparison& all) {
  Json object = {{"base_runs", all.base_runs},
                 {"runs", all.runs},
                 {"intervals_are_of", all.is_between_runs ? "runs" : "steps"},
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
                                 {"count", one.count},
                                 {"base_bytes", one.base_bytes},
                                 {"bytes", one.bytes}});
  }
  return object;
}

/// The jobs of `dirs`; the exit code of what is wrong with one of them.
int read_jobs(const std::vector<std::string>& dirs, std::vector<Job>* jobs) {
  for (const std::string& dir : dirs) {
    if (const Status found = find_profile(dir); !found)
      return fail("diff", found.error().message, kExitUse);
    const Result<Json> ledger = read_ledger(dir);
    if (!ledger) return fail("diff", ledger.error().message, kExitUse);
    Result<Job> job = compare::read_job(dir, *ledger);
    if (!job) return fail("diff", job.error().message);
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
  if (const int code = read_jobs(options.base, &base); code != kExitDone) return code;
  if (const int code = read_jobs(options.now, &now); code != kExitDone) return code;
  const Comparison all = compare::compare(base, now);
  if (options.as_json) {
    fmt::print("{}\n", json_of(all).dump(2, ' ', false, Json::error_handler_t::replace));
  } else {
    print(all);
  }
  return options.limit_percent ? judge(all, *options.limit_percent) : kExitDone;
}

}  // namespace aon::tools
