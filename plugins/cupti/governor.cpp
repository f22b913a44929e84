#include "cupti/governor.h"

#include <aon/definition.h>
#include <aon/writer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cupti/state.h"
#include "cupti/system_clock.h"

namespace aon::cupti {
namespace {

constexpr double kDefaultPercent = 1;
/// Of what is judged: half of the time between two flushes.
constexpr uint64_t kLeastIntervalNs = uint64_t{kDrainMs} * 500'000;
constexpr uint32_t kIntervalsPerPiece = 2;  ///< of a gap: a process may be killed in it
constexpr uint64_t kBytesPerRecord = 128;   ///< about; of those that were thrown away

constexpr uint64_t kCostPeriodNs = 30'000'000'000;

/// --budget, which aon-run hands on.
double budget_percent() {
  const char* text = getenv("AON_BUDGET");
  const double percent = text != nullptr ? strtod(text, nullptr) : 0;
  return percent > 0 && percent <= 100 ? percent : kDefaultPercent;
}

/// CPU clock of another thread of the process, as pthread_getcpuclockid() makes it.
clockid_t clock_of_thread(int thread) {
  constexpr unsigned kPerThreadScheduler = 6;
  return static_cast<clockid_t>(~static_cast<unsigned>(thread) << 3 | kPerThreadScheduler);
}

uint64_t difference(uint64_t now, uint64_t before) { return now > before ? now - before : 0; }

}  // namespace

void Governor::use(const Client* client, const Wanted& wanted) {
  client_ = client;
  wanted_ = wanted;
  graphs_ = wanted.has_graph_nodes ? Graphs::kByNode : Graphs::kAsOne;
  watchdog_ = Watchdog(budget_percent(),
                       shared().quirks.hangs_on_disable ? Detail::kNoCalls : Detail::kOff);
}

/// Intervals begin at the same times of day in all processes, so that the windows of all ranks have
/// the same operations. From then on the steady clock counts: nobody sets it.
void Governor::begin() {
  day_ms_ = (read_clock(CLOCK_REALTIME) - read_clock(CLOCK_MONOTONIC)) / 1'000'000;
  const Writer* w = attached_writer();
  if (w == nullptr) return;
  interval_ticks_ = ticks(w);
  shared().complete_ticks.store(interval_ticks_, std::memory_order_relaxed);
}

/// In windows, too: they tell who launched what, and how many threads launch.
bool Governor::wants_calls() const {
  return wanted_.has_calls && watchdog_.detail() != Detail::kNoCalls;
}

uint64_t Governor::next_interval_ms(uint64_t now_ms) const {
  const uint64_t least = now_ms + day_ms_ + kDrainMs / 2;
  return (least + kDrainMs - 1) / kDrainMs * kDrainMs - day_ms_;
}

Code Governor::switch_on(MissingKinds* missing) {
  const bool has_calls = wants_calls();
  if (is_on_ && watchdog_.is_recording() && has_calls_on_ == has_calls) return kSuccess;
  if (is_on_ && shared().quirks.hangs_on_disable) {
    switch_calls(*client_, has_calls);
    has_calls_on_ = has_calls;
    return kSuccess;
  }
  if (graphs_ == Graphs::kAsOne && !are_graphs_on_) enable_graphs(*client_, missing);
  are_graphs_on_ = graphs_ == Graphs::kAsOne;
  switch_off();
  if (!watchdog_.is_recording()) return kSuccess;
  const Code code = enable_kinds(*client_, has_calls, missing);
  if (code != kSuccess) return code;
  shared().are_graphs_confused = has_been_on_ && shared().quirks.confuses_graph_calls;
  has_been_on_ = true;
  is_on_ = true;
  has_calls_on_ = has_calls;
  return kSuccess;
}

void Governor::switch_off() {
  if (!is_on_ || shared().quirks.hangs_on_disable) return;
  disable_kinds(*client_, has_calls_on_);
  is_on_ = false;
}

void Governor::leave() {
  if (shared().quirks.hangs_on_disable) return;
  switch_off();
  if (are_graphs_on_) disable_graphs(*client_);
  are_graphs_on_ = false;
  graphs_ = Graphs::kByNode;
}

uint64_t Governor::take_spared_ns(const RecordCounts& now, uint64_t threads_cpu_ns) {
  const RecordCounts passed = {.all = now.all - counts_.all, .calls = now.calls - counts_.calls};
  counts_ = now;
  return spared_ns(passed, threads_cpu_ns);
}

Usage Governor::take_usage(Drain* drain) {
  const Shared& all = shared();
  const int worker = all.worker_thread.load(std::memory_order_relaxed);
  const uint64_t lost = all.missing.dropped.load(std::memory_order_relaxed) +
                        all.missing.unbuffered.load(std::memory_order_relaxed) +
                        (all.missing.discarded_bytes.load(std::memory_order_relaxed) +
                         all.missing.late_bytes.load(std::memory_order_relaxed)) /
                            kBytesPerRecord;
  const Usage now = {.elapsed_ns = read_clock(CLOCK_MONOTONIC),
                     .launch_threads = drain->take_launch_threads(),
                     .records_ns = drain->records_ns() + lost * kLostNs,
                     .overhead_ns = drain->overhead_ns(),
                     .worker_cpu_ns = worker != 0 ? read_clock(clock_of_thread(worker)) : 0,
                     .drain_cpu_ns = read_clock(CLOCK_THREAD_CPUTIME_ID)};
  // Another thread that handed a buffer over has used its time for other things.
  if (worker != worker_) sums_.worker_cpu_ns = now.worker_cpu_ns;
  worker_ = worker;
  const Usage before = sums_;
  sums_ = now;
  const uint64_t worker_cpu_ns = difference(now.worker_cpu_ns, before.worker_cpu_ns);
  const uint64_t drain_cpu_ns = difference(now.drain_cpu_ns, before.drain_cpu_ns);
  const uint64_t graphs_ns = (drain->counts().graphs - counts_.graphs) * kGraphNs;
  const uint64_t spared = take_spared_ns(drain->counts(), worker_cpu_ns + drain_cpu_ns);
  if (before.elapsed_ns == 0) return {};
  return {.elapsed_ns = difference(now.elapsed_ns, before.elapsed_ns),
          .launch_threads = now.launch_threads,
          .records_ns = difference(now.records_ns, before.records_ns),
          .overhead_ns = difference(now.overhead_ns, before.overhead_ns),
          .worker_cpu_ns = worker_cpu_ns,
          .drain_cpu_ns = drain_cpu_ns,
          .spared_ns = spared,
          .kept_ns = graphs_ns,
          .next_interval = interval_at(now.elapsed_ns)};
}

/// Of the period of windows.
uint32_t Governor::interval_at(uint64_t now_ns) const {
  return static_cast<uint32_t>((now_ns / 1'000'000 + day_ms_) / kDrainMs % kWindowPeriod);
}

/// Where our thread did not run in time, the next flush follows soon: both are one interval. While
/// there are no records there is nothing to judge.
void Governor::end_interval(Drain* drain) {
  const uint64_t now_ns = read_clock(CLOCK_MONOTONIC);
  if (sums_.elapsed_ns != 0 && now_ns - sums_.elapsed_ns < kLeastIntervalNs) return;
  tell_dropped();
  const Usage usage = take_usage(drain);
  if (usage.elapsed_ns == 0 || blind_ != GapCause::kUnknown) return;
  if (!has_failed_) has_untold_step_ |= watchdog_.step(usage);
  const bool has_failed = switch_on(nullptr) != kSuccess;
  if (has_failed && !has_failed_) {
    tell(Remark::kFailed, ProviderState::kDegraded,
         "kinds of work could not be switched on again: work of that time is not recorded",
         "the driver's log may tell why");
  }
  has_failed_ = has_failed;
  if (!watchdog_.is_recording() || !wants_calls()) drain->forget_captures();
  tell_gap(false);
  const bool tells_step = has_untold_step_ && !has_failed_;
  if (tells_step) tell_step();
  if (tells_step || now_ns - cost_told_ns_ >= kCostPeriodNs) tell_cost(*drain);
}

const char* Governor::wanted_gap() const {
  if (blind_ != GapCause::kUnknown) return gap_name(blind_);
  if (has_failed_) return gap_name(GapCause::kStopped);
  if (!watchdog_.is_recording()) return gap_name(GapCause::kBudget);
  return wanted_.has_calls && watchdog_.detail() == Detail::kNoCalls ? kGapOfCalls : nullptr;
}

void Governor::start_gap(uint64_t start) {
  gap_ticks_ = start;
  shared().open_gap_ticks.store(start, std::memory_order_relaxed);
  shared().open_gap.store(gap_, std::memory_order_release);  // pairs with cupti:gap
}

/// One interval on the timeline for as long as the same is missing, in pieces.
void Governor::tell_gap(bool is_end) {
  const Writer* w = attached_writer();
  if (w == nullptr) return;
  const char* gap = wanted_gap();
  const bool is_same = gap == gap_ && !is_end;
  if (is_same && ++gap_intervals_ < kIntervalsPerPiece) return;
  const uint64_t now = ticks(w);
  if (gap_ != nullptr) write_gap(gap_, gap_ticks_, now);
  gap_ = gap;
  start_gap(now);
  gap_intervals_ = 0;
}

void Governor::tell_step() {
  has_untold_step_ = false;
  Writer* w = attached_writer();
  if (w == nullptr) return;
  static constexpr const char* kNames[] = {"CUPTI: all is recorded", "CUPTI: without calls",
                                           "CUPTI: in windows", "CUPTI: off"};
  const auto level = static_cast<uint32_t>(watchdog_.detail());
  const uint32_t region = aon_intern_region(kNames[level], static_cast<uint8_t>(RegionRole::kUser),
                                            static_cast<uint8_t>(Paradigm::kAon));
  put_event<0>(w, RecordKind::kMark, ticks(w), 0, region,
               static_cast<uint32_t>(ValueType::kUnsigned), level, nullptr);
  char reason[256];
  const bool is_least = shared().quirks.hangs_on_disable;
  if (watchdog_.detail() == Detail::kFull) {
    snprintf(reason, sizeof reason,
             "was above --budget for a time; all is recorded again (%.3g %% of the time last)",
             watchdog_.percent());
  } else {
    snprintf(reason, sizeof reason,
             "above --budget (%.3g %% of the time last), less is recorded: %s%s",
             watchdog_.percent(), detail_text(watchdog_.detail()),
             is_least ? "; this version of CUPTI cannot record less (CUDA 13.0.1 can)" : "");
  }
  tell(Remark::kDetail, ProviderState::kDegraded, reason,
       "a larger --budget; \"GPU work not recorded\" in the archive shows when");
}

/// What CUPTI dropped or gave without times since the last interval is missing somewhere in it.
void Governor::tell_dropped() {
  const Writer* w = attached_writer();
  if (w == nullptr) return;
  const Missing& missing = shared().missing;
  const auto load = [](const std::atomic<uint64_t>& count) {
    return count.load(std::memory_order_relaxed);
  };
  const uint64_t counts[] = {
      load(missing.unbuffered) + load(missing.discarded_bytes), load(missing.dropped),
      load(missing.without_times) + load(missing.unknown) + load(missing.damaged)};
  static constexpr GapCause kCauses[] = {GapCause::kPoolFull, GapCause::kDropped,
                                         GapCause::kUnusable};
  const uint64_t now = ticks(w);
  for (size_t i = 0; i < 3; ++i) {
    if (counts[i] != missing_[i] && interval_ticks_ != 0)
      write_gap(kCauses[i], interval_ticks_, now);
    missing_[i] = counts[i];
  }
  interval_ticks_ = now;
}

/// It is in no other figure of the ledger. Who is killed cannot say it at the end.
void Governor::tell_cost(const Drain& drain) {
  cost_told_ns_ = read_clock(CLOCK_MONOTONIC);
  char text[kCostTextBytes];
  write_cost(text, watchdog_, drain.counts().graphs != 0);
  if (strcmp(text, cost_text_) == 0) return;
  strcpy(cost_text_, text);
  tell(Remark::kCost, ProviderState::kOn, text, "");
}

/// Behind a fatal error what was not read before comes no more. What is measured begins anew.
void Governor::set_blind(GapCause cause) {
  blind_ = cause;
  tell_gap(false);
  const uint64_t complete = shared().complete_ticks.load(std::memory_order_relaxed);
  if (cause == GapCause::kStopped && complete != 0) start_gap(complete);
  sums_.elapsed_ns = 0;
}

void Governor::finish(Drain* drain) {
  tell_dropped();
  tell_gap(true);
  tell_cost(*drain);
}

}  // namespace aon::cupti
