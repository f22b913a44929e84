#include "writers/ledger/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/digits.h"
#include "writers/profile/beside_ranks.h"
#include "writers/profile/mpi_calls.h"

namespace aon::writers {
namespace {

constexpr double kNsPerSecond = 1e9;
constexpr const char* kFinalize = "MPI_Finalize";
constexpr double kHotShare = 3.0;  ///< of one pair's bytes to an even share
constexpr double kLeastCallPercent = 0.1;
constexpr uint64_t kLeastSamples = 100;
constexpr double kHotFunctionShare = 0.2;
// Weights of what comes before all times, in seconds.
constexpr double kSplitWorldWeight = 1e10;
constexpr double kSpawnedWeight = 1e9;
constexpr double kUnmatchedWeight = 5e8;

std::string bytes_text(double bytes) {
  for (const char* unit : {"bytes", "KiB", "MiB", "GiB"}) {
    if (bytes < 1024) return fmt::format("{:.{}f} {}", bytes, bytes < 10 ? 1 : 0, unit);
    bytes /= 1024;
  }
  return fmt::format("{:.1f} TiB", bytes);
}

/// Start and end of a program are no communication: waiting there is part of starting up, or has a
/// finding of its own.
bool is_frame(const std::string& name) {
  return name.rfind("MPI_Init", 0) == 0 || name == kFinalize;
}

}  // namespace

std::string seconds_text(double value_s) {
  if (value_s >= 100) return fmt::format("{:.0f} s", value_s);
  if (value_s >= 1) return fmt::format("{:.1f} s", value_s);
  if (value_s >= 1e-3) return fmt::format("{:.0f} ms", value_s * 1e3);
  return fmt::format("{:.0f} us", value_s * 1e6);
}

std::string text_of_ns(uint64_t time_ns) {
  return seconds_text(static_cast<double>(time_ns) / 1e9);
}

Status Findings::begin(const Model& model) {
  model_ = &model;
  const auto rank_count = std::count_if(model.groups.begin(), model.groups.end(),
                                        [](const Group& group) { return group.rank.has_value(); });
  ranks_.resize(static_cast<size_t>(rank_count));
  calls_.resize(model.regions.size());
  table_ = std::make_unique<profile::MessageTable>(model);
  samples_ = std::make_unique<profile::CallSamples>(model);
  return {};
}

Status Findings::begin_location(const Location& location) {
  const Group& group = model_->groups[location.group];
  table_->begin(group);
  samples_->begin(group);
  const bool is_master = location.id == location.group && group.rank;
  current_ = is_master ? &ranks_[*group.rank] : nullptr;
  if (is_master) unsaved_rank_ = group.rank;
  return {};
}

Status Findings::events(std::span<const Event> events) {
  if (events.empty()) return {};
  if (current_ != nullptr) {
    if (current_->first_ns == 0) current_->first_ns = events.front().time_ns;
    current_->last_ns = events.back().time_ns;
  }
  for (const Event& event : events) {
    if (event.kind == EventKind::kSend || event.kind == EventKind::kSendRequest ||
        event.kind == EventKind::kForeignMessage) {
      table_->add(event);
    } else if (event.kind == EventKind::kCallSample) {
      samples_->add(event);
    } else if (current_ != nullptr && event.kind == EventKind::kLostBegin) {
      current_->lost_ns -= event.time_ns;  // its end follows
    } else if (current_ != nullptr && event.kind == EventKind::kLostEnd) {
      current_->lost_ns += event.time_ns;
    }
  }
  return {};
}

Status Findings::end_location() {
  current_ = nullptr;
  return {};
}

Status Findings::finish(const Outcome& outcome) {
  unmatched_count_ = outcome.unmatched_count;
  messages_ = table_->rows();
  table_.reset();
  functions_ = ledger::hot_functions(*model_, samples_->counts());
  rank_functions_ = functions_of_ranks();
  samples_.reset();
  return {};
}

std::vector<ledger::FunctionCount> Findings::functions_of_ranks() const {
  std::vector<profile::CallPathCount> counts(model_->call_paths.size());
  std::vector<bool> is_left_out;
  for (const Group& group : model_->groups)
    is_left_out.push_back(profile::is_beside_ranks(*model_, group));
  for (const profile::CallSampleRow& row : samples_->rows()) {
    if (is_left_out[row.group]) continue;
    counts[row.call_path].self += row.count;
    counts[row.call_path].self_period += row.period;
  }
  return ledger::hot_functions(*model_, counts);
}

Status Findings::save(StateOut* out) {
  out->put(unsaved_rank_);
  if (unsaved_rank_) {
    const RankTime time = std::exchange(ranks_[*unsaved_rank_], {});
    out->put(time.first_ns);
    out->put(time.last_ns);
    out->put(time.lost_ns);
  }
  unsaved_rank_.reset();
  table_->save(out);
  samples_->save(out);
  return {};
}

Status Findings::load(StateIn* in) {
  std::optional<uint32_t> rank;
  if (!in->get(&rank)) return in->status();
  if (rank) {
    if (!in->check(*rank < ranks_.size())) return in->status();
    RankTime& time = ranks_[*rank];
    if (!in->get(&time.first_ns) || !in->get(&time.last_ns) || !in->get(&time.lost_ns))
      return in->status();
  }
  if (Status status = table_->load(in); !status) return status;
  return samples_->load(in);
}

void Findings::add_profile(const Group& group, const Location* location,
                           std::span<const profile::RegionStatistics> rows) {
  const bool is_master = location != nullptr && location->id == location->group && group.rank;
  const bool is_thread = location == nullptr || is_thread_of_process(*location);
  uint64_t mpi_ns = 0;
  uint64_t poll_ns = 0;
  bool has_mpi = false;
  for (const profile::RegionStatistics& row : rows) {
    if (row.region >= calls_.size()) continue;
    const GlobalRegion& region = model_->regions[row.region];
    if (region.name.rfind("MPI_Comm_spawn", 0) == 0) spawn_count_ += row.count;
    if (!group.rank) continue;
    calls_[row.region] += row.count;
    RankTime& rank = ranks_[*group.rank];
    const bool is_users = region.paradigm == Paradigm::kUser || region.paradigm == Paradigm::kNvtx;
    if (is_master && is_users && region.role != RegionRole::kStep)
      rank.by_annotation[row.region] += row.exclusive_ns;
    if (region.paradigm != Paradigm::kMpi) continue;
    mpi_ns += row.exclusive_ns;
    if (profile::is_test(region)) poll_ns += row.exclusive_ns;
    has_mpi = true;
    if (region.name == kFinalize) rank.finalize_ns += row.exclusive_ns;
    if (region.name == "MPI_Abort" && row.count != 0) rank.has_aborted = true;
    if (!is_frame(region.name)) rank.by_region[row.region] += row.exclusive_ns;
  }
  if (!group.rank || !is_thread || !has_mpi) return;
  RankTime& rank = ranks_[*group.rank];
  rank.thread_mpi_ns.push_back(mpi_ns);
  if (is_master) {
    rank.mpi_ns = mpi_ns;
    rank.poll_ns = poll_ns;
    rank.has_master_mpi = true;
  } else if (!rank.has_master_mpi && mpi_ns > rank.mpi_ns) {
    rank.mpi_ns = mpi_ns;
    rank.poll_ns = poll_ns;
  }
}

uint32_t Findings::RankTime::mpi_thread_count() const {
  if (thread_mpi_ns.empty()) return 0;
  const uint64_t longest_ns = *std::max_element(thread_mpi_ns.begin(), thread_mpi_ns.end());
  return static_cast<uint32_t>(
      std::count_if(thread_mpi_ns.begin(), thread_mpi_ns.end(),
                    [&](uint64_t time_ns) { return time_ns >= longest_ns / 10; }));
}

/// From first to last. What was followed beside the ranks may have run for hours before and after
/// them.
uint64_t Findings::job_ns() const {
  if (world_count() > 1) return 0;
  const bool has_others =
      std::any_of(model_->groups.begin(), model_->groups.end(),
                  [this](const Group& group) { return profile::is_beside_ranks(*model_, group); });
  if (!has_others) return model_->end_ns - std::min(model_->start_ns, model_->end_ns);
  uint64_t first_ns = UINT64_MAX;
  uint64_t last_ns = 0;
  for (const RankTime& rank : ranks_) {
    if (rank.last_ns == 0) continue;
    first_ns = std::min(first_ns, rank.first_ns);
    last_ns = std::max(last_ns, rank.last_ns);
  }
  return last_ns - std::min(first_ns, last_ns);
}

uint64_t Findings::total_ns() const {
  const uint64_t all_ns = job_ns();
  uint64_t sum = 0;
  for (const RankTime& rank : ranks_) {
    if (rank.last_ns == 0 && rank.thread_mpi_ns.empty()) continue;  // nothing is known of it
    sum += std::max(all_ns, span_ns(rank)) * std::max(rank.mpi_thread_count(), 1u);
  }
  return sum;
}

/// Nothing is known of a rank without events.
std::string Findings::extremes_text(const char* verb,
                                    const std::function<uint64_t(size_t rank)>& time_of) const {
  std::vector<size_t> known;
  for (size_t r = 0; r < ranks_.size(); ++r) {
    if (ranks_[r].last_ns != 0 || !ranks_[r].thread_mpi_ns.empty()) known.push_back(r);
  }
  if (known.size() < 2) return "";
  const auto [least, most] = std::minmax_element(
      known.begin(), known.end(), [&](size_t a, size_t b) { return time_of(a) < time_of(b); });
  const auto text = [&](size_t rank) {
    return seconds_text(static_cast<double>(time_of(rank)) / kNsPerSecond);
  };
  return fmt::format(": rank {} {} ({}), rank {} least ({})", *most, verb, text(*most), *least,
                     text(*least));
}

std::optional<std::pair<uint32_t, uint64_t>> Findings::top_call() const {
  std::unordered_map<uint32_t, uint64_t> sums;
  for (const RankTime& rank : ranks_) {
    for (const auto& [region, time_ns] : rank.by_region) sums[region] += time_ns;
  }
  const auto top = std::max_element(sums.begin(), sums.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second < b.second : a.first > b.first;
  });
  if (top == sums.end()) return std::nullopt;
  return std::pair(top->first, top->second);
}

/// Where a rank has lost records of its threads, there were more calls than are known.
void Findings::add_expensive_call(std::span<const LocationTally> tallies,
                                  std::vector<Finding>* findings) const {
  const auto top = top_call();
  if (!top || total_ns() == 0) return;
  const uint32_t region = top->first;
  const auto time_of = [&](size_t rank) {
    const auto found = ranks_[rank].by_region.find(region);
    return found == ranks_[rank].by_region.end() ? uint64_t{0} : found->second;
  };
  const double sum_s = static_cast<double>(top->second) / kNsPerSecond;
  const double share = 100.0 * static_cast<double>(top->second) / static_cast<double>(total_ns());
  if (share < kLeastCallPercent) return;
  const bool has_losses =
      std::any_of(tallies.begin(), tallies.end(), [&](const LocationTally& tally) {
        return is_thread_of_process(*tally.location) && tally.lost_count() != 0 &&
               model_->groups[tally.location->group].rank;
      });
  std::string text = fmt::format("{} takes {}{:.1f} % of the ranks' time ({} in {} {}call{})",
                                 model_->regions[region].name, has_losses ? "at least " : "", share,
                                 seconds_text(sum_s), grouped(calls_[region]),
                                 has_losses ? "known " : "", calls_[region] == 1 ? "" : "s");
  text += extremes_text("is in it longest", time_of);
  findings->push_back({sum_s, text});
}

void Findings::add_hot_spot(std::vector<Finding>* findings) const {
  uint64_t sum_bytes = 0;
  size_t pair_count = 0;
  const profile::MessageRow* top = nullptr;
  const auto is_rank = [&](int64_t group) {
    return group < 0 || model_->groups[static_cast<size_t>(group)].rank.has_value();
  };
  for (const profile::MessageRow& row : messages_) {
    if (!is_rank(row.source) || !is_rank(row.destination)) continue;  // of another world
    sum_bytes += row.bytes;
    ++pair_count;
    if (row.destination < 0) continue;
    if (top == nullptr || row.bytes > top->bytes) top = &row;
  }
  if (top == nullptr || sum_bytes == 0 || pair_count < 3) return;
  const double share = static_cast<double>(top->bytes) / static_cast<double>(sum_bytes);
  if (share * static_cast<double>(pair_count) < kHotShare) return;
  // An estimate of the time at 1 GB/s, only to order it among the others.
  const double weight_s = static_cast<double>(top->bytes) / kNsPerSecond;
  findings->push_back(
      {weight_s, fmt::format("rank {} sends {:.0f} % of all message bytes to rank {} ({} in {} "
                             "messages)",
                             top->source, share * 100, top->destination,
                             bytes_text(static_cast<double>(top->bytes)), grouped(top->count))});
}

/// One function takes a good part of the time.
void Findings::add_hot_function(std::vector<Finding>* findings) const {
  uint64_t count = 0;
  double period = 0;
  for (const ledger::FunctionCount& one : rank_functions_) {
    count += one.self;
    period += static_cast<double>(one.period);
  }
  if (count < kLeastSamples) return;
  const ledger::FunctionCount& top = rank_functions_.front();
  const double share = static_cast<double>(top.period) / std::max(period, 1.0);
  if (share < kHotFunctionShare) return;
  const GlobalFunction& function = model_->functions[top.function];
  const std::string module = function.module.substr(function.module.find_last_of('/') + 1);
  const bool has_symbol = !function.name.starts_with(module + "+0x");
  findings->push_back({share * static_cast<double>(total_ns()) / kNsPerSecond,
                       fmt::format("{:.0f} % of the sampled time is in {}{} ({} of {} samples)",
                                   share * 100, function.name, has_symbol ? " of " + module : "",
                                   grouped(top.self), grouped(count))});
}

void Findings::add_unmatched(std::vector<Finding>* findings) const {
  if (unmatched_count_ == 0) return;
  findings->push_back(
      {kUnmatchedWeight,
       fmt::format("{} end{} of messages or collectives failed, or their partner is not known: the "
                   "archive's communication is not complete",
                   grouped(unmatched_count_), unmatched_count_ == 1 ? "" : "s")});
}

bool Findings::add_split_world(std::vector<Finding>* findings) const {
  uint64_t alone_count = 0;
  uint32_t started_count = 0;
  for (const Group& group : model_->groups) {
    const spool::Process* process = group.process;
    if (process == nullptr || !process->identity || process->identity->world_size != 1) continue;
    if (process->start.world_size < 2) continue;
    ++alone_count;
    started_count = std::max(started_count, process->start.world_size);
  }
  if (alone_count < 2) return false;
  findings->push_back(
      {kSplitWorldWeight,
       fmt::format("each of {} processes is rank 0 of a world of 1, though the launcher started {} "
                   "together: the program probably uses another MPI library than the launcher",
                   alone_count, started_count)});
  return true;
}

size_t Findings::world_count() const {
  return static_cast<size_t>(std::count_if(
      model_->communicators.begin(), model_->communicators.end(),
      [](const GlobalCommunicator& c) { return c.kind == CommunicatorKind::kWorld; }));
}

void Findings::add_worlds(std::vector<Finding>* findings) const {
  if (world_count() < 2) return;
  const auto rank_count = std::count_if(model_->groups.begin(), model_->groups.end(),
                                        [](const Group& group) { return group.rank.has_value(); });
  findings->push_back(
      {kSpawnedWeight,
       fmt::format("{} MPI programs ran under one aon-run: the ranks are the {} of the largest, "
                   "the others' are processes without a rank; aon-run behind each mpirun gives "
                   "each its own files",
                   world_count(), rank_count)});
}

void Findings::add_spawned(std::vector<Finding>* findings) const {
  if (spawn_count_ == 0) return;
  // Of a program that no launcher started they inherit what aon-run has set.
  const char* those = world_count() > 1
                          ? "spawned processes are among those of other MPI programs here, or not "
                            "part of these files"
                          : "spawned processes are not part of these files";
  findings->push_back(
      {kSpawnedWeight, fmt::format("{}: those started through aon-run have a directory of their "
                                   "own, others are not recorded",
                                   those)});
}

std::vector<std::string> Findings::lines(std::span<const LocationTally> tallies) const {
  std::vector<Finding> findings;
  add_aborts(&findings);
  add_losses(tallies, &findings);
  add_lost_definitions(&findings);
  add_unmatched(&findings);
  if (!add_split_world(&findings)) add_worlds(&findings);
  add_spawned(&findings);
  // Where names and ends are missing, times are not what they seem.
  if (model_->job == nullptr || !model_->job->has_damaged_definitions)
    add_times(tallies, &findings);
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.weight_s > b.weight_s; });
  std::vector<std::string> result;
  for (const Finding& finding : findings) {
    if (result.size() < kMaxFindings) result.push_back(finding.text);
  }
  return result;
}

void Findings::add_times(std::span<const LocationTally> tallies, std::vector<Finding>* all) const {
  const WaitTimes waits = wait_times();
  add_culprits(waits, all);
  if (!sees_communication()) add_uneven_region(all);
  add_slow_collectives(all);
  add_nccl(all);
  add_expensive_call(tallies, all);
  add_waiting(waits, all);
  add_hot_spot(all);
  add_hot_function(all);
  add_devices(all);
}

}  // namespace aon::writers
