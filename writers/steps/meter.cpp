// The second pass: cuts each process's master thread into steps, and sums them up.

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "writers/profile/late_begin.h"
#include "writers/profile/sampled_time.h"
#include "writers/steps/calls.h"
#include "writers/steps/statistics.h"
#include "writers/steps/steps.h"
#include "writers/steps/summary.h"
#include "writers/steps/tracker.h"

namespace aon::writers {
namespace {

using steps::Cut;

/// Sampled loops may go on for so much of their time on either side.
constexpr double kSampleMargin = 0.1;
constexpr uint64_t kLeastRows = 16;  ///< of each process and loop, however many there are

class Meter : public StepMeter {
 public:
  Meter(StepPlan plan, WaitAnalysis* waits, uint64_t max_rows)
      : plan_(std::move(plan)), waits_(waits), max_rows_(max_rows) {
    summary_.is_annotated = plan_.is_annotated;
  }

  Status begin(const Model& model) override;
  Status begin_location(const Location& location) override;
  Status events(std::span<const Event> events) override;
  Status end_location() override;
  Status finish(const Outcome& outcome) override;
  Status save(StateOut* out) override;
  Status load(StateIn* in) override;
  const StepSummary* summary() const override { return is_finished_ ? &summary_ : nullptr; }
  const std::vector<StepRow>& rows_so_far() const override { return summary_.rows; }

 private:
  struct Loop {
    steps::StepSums sums;
    steps::RowKeeper rows;
    int64_t next_number = 0;
  };

  steps::LoopTime time_of(const StepPlan::Loop& loop) const;
  Status open_waits();
  Status add_call(const steps::Call& call);
  Status add_waits(const steps::Call& call);
  void note_loss();
  void enter(const Event& event);
  void leave(const Event& event);
  void keep(uint32_t loop, int64_t number, const Cut& begin, const Cut& end, bool is_matched);
  void drop_saved();

  StepPlan plan_;
  WaitAnalysis* waits_;
  uint64_t max_rows_;
  uint64_t rows_each_ = 0;
  const Model* model_ = nullptr;
  std::unique_ptr<CallWaits> call_waits_;
  StepSummary summary_;
  bool is_finished_ = false;
  std::map<uint32_t, uint32_t> annotated_;  ///< global region -> loop; the same in all shares
  double run_ns_ = 0;                       ///< of all ranks, start to end of MPI
  bool is_saved_ = false;                   ///< all of summary_.rows

  // Of the location.
  bool is_wanted_ = false;
  uint32_t location_ = 0;
  uint32_t group_ = 0;
  std::optional<steps::CallScanner> scanner_;
  std::vector<steps::LoopTracker> trackers_;
  std::map<uint32_t, Loop> loops_;
  std::unordered_map<uint32_t, profile::SampledTime> call_times_;  ///< by region
  std::optional<CallWait> wait_ahead_;
  Cut now_{};                ///< end of the last call, and what was in MPI and waited up to it
  uint64_t counted_ns_ = 0;  ///< end of the last call that has a token: the search sees no others
  uint64_t begin_ns_ = 0;    ///< the first event
  uint64_t first_ns_ = 0;    ///< end of the first call, that is MPI_Init
  uint64_t last_ns_ = 0;     ///< begin of the last one
  uint32_t depth_ = 0;       ///< of annotated steps
  bool has_no_end_ = false;  ///< the next Leave is none
  bool has_hole_ = false;    ///< the step that runs
  Cut step_begin_{};
  int64_t step_number_ = 0;
};

Status Meter::begin(const Model& model) {
  model_ = &model;
  scanner_.emplace(model);
  uint64_t sharers = 0;
  for (const auto& of_group : plan_.loops) {
    for (const StepPlan::Loop& loop : of_group) {
      ++sharers;
      if (loop.number >= summary_.loops.size()) summary_.loops.resize(loop.number + 1);
      summary_.loops[loop.number].name = model.regions[loop.pattern.region].name;
    }
  }
  for (uint32_t i = 0; plan_.is_annotated && i < model.regions.size(); ++i) {
    if (model.regions[i].role != RegionRole::kStep) continue;
    annotated_[i] = static_cast<uint32_t>(summary_.loops.size());
    summary_.loops.emplace_back().name = model.regions[i].name;
  }
  for (const Group& group : model.groups) {
    for (const auto& [local, global] : group.region_map) sharers += annotated_.count(global);
  }
  rows_each_ = std::max(kLeastRows, max_rows_ / std::max<uint64_t>(sharers, 1));
  return {};
}

/// With the first events: who has none, for shares had them, has no calls that waited either.
Status Meter::open_waits() {
  if (call_waits_ != nullptr || waits_ == nullptr || waits_->summary() == nullptr) return {};
  Result<std::unique_ptr<CallWaits>> reader = waits_->read_calls();
  if (!reader) return reader.error();
  call_waits_ = std::move(*reader);
  return {};
}

/// A loop that was found in a sample may go on for a little on either side, though not into the
/// next one.
steps::LoopTime Meter::time_of(const StepPlan::Loop& loop) const {
  const steps::Candidate& mine = loop.pattern;
  steps::LoopTime time{mine.begin_ns, mine.end_ns, 0, UINT64_MAX};
  if (!plan_.is_sampled) return time;
  const auto length_ns = static_cast<double>(mine.end_ns - mine.begin_ns);
  const auto margin_ns = static_cast<uint64_t>(length_ns * kSampleMargin);
  time.earliest_ns -= std::min(time.earliest_ns, margin_ns);
  time.latest_ns += margin_ns;
  for (const StepPlan::Loop& one : plan_.loops[group_]) {
    const steps::Candidate& other = one.pattern;
    if (one.number == loop.number) continue;
    if (other.begin_ns < mine.begin_ns)
      time.previous_ns = std::max(time.previous_ns, std::min(other.until_ns, mine.begin_ns));
    if (other.end_ns > mine.end_ns)
      // Of calls that fit both, the ones that are mine already stay so.
      time.next_ns = std::min(time.next_ns, other.from_ns >= mine.until_ns
                                                ? other.from_ns
                                                : std::max(other.begin_ns, mine.end_ns));
  }
  time.earliest_ns = std::max(time.earliest_ns, time.previous_ns);
  time.latest_ns = std::min(time.latest_ns, time.next_ns);
  return time;
}

Status Meter::begin_location(const Location& location) {
  drop_saved();
  is_wanted_ = location.type == LocationType::kThread && location.id == location.group;
  if (!is_wanted_) return {};
  location_ = static_cast<uint32_t>(&location - model_->locations.data());
  group_ = location.group;
  scanner_->begin(model_->groups[group_]);
  now_ = {};
  first_ns_ = last_ns_ = counted_ns_ = 0;
  begin_ns_ = UINT64_MAX;
  depth_ = 0;
  trackers_.clear();
  loops_.clear();
  call_times_.clear();
  for (const StepPlan::Loop& loop : plan_.loops[group_]) {
    trackers_.emplace_back(
        loop.pattern, time_of(loop), [this, number = loop.number](const steps::CutStep& step) {
          keep(number, loops_.at(number).next_number++, step.begin, step.end, step.is_matched);
        });
    loops_.try_emplace(loop.number, Loop{{}, steps::RowKeeper(rows_each_)});
  }
  if (Status status = open_waits(); !status || call_waits_ == nullptr) return status;
  Result<std::optional<CallWait>> wait = call_waits_->next(location_);
  if (!wait) return wait.error();
  wait_ahead_ = *wait;
  return {};
}

Status Meter::events(std::span<const Event> events) {
  if (!is_wanted_) return {};
  for (const Event& event : events) {
    begin_ns_ = std::min(begin_ns_, event.time_ns);
    if (event.kind == EventKind::kLostBegin) note_loss();
    if (plan_.is_annotated) {
      if (event.kind == EventKind::kEnter) enter(event);
      if (event.kind == EventKind::kLeave) leave(event);
      has_no_end_ = event.kind == EventKind::kOpenAtEnd || event.kind == EventKind::kCut;
    }
    const steps::Call* call = scanner_->add(event);
    if (call == nullptr) continue;
    if (Status status = add_call(*call); !status) return status;
  }
  return {};
}

/// Adds what was waited in it.
Status Meter::add_waits(const steps::Call& call) {
  while (wait_ahead_ && wait_ahead_->enter_ns < call.leave_ns) {
    if (wait_ahead_->enter_ns >= call.enter_ns) now_.wait_ns += wait_ahead_->wait_ns;
    Result<std::optional<CallWait>> wait = call_waits_->next(location_);
    if (!wait) return wait.error();
    wait_ahead_ = *wait;
  }
  return {};
}

Status Meter::add_call(const steps::Call& call) {
  if (call.token != 0) {
    const uint64_t gap_ns = counted_ns_ == 0 ? 0 : call.enter_ns - counted_ns_;
    const Cut at{call.enter_ns, now_.mpi_ns, now_.wait_ns};
    for (steps::LoopTracker& tracker : trackers_) tracker.add(call.token, gap_ns, at);
    counted_ns_ = call.leave_ns;
  }
  now_.time_ns = call.leave_ns;
  now_.mpi_ns += call.weight == 1 ? call.leave_ns - call.enter_ns
                                  : call_times_[call.region].weigh(begin_ns_, call.enter_ns,
                                                                   call.leave_ns, call.weight);
  if (first_ns_ == 0) first_ns_ = call.leave_ns;
  last_ns_ = call.enter_ns;
  return add_waits(call);
}

/// What was lost may have been calls of MPI: it is not known how much of a step around it was in
/// MPI, nor where in a loop the program is behind it.
void Meter::note_loss() {
  has_hole_ = true;
  now_.time_ns = 0;
  counted_ns_ = 0;
  for (steps::LoopTracker& tracker : trackers_) tracker.interrupt();
}

/// Of nested steps the outermost is one.
void Meter::enter(const Event& event) {
  const uint32_t region = scanner_->global_region(event);
  if (region >= model_->regions.size()) return;
  if (model_->regions[region].role != RegionRole::kStep || depth_++ != 0) return;
  has_hole_ = profile::began_in_hole(event);
  step_begin_ = {event.time_ns, now_.mpi_ns, now_.wait_ns};
  step_number_ = event.value_type() == ValueType::kStep ? static_cast<int64_t>(event.bytes) : -1;
}

/// A step that was open when its thread ended, or whose end was lost, is none. Nor is one whose
/// begin, or something in it, was lost, though its duration is known.
void Meter::leave(const Event& event) {
  const uint32_t region = scanner_->global_region(event);
  if (depth_ == 0 || region >= model_->regions.size()) return;
  if (model_->regions[region].role != RegionRole::kStep || --depth_ != 0) return;
  if (has_no_end_ || has_hole_) return;
  const uint32_t loop = annotated_.at(region);
  loops_.try_emplace(loop, Loop{{}, steps::RowKeeper(rows_each_)});
  keep(loop, step_number_, step_begin_, {event.time_ns, now_.mpi_ns, now_.wait_ns}, true);
}

void Meter::keep(uint32_t loop, int64_t number, const Cut& begin, const Cut& end, bool is_matched) {
  StepRow row{};
  row.group = group_;
  row.loop = loop;
  row.number = number;
  row.begin_ns = begin.time_ns;
  const uint64_t duration_ns = end.time_ns - begin.time_ns;
  const uint64_t mpi_ns = std::min(duration_ns, end.mpi_ns - begin.mpi_ns);
  row.part_ns[static_cast<size_t>(StepPart::kDuration)] = duration_ns;
  row.part_ns[static_cast<size_t>(StepPart::kMpi)] = mpi_ns;
  row.part_ns[static_cast<size_t>(StepPart::kCompute)] = duration_ns - mpi_ns;
  row.part_ns[static_cast<size_t>(StepPart::kWait)] = std::min(mpi_ns, end.wait_ns - begin.wait_ns);
  Loop& kept = loops_.at(loop);
  kept.sums.add(row, is_matched);
  kept.rows.add(row);
  ++summary_.step_count;
}

Status Meter::end_location() {
  if (!is_wanted_) return {};
  for (steps::LoopTracker& tracker : trackers_) tracker.finish(now_);
  if (last_ns_ > first_ns_) run_ns_ += static_cast<double>(last_ns_ - first_ns_);
  for (auto& [number, loop] : loops_) {
    if (loop.sums.count() == 0) continue;
    StepStatistics statistics = loop.sums.result();
    statistics.group = group_;
    statistics.loop = number;
    summary_.statistics.push_back(statistics);
    loop.rows.take(&summary_.rows);
  }
  trackers_.clear();
  loops_.clear();
  return {};
}

Status Meter::finish(const Outcome&) {
  steps::sum_up(plan_, *model_, run_ns_, &summary_);
  call_waits_.reset();
  is_finished_ = true;
  return {};
}

Status Meter::save(StateOut* out) {
  drop_saved();
  out->put(summary_.statistics);
  out->put(summary_.rows);
  out->put(std::exchange(summary_.step_count, 0));
  out->put(std::exchange(run_ns_, 0));
  summary_.statistics.clear();
  is_saved_ = true;  // the rows stay for those that look at them in their save()
  return {};
}

void Meter::drop_saved() {
  if (std::exchange(is_saved_, false)) summary_.rows.clear();
}

Status Meter::load(StateIn* in) {
  const size_t statistics_before = summary_.statistics.size();
  const size_t rows_before = summary_.rows.size();
  uint64_t step_count = 0;
  double run_ns = 0;
  if (!in->append(&summary_.statistics) || !in->append(&summary_.rows) || !in->get(&step_count) ||
      !in->get(&run_ns))
    return in->status();
  const auto is_known = [&](const auto& row) {
    return row.group < model_->groups.size() && row.loop < summary_.loops.size();
  };
  const auto are_known = [&](const auto& rows, size_t before) {
    return std::all_of(rows.begin() + static_cast<std::ptrdiff_t>(before), rows.end(), is_known);
  };
  in->check(are_known(summary_.statistics, statistics_before) &&
            are_known(summary_.rows, rows_before));
  summary_.step_count += step_count;
  run_ns_ += run_ns;
  return in->status();
}

}  // namespace

std::unique_ptr<StepMeter> make_step_meter(StepPlan plan, WaitAnalysis* waits, uint64_t max_rows) {
  return std::make_unique<Meter>(std::move(plan), waits, max_rows);
}

}  // namespace aon::writers
