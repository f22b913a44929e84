#include "tools/compare/comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <set>
#include <unordered_map>
#include <utility>

namespace aon::tools::compare {
namespace {

using Runs = std::span<const Job>;

constexpr double kNsPerSecond = 1e9;

using Series = std::function<std::span<const double>(const Job&)>;
using Value = std::function<double(const Job&)>;

std::vector<double> values_of(Runs runs, const Value& value) {
  std::vector<double> values;
  for (const Job& run : runs) values.push_back(value(run));
  return values;
}

double mean(Runs runs, const Value& value) { return of_values(values_of(runs, value)).mean; }

double mean_of_span(std::span<const double> values) { return of_values(values).mean; }

class Comparer {
 public:
  Comparer(Runs base, Runs now)
      : base_(base), now_(now), is_between_runs_(base.size() > 1 || now.size() > 1) {
    for (const Runs runs : {base, now}) {
      for (const Job& job : runs) loops_[&job] = by_name(job);
    }
  }

  Comparison result() const {
    Comparison all;
    all.base_runs = base_.size();
    all.runs = now_.size();
    all.is_between_runs = is_between_runs_;
    all.seconds = change([](const Job& job) { return job.seconds; });
    all.cpu_s = change([](const Job& job) { return job.cpu_s; });
    for (const Loop& loop : base_.front().loops) {
      if (is_everywhere(loop.name)) all.loops.push_back(loop_change(loop.name));
    }
    all.is_decided_by_steps = !all.loops.empty() &&
                              all.loops.front().name == base_.front().loops.front().name &&
                              is_certain(all.loops.front().name);
    all.regions = region_changes(all);
    all.warnings = warnings(all);
    return all;
  }

 private:
  /// Of one number of each run.
  Change change(const Value& value, double error = kError) const {
    const std::vector<double> base = values_of(base_, value);
    const std::vector<double> now = values_of(now_, value);
    if (base.size() == 1 && now.size() > 1)
      return change_between(like_others(base[0], now), of_values(now), error,
                            static_cast<double>(now.size() - 1));
    if (now.size() == 1 && base.size() > 1)
      return change_between(of_values(base), like_others(now[0], base), error,
                            static_cast<double>(base.size() - 1));
    return change_between(of_values(base), of_values(now), error);
  }

  /// Of what steps of a run are like.
  Change change_of_series(const Series& series, double error = kError) const {
    if (is_between_runs_)
      return change([&](const Job& job) { return mean_of_span(series(job)); }, error);
    return change_between(of_series(series(base_.front())), of_series(series(now_.front())), error);
  }

  using Names = std::unordered_map<std::string, const Loop*>;  ///< null: of several

  static Names by_name(const Job& job) {
    Names names;
    for (const Loop& loop : job.loops) {
      const auto [known, is_new] = names.try_emplace(loop.name, &loop);
      if (!is_new) known->second = nullptr;
    }
    return names;
  }

  /// Null where there is none, or several have the name.
  const Loop* loop_of(const Job& job, const std::string& name) const {
    const auto of_job = loops_.find(&job);
    if (of_job == loops_.end()) return nullptr;
    const auto found = of_job->second.find(name);
    return found != of_job->second.end() ? found->second : nullptr;
  }

  /// Whether each run has steps of one loop of this name.
  bool is_everywhere(const std::string& name) const {
    return !name.empty() && all_runs([&](const Job& job) {
      const Loop* loop = loop_of(job, name);
      return loop != nullptr && !loop->series[0].empty();
    });
  }

  bool is_certain(const std::string& name) const {
    return all_runs(
        [&](const Job& job) { return loop_of(job, name)->certainty >= kLeastCertainty; });
  }

  bool all_runs(const std::function<bool(const Job&)>& is_so) const {
    return std::all_of(base_.begin(), base_.end(), is_so) &&
           std::all_of(now_.begin(), now_.end(), is_so);
  }

  LoopChange loop_change(const std::string& name) const {
    LoopChange loop;
    loop.name = name;
    loop.base_count = mean(base_, [&](const Job& job) { return loop_of(job, name)->count; });
    loop.count = mean(now_, [&](const Job& job) { return loop_of(job, name)->count; });
    for (size_t part = 0; part < kPartCount; ++part) {
      loop.parts[part] = change_of_series([&](const Job& job) {
        return std::span<const double>(loop_of(job, name)->series[part]);
      });
    }
    add_ranks(&loop);
    return loop;
  }

  /// Ranks that are in all runs of both.
  std::vector<int64_t> ranks_of(const std::string& name) const {
    std::vector<int64_t> ranks;
    for (const auto& [rank, series] : loop_of(base_.front(), name)->computing) {
      const auto has = [&, rank = rank](const Job& job) {
        return loop_of(job, name)->computing.contains(rank);
      };
      if (rank >= 0 && all_runs(has)) ranks.push_back(rank);
    }
    return ranks;
  }

  /// Of an even number of ranks the one of both that changed less.
  static double median_change(std::vector<double> ratios) {
    std::sort(ratios.begin(), ratios.end());
    const double upper = ratios[ratios.size() / 2];
    const double lower = ratios[(ratios.size() - 1) / 2];
    return std::abs(std::log(upper)) < std::abs(std::log(lower)) ? upper : lower;
  }

  void add_ranks(LoopChange* loop) const {
    const std::vector<int64_t> ranks = ranks_of(loop->name);
    std::vector<RankChange> all;
    std::vector<double> ratios;
    for (const int64_t rank : ranks) {
      const auto node = [&](const Job& job) {
        const auto found = job.ranks.find(rank);
        return found != job.ranks.end() ? found->second : std::string();
      };
      all.push_back({rank, node(base_.front()), node(now_.front()),
                     change_of_series(
                         [&](const Job& job) {
                           return std::span<const double>(
                               loop_of(job, loop->name)->computing.at(rank));
                         },
                         kError / static_cast<double>(ranks.size()))});
      const Change& computing = all.back().computing;
      if (computing.base > 0) ratios.push_back(computing.now / computing.base);
    }
    if (ratios.size() < 2) return;
    loop->median_rank = median_change(std::move(ratios));
    const double high = std::max(1.0, loop->median_rank) * kOtherRank;
    const double low = std::min(1.0, loop->median_rank) / kOtherRank;
    for (const RankChange& one : all) {
      if (one.computing.ratio &&
          (one.computing.ratio->low > high || one.computing.ratio->high < low))
        loop->ranks.push_back(one);
    }
    const auto distance = [&](const RankChange& one) {
      return std::abs(std::log(one.computing.now / one.computing.base / loop->median_rank));
    };
    std::sort(loop->ranks.begin(), loop->ranks.end(),
              [&](const auto& a, const auto& b) { return distance(a) > distance(b); });
  }

  using Table = std::map<std::string, Work> Job::*;

  static Work work_of(const Job& job, Table table, const std::string& name) {
    const auto found = (job.*table).find(name);
    return found != (job.*table).end() ? found->second : Work{};
  }

  /// By how much a run's sums are divided.
  double divisor(const Job& job, const std::string& loop) const {
    const double processes = std::max(1.0, job.process_count);
    return loop.empty() ? processes : processes * std::max(1.0, loop_of(job, loop)->count);
  }

  /// Whether a region is called in the steps, in any of the runs.
  bool is_of_steps(Table table, const std::string& name, const std::string& loop) const {
    const auto is_often = [&](const Job& job) {
      return work_of(job, table, name).count >= kOftenInSteps * divisor(job, loop);
    };
    return std::any_of(base_.begin(), base_.end(), is_often) ||
           std::any_of(now_.begin(), now_.end(), is_often);
  }

  std::optional<RegionChange> region_change(const std::string& name, Table table,
                                            const Comparison& all, double error) const {
    std::string loop = all.loops.size() == 1 ? all.loops.front().name : "";
    RegionChange one;
    one.name = name;
    one.is_kernel = table == &Job::kernels;
    one.is_of_steps = !loop.empty() && is_of_steps(table, name, loop);
    if (!one.is_of_steps) loop.clear();
    const auto of = [&](double Work::*what) {
      return [this, table, what, &name, &loop](const Job& job) {
        return work_of(job, table, name).*what / divisor(job, loop);
      };
    };
    one.time_ns = change(of(&Work::time_ns), error);
    one.base_count = mean(base_, of(&Work::count));
    one.count = mean(now_, of(&Work::count));
    one.base_bytes = mean(base_, of(&Work::bytes));
    one.bytes = mean(now_, of(&Work::bytes));
    return is_told(one, all) ? std::optional(one) : std::nullopt;
  }

  /// Whether a number is another one, not just that of a run which was a step longer.
  static bool is_other(double base, double now) {
    return std::abs(now - base) > kLeastCounts * std::max(base, now);
  }

  static bool is_told(const RegionChange& one, const Comparison& all) {
    const double whole_ns =
        one.is_of_steps ? all.loops.front().parts[0].base : all.seconds.base * kNsPerSecond;
    const double least_ns = whole_ns > 0 ? kLeastShare * whole_ns : 0;
    const Change& time = one.time_ns;
    const bool is_large = std::abs(time.now - time.base) >= least_ns;
    if (time.difference && is_large && !time.difference->holds(0)) return true;
    if (!time.difference && is_large) return true;
    return std::max(time.base, time.now) >= least_ns &&
           (is_other(one.base_count, one.count) || is_other(one.base_bytes, one.bytes));
  }

  std::vector<RegionChange> region_changes(const Comparison& all) const {
    std::vector<RegionChange> changed;
    for (const Table table : {&Job::regions, &Job::kernels}) {
      std::set<std::string> names;
      for (const Runs runs : {base_, now_}) {
        for (const Job& job : runs) {
          for (const auto& [name, work] : job.*table) names.insert(name);
        }
      }
      for (const std::string& name : names) {
        const double error = kError / static_cast<double>(names.size());
        if (auto one = region_change(name, table, all, error)) changed.push_back(std::move(*one));
      }
    }
    const auto size = [](const RegionChange& one) {
      return std::abs(one.time_ns.now - one.time_ns.base);
    };
    std::sort(changed.begin(), changed.end(), [&](const auto& a, const auto& b) {
      return std::pair(a.is_of_steps, size(a)) > std::pair(b.is_of_steps, size(b));
    });
    return changed;
  }

  /// "ranks: 4, then 8" where what `text` says of the runs is not the same in all.
  template <class Text>
  void warn_where_other(const char* what, Text text, std::vector<std::string>* all) const {
    const auto said = [&](Runs runs) {
      std::set<std::string> texts;
      for (const Job& job : runs) texts.insert(text(job));
      const std::string joined = fmt::format("{}", fmt::join(texts, " or "));
      return joined.empty() ? std::string("not told") : joined;
    };
    const std::string base = said(base_);
    const std::string now = said(now_);
    if (base != now) all->push_back(fmt::format("{}: {}; then {}", what, base, now));
  }

  /// Those of the base, and of the runs that it has not.
  void add_loops_left_out(std::vector<std::string>* texts) const {
    std::set<std::string> missing;
    std::set<std::string> doubled;
    for (const Runs runs : {base_, now_}) {
      for (const Job& job : runs) {
        for (const Loop& loop : job.loops) {
          if (is_everywhere(loop.name)) continue;
          (loop_of(job, loop.name) == nullptr ? doubled : missing).insert(loop.name);
        }
      }
    }
    for (const std::string& name : doubled) missing.erase(name);
    const auto say = [&](const std::set<std::string>& names, const char* what) {
      if (names.empty()) return;
      constexpr size_t kShown = 4;
      const std::vector<std::string> shown(
          names.begin(),
          std::next(names.begin(), static_cast<std::ptrdiff_t>(std::min(kShown, names.size()))));
      texts->push_back(fmt::format("{}: '{}'{}", what, fmt::join(shown, "', '"),
                                   names.size() > kShown ? ", ..." : ""));
    };
    say(missing, "loops that are not in all runs, not compared");
    say(doubled, "loops of which several have one name, not compared");
  }

  std::vector<std::string> warnings(const Comparison& all) const {
    std::vector<std::string> texts;
    warn_where_other(
        "ranks", [](const Job& job) { return std::to_string(job.ranks.size()); }, &texts);
    warn_where_other(
        "program", [](const Job& job) { return fmt::format("{}", fmt::join(job.programs, ", ")); },
        &texts);
    warn_where_other(
        "processors",
        [](const Job& job) { return fmt::format("{}", fmt::join(job.processors, ", ")); }, &texts);
    warn_where_other(
        "nodes",
        [](const Job& job) {
          std::set<std::string> nodes;
          for (const auto& [rank, node] : job.ranks) nodes.insert(node);
          return std::to_string(nodes.size());
        },
        &texts);
    warn_where_other(
        "steps are", [](const Job& job) { return job.step_source; }, &texts);
    add_loops_left_out(&texts);
    if (!all.loops.empty() && !all.is_decided_by_steps)
      texts.push_back("the base's loop of most time cannot be compared: the job's time decides");
    for (const LoopChange& loop : all.loops) {
      if (is_other(loop.base_count, loop.count))
        texts.push_back(fmt::format("steps of '{}': {:.6g}; then {:.6g}", loop.name,
                                    loop.base_count, loop.count));
    }
    for (const Runs runs : {base_, now_}) {
      for (const Job& job : runs) {
        if (!job.is_complete) texts.push_back(job.dir + ": not all of its ranks are there whole");
        for (const std::string& doubt : job.doubts) texts.push_back(job.dir + ": " + doubt);
        if (job.lost_records > 0)
          texts.push_back(fmt::format("{}: {:.0f} records were lost", job.dir, job.lost_records));
      }
    }
    return texts;
  }

  Runs base_;
  Runs now_;
  bool is_between_runs_;
  std::unordered_map<const Job*, Names> loops_;
};

}  // namespace

Comparison compare(Runs base, Runs now) { return Comparer(base, now).result(); }

const Change& main_change(const Comparison& of) {
  return of.is_decided_by_steps ? of.loops.front().parts[static_cast<size_t>(Part::kDuration)]
                                : of.seconds;
}

Verdict verdict(const Change& change) {
  if (!change.ratio) return Verdict::kUnknown;
  if (change.ratio->low > 1) return Verdict::kSlower;
  return change.ratio->high < 1 ? Verdict::kFaster : Verdict::kSame;
}

}  // namespace aon::tools::compare
