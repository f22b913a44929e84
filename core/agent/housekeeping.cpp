#include "core/agent/housekeeping.h"

#include <aon/nccl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>

#include "core/agent/affinity.h"
#include "core/agent/proc.h"
#include "core/agent/timing.h"
#include "core/base/log.h"

namespace aon::agent {
namespace {

constexpr int kNice = 5;
constexpr uint64_t kSecondNs = 1'000'000'000;
constexpr uint64_t kFirstInitNs = 10 * kSecondNs;  ///< MPI_Init of the first ranks ends before
constexpr uint64_t kLeastProviderPeriod = 32;      ///< one in so many, before none
constexpr uint64_t kPeriodNs = kSecondNs / 10;
constexpr std::chrono::milliseconds kLookPeriod{10};
constexpr uint64_t kCpuAgeParts = 50;
/// Of a call and of an event, beside what storing a record costs, which is measured: arguments, new
/// chunks (docs/overhead.md).
constexpr double kPairNs = 3;
constexpr double kSingleNs = 2;
/// What the agent does for a record: drains, encodes and compresses it (docs/overhead.md).
constexpr double kAgentRecordNs = 50;
/// Four counters at both ends of a call, by the figures that are published for rdpmc.
constexpr double kCountersNs = 300;
/// Counting a call; most of those are polls, which copy the requests they are given: 2 to 4 ns.
constexpr double kCountedNs = 4;

std::chrono::nanoseconds until_beat() {
  return std::chrono::nanoseconds(until_beat_ns(wall_ns(), kPeriodNs));
}

/// Whose word says something else.
bool is_no_mode(uint32_t site) {
  return site == kNcclLimitsSite || site == kNcclAskedSite || site == kNcclUncountedSite;
}

std::string join(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : ",") + item;
  return text;
}

bool wants_mpi(const Options& options) {
  return provider::is_wanted({options.providers, options.without}, "mpi");
}

/// "worker" tells ids that a provider makes up from those of the workers before.
std::string provider_config(const Config& config, const State& state) {
  const Options& options = config.arguments.options;
  return "sampling=" + std::to_string(options.sampling_hz) + "\ncall-graph=" + options.call_graph +
         "\nsampling-fallback=" + options.sampling_fallback + "\nevents=" + join(options.events) +
         "\nbudget=" + std::to_string(options.budget_percent) +
         "\nborder-events=" + (wants_mpi(options) ? "1" : "0") +
         "\ngpu-counters=" + options.gpu_counters +
         "\nworker=" + std::to_string(state.header().worker_count) + "\n";
}

}  // namespace

Housekeeping::Housekeeping(const Config& config, State* state, Inbox* inbox, ModeTable* modes,
                           ActivityTable* activity, const Drainer* drainer, const Encoder* encoder,
                           StackTable* stacks, StuckThreads* stuck)
    : config_(config),
      state_(state),
      inbox_(inbox),
      modes_(modes),
      activity_(activity),
      drainer_(drainer),
      encoder_(encoder),
      stuck_(stuck),
      tick_source_(clock::choose_tick_source()),
      providers_({config.provider_folder,
                  {config.arguments.options.providers, config.arguments.options.without},
                  config.arguments.left_alone,
                  config.arguments.wrong,
                  provider_config(config, *state),
                  stacks},
                 inbox, state),
      crash_watch_(config, inbox),
      unseen_(config.arguments.options),
      notes_(inbox, &state->header().notes),
      topology_file_(config, inbox),
      budget_(config.arguments.options.budget_percent),
      nccl_levels_(config.job_folder, modes, inbox,
                   [this](uint32_t process, uint32_t site) { budget_.forget(process, site); }),
      events_(state, affinity::count_cpus(config.allowed_cpus)) {}

Housekeeping::~Housekeeping() { stop(); }

void Housekeeping::start() {
  crash_watch_.start();
  report_clock();
  notes_.tell_again();
  thread_ = std::thread([this] { run(); });
}

void Housekeeping::process_started(uint32_t process, int32_t pid, int32_t rank) {
  const MutexLock lock(&m_);
  // Of a process that an earlier worker followed, those have been accounted; a new one has none.
  const uint64_t counted_calls =
      process_cell(process).counted_calls.load(std::memory_order_relaxed);
  events_.put({true, process, pid, rank, counted_calls, {}}, monotonic_ns());
  before_end_ns_.reset();  // the launch goes on
  if (has_work()) wake_.notify_one();
}

void Housekeeping::process_left_init() {
  const MutexLock lock(&m_);
  has_left_init_ = true;
  wake_.notify_one();
}

void Housekeeping::process_ended(uint32_t process, std::vector<int32_t> tids) {
  const MutexLock lock(&m_);
  events_.put({false, process, 0, 0, 0, std::move(tids)}, monotonic_ns());
  wake_.notify_one();
}

void Housekeeping::note(RecordingNote note, const std::string& program) {
  const MutexLock lock(&m_);
  std::pair fresh(note, program);
  // A look that hangs is told each second, and a provider that does may hold us for long.
  if (std::find(fresh_notes_.begin(), fresh_notes_.end(), fresh) != fresh_notes_.end()) return;
  fresh_notes_.push_back(std::move(fresh));
  wake_.notify_one();
}

void Housekeeping::process_refused(const Error& reason) {
  const MutexLock lock(&m_);
  if (refusal_) return;
  refusal_ = reason;
  wake_.notify_one();
}

void Housekeeping::tell_refusal(const Error& reason) {
  ProviderDefinition state{};
  state.state = ProviderState::kDegraded;
  const char* remedy = reason.code == Code::kUnavailable ? "aon-run --node-memory SIZE"
                       : reason.code == Code::kBusy      ? "ulimit -n 65536"
                                                         : "";
  inbox_->define(spool::kNodeProcess, DefinitionType::kProvider, state,
                 {"memory", reason.message, remedy});
}

/// The start of the providers, some 20 ms of CPU time, is not waited for.
void Housekeeping::let_ranks_start() {
  MutexLock lock(&m_);
  const uint64_t end_ns = monotonic_ns() + kStartNs;
  while (!is_stopping_ && !is_hurried_ && events_.are_cpus_wanted() && monotonic_ns() < end_ns)
    lock.wait_for(&wake_, kLookPeriod);
}

void Housekeeping::run() {
  // Ranks attach while this starts; they come first.
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice);
  let_ranks_start();
  record_costs_ = measure_record_costs(tick_source_);
  connect_to_service();
  providers_.start();
  last_second_ns_ = monotonic_ns();
  Beat full_second(kSecondNs, wall_ns());
  const uint64_t started_ns = last_second_ns_;
  if (state_->header().worker_count > 1)  // an earlier worker has reckoned with it
    last_agent_cpu_ns_ = state_->header().keeper_cpu_ns.load(std::memory_order_relaxed);
  MutexLock lock(&m_);
  for (;;) {
    if (!is_stopping_ && !has_left_init_ && !has_work()) lock.wait_for(&wake_, until_beat());
    const bool is_last = is_stopping_;
    const bool is_after_init = std::exchange(has_left_init_, false);
    is_busy_ = true;
    lock.unlock();
    take_events();
    const uint64_t now_ns = monotonic_ns();
    providers_.tick(now_ns);
    crash_watch_.tick(now_ns);
    const bool is_second = full_second.is_due(wall_ns());
    read_ranks_cpu(now_ns, is_second || is_last || is_after_init);
    // Ranks in MPI_Init sleep: their start is no measure.
    if (is_after_init && now_ns - started_ns < kFirstInitNs) hold_budget(false);
    const bool is_start = now_ns - started_ns < kStartNs;  // ranks attach meanwhile
    if (is_second && !is_start) second();
    lock.lock();
    is_busy_ = false;
    settled_.notify_all();
    if (is_last) break;
  }
  lock.unlock();
  crash_watch_.finish();
  providers_.stop();
  second();
  lock.lock();
  has_ended_ = true;
  settled_.notify_all();
}

/// Where a site runs one, it has read what users may not.
void Housekeeping::connect_to_service() {
  auto page = service::PageReader::connect(service::PageReader::socket_path());
  const bool is_usable =
      page && (*page)->clock_is_tsc() == (tick_source_ == clock::TickSource::kTsc);
  if (is_usable) service_ = std::move(*page);
  if (!page && page.error().code != Code::kNotFound)
    AON_LOG_WARNING("%s", page.error().message.c_str());
  providers_.use_service(service_.get());
  crash_watch_.use_service(service_.get());
}

bool Housekeeping::has_work() const {
  const bool is_hurried = (is_hurried_ || is_stopping_) && !events_.is_empty();
  return is_hurried || events_.is_due(monotonic_ns());
}

void Housekeeping::take_events() {
  std::vector<ProcessEvent> events;
  std::vector<std::pair<RecordingNote, std::string>> notes;
  std::optional<Error> refusal;
  {
    const MutexLock lock(&m_);
    if (has_work()) events = events_.take();
    notes.swap(fresh_notes_);
    if (!is_refusal_told_) refusal = refusal_;
    is_refusal_told_ = refusal_.has_value();
  }
  if (refusal) tell_refusal(*refusal);
  for (const auto& [note, program] : notes) notes_.add(note, program);
  for (const ProcessEvent& event : events) event.is_start ? take_start(event) : take_end(event);
}

void Housekeeping::take_start(const ProcessEvent& event) {
  Load& load = loads_[event.process];
  load.pid = event.pid;
  load.start_ns = load.cpu_due_ns = monotonic_ns();
  load.activity = activity_->of(event.process);
  load.counted_calls = event.counted_calls;
  // Not where processes wait for an answer: a thread in a driver is waited for.
  if (event.pid != 0) affinity::leave_cores_of(event.pid);
  providers_.process_started(event.process, event.pid, event.rank);
}

void Housekeeping::take_end(const ProcessEvent& event) {
  const ProcessCell& cell = process_cell(event.process);
  // Only now: a Hello that comes late would have more to say.
  if (cell.is_followed.load(std::memory_order_relaxed) != 0)
    unseen_.report_process(cell, mpi_.of(event.process), inbox_);
  mpi_.forget(event.process);
  providers_.process_ended(event.process, cell.is_elsewhere != 0);
  crash_watch_.process_ended(cell, event.tids, monotonic_ns());
  loads_[event.process].has_ended = true;
  budget_.forget(event.process);
}

void Housekeeping::second() {
  report_clock();
  topology_file_.write();
  nccl_levels_.second(tick_source_);
  hold_budget(true);
  report_usage();
  if (unseen_.wants_mpi()) look_for_mpi();
  if (stuck_ != nullptr) stuck_->work(tick_source_, monotonic_ns());
}

/// Which library those have loaded that have not said a word on MPI.
void Housekeeping::look_for_mpi() {
  for (auto& [process, load] : loads_) {
    const ProcessCell& cell = process_cell(process);
    const bool has_told = cell.has_told_mpi.load(std::memory_order_relaxed) != 0 ||
                          cell.is_in_init.load(std::memory_order_relaxed) != 0;
    if (load.has_ended || load.pid == 0 || load.is_mpi_told || has_told) continue;
    mpi_.want(process, load.pid, cell.cpu_time_ns.load(std::memory_order_relaxed));
    const std::string library = mpi_.of(process);
    if (library.empty() || cell.is_followed.load(std::memory_order_relaxed) != 0) continue;
    UnseenPrograms::report_loaded(process, library, inbox_);
    load.is_mpi_told = true;
  }
  mpi_.look();
}

void Housekeeping::report_clock() {
  inbox_->define(spool::kNodeProcess, DefinitionType::kClock, clock::take_snapshot(tick_source_));
}

ProcessCell& Housekeeping::process_cell(uint32_t process) const {
  return state_->process(process - state_->header().first_process);
}

/// A process may be reaped before its end is seen: the last reading stays. Where it runs, each
/// takes 20 us: it may be old by a part of the process's age.
void Housekeeping::read_ranks_cpu(uint64_t now_ns, bool are_all_due) {
  for (auto& [process, load] : loads_) {
    if (load.has_ended || (!are_all_due && now_ns < load.cpu_due_ns)) continue;
    load.cpu_due_ns = now_ns + (now_ns - load.start_ns) / kCpuAgeParts;
    ProcessCell& cell = process_cell(process);
    const uint64_t cpu_ns = proc::cpu_time_ns(load.pid);
    if (cpu_ns > cell.cpu_time_ns.load(std::memory_order_relaxed))
      cell.cpu_time_ns.store(cpu_ns, std::memory_order_relaxed);
  }
}

/// What recording cost the processes since the last second.
double Housekeeping::read_costs() {
  double cost_ns = 0;
  for (auto it = loads_.begin(); it != loads_.end();) {
    const uint32_t phase =
        process_cell(it->first).phase.load(std::memory_order_acquire);  // pairs with agent:phase
    // Then its last record is encoded.
    const bool is_done =
        it->second.has_ended && phase == static_cast<uint32_t>(ProcessPhase::kFinished);
    cost_ns += take_costs(&it->second);
    // The encoder let go of it, of a short one maybe before its start was handled here.
    if (is_done) activity_->forget(it->first);
    it = is_done ? loads_.erase(it) : std::next(it);
  }
  return cost_ns;
}

/// What counting calls cost since the last second. Not the budget's to lower: a poll is counted in
/// every mode, for what it may find.
double Housekeeping::read_counting_costs() {
  uint64_t calls = 0;
  for (auto& [process, load] : loads_) {
    const uint64_t now = process_cell(process).counted_calls.load(std::memory_order_relaxed);
    calls += now - std::min(now, load.counted_calls);
    load.counted_calls = std::max(now, load.counted_calls);
  }
  return static_cast<double>(calls) * kCountedNs;
}

double Housekeeping::take_costs(Load* load) const {
  const double pair_ns = record_costs_.call_ns + kPairNs;
  const double single_ns = record_costs_.event_ns + kSingleNs;
  double cost_ns = 0;
  for (uint32_t kind = 0; kind < kRecordKindCount; ++kind) {
    const uint64_t now = load->activity->kind_count[kind].load(std::memory_order_relaxed);
    const auto records = static_cast<double>(now - load->kind_count[kind]);
    load->kind_count[kind] = now;
    if (static_cast<RecordKind>(kind) == RecordKind::kNcclCall) load->nccl_delta = records;
    cost_ns += records * (is_call(static_cast<RecordKind>(kind)) ? pair_ns : single_ns);
    if (static_cast<RecordKind>(kind) == RecordKind::kCounters) cost_ns += records * kCountersNs;
  }
  for (uint32_t site = 0; site < kMaxSites; ++site) {
    const uint64_t now = load->activity->site_count[site].load(std::memory_order_relaxed);
    load->site_delta[site] = static_cast<uint32_t>(now - load->site_count[site]);
    load->site_count[site] = now;
  }
  return cost_ns + nccl_cost_ns(load->nccl_delta, load->site_delta[kNcclStepSite]);
}

std::vector<SiteLoad> Housekeeping::read_sites(double seconds) {
  const double call_ns = record_costs_.call_ns + kPairNs + kAgentRecordNs;
  std::vector<SiteLoad> sites;
  modes_->for_each([&](uint32_t process, const std::atomic<uint32_t>* modes) {
    const auto found = loads_.find(process);
    if (found == loads_.end()) return;
    for (uint32_t site = 0; site < kMaxSites; ++site) {
      const uint32_t mode = modes[site].load(std::memory_order_relaxed) & ~kModePaused;
      if (mode == kModeUndefined || mode == kModeFull || is_no_mode(site)) continue;
      const Load& load = found->second;
      if (site == kNcclProxySite || site == kNcclFixedSite) {
        const bool stays_low = site == kNcclProxySite && mode == kModeCount &&
                               (modes[kNcclUncountedSite].load(std::memory_order_relaxed) &
                                ~kModePaused) != kModeUndefined;
        if (stays_low) continue;  // nothing to take back
        // Its mode is a level: all that comes of NCCL is its cost.
        const double nccl_ns = nccl_cost_ns(load.nccl_delta, load.site_delta[kNcclStepSite]) +
                               load.nccl_delta * kAgentRecordNs;
        sites.push_back({process, site, mode, nccl_ns / seconds, kNcclLowestPeriod});
        continue;
      }
      sites.push_back({process, site, mode, load.site_delta[site] * call_ns / seconds});
    }
  });
  return sites;
}

/// `is_measure`: what was spent since the last time is held against the budget, else only told.
void Housekeeping::hold_budget(bool is_measure) {
  const uint64_t now_ns = monotonic_ns();
  const double seconds = static_cast<double>(now_ns - last_second_ns_) / 1e9;
  last_second_ns_ = now_ns;
  StateHeader& header = state_->header();
  const uint64_t ranks_ns = state_->sum_cpu_time_ns();
  const uint64_t agent_ns = agent_cpu_ns();
  const double counting_ns = read_counting_costs();
  IntervalCost cost{};
  cost.seconds = seconds;
  cost.application_ns = read_costs();
  std::vector<SiteLoad> sites = read_sites(std::max(seconds, 1e-3));
  cost.application_ns += take_provider_costs(std::max(seconds, 1e-3), &sites);
  cost.agent_ns = static_cast<double>(agent_ns - last_agent_cpu_ns_);
  cost.ranks_ns = static_cast<double>(ranks_ns - std::min(ranks_ns, last_ranks_cpu_ns_));
  last_agent_cpu_ns_ = agent_ns;
  last_ranks_cpu_ns_ = ranks_ns;
  header.application_cost_ns += static_cast<uint64_t>(cost.application_ns + counting_ns);
  if (!is_measure) return;
  for (const ModeChange& change : budget_.step(cost, sites)) apply(change);
}

double Housekeeping::take_provider_costs(double seconds, std::vector<SiteLoad>* sites) {
  // The last step but one of sampling is two samples a second or more, the last one is one.
  const auto last_period = static_cast<uint32_t>(std::bit_floor(
      std::max<uint64_t>(config_.arguments.options.sampling_hz / 2, kLeastProviderPeriod)));
  double sum_ns = 0;
  for (const NodeHost::Cost& cost : providers_.costs()) {
    NodeHost::Cost& last = provider_costs_[cost.provider];
    const auto cost_ns = static_cast<double>(cost.cost_ns - last.cost_ns);
    const double both_ns = cost_ns + static_cast<double>(cost.agent_ns - last.agent_ns);
    last = cost;
    sum_ns += cost_ns;
    const uint32_t mode =
        cost.divisor == 0 ? static_cast<uint32_t>(kModeCount) : kModeSample + cost.divisor - 1;
    sites->push_back({spool::kNodeProcess, kFirstProviderSite + cost.provider, mode,
                      both_ns / seconds, last_period});
  }
  return sum_ns;
}

bool Housekeeping::throttle(const ModeChange& change) {
  const bool is_off = change.new_mode == static_cast<uint32_t>(kModeCount);
  return providers_.throttle(change.site - kFirstProviderSite,
                             is_off ? 0 : change.new_mode - kModeSample + 1);
}

void Housekeeping::apply(const ModeChange& change) {
  bool is_changed = change.site >= kFirstProviderSite && throttle(change);
  modes_->for_each([&](uint32_t process, std::atomic<uint32_t>* modes) {
    if (process != change.process) return;
    uint32_t word = modes[change.site].load(std::memory_order_relaxed);
    // The pause bit is the process's.
    while ((word & ~kModePaused) == change.old_mode && !is_changed)
      is_changed = modes[change.site].compare_exchange_weak(
          word, change.new_mode | (word & kModePaused), std::memory_order_relaxed);
  });
  if (!is_changed) return;
  BudgetDefinition definition{};
  definition.process = change.process;
  definition.site = change.site;
  definition.old_mode = change.old_mode;
  definition.new_mode = change.new_mode;
  definition.ticks = clock::now_ticks(tick_source_);
  inbox_->define(change.process, DefinitionType::kBudget, definition);
}

/// Of the worker, and of the processes beside it.
uint64_t Housekeeping::agent_cpu_ns() const {
  return proc::own_cpu_time_ns() + state_->header().keeper_cpu_ns.load(std::memory_order_relaxed);
}

void Housekeeping::report_usage() {
  const StateHeader& header = state_->header();
  UsageDefinition usage{};
  usage.agent_cpu_ns = header.dead_workers_cpu_ns + agent_cpu_ns();
  usage.ranks_cpu_ns = last_ranks_cpu_ns_;
  usage.application_cost_ns = header.application_cost_ns;
  usage.segment_bytes = drainer_->peak_ring_bytes();
  usage.staging_bytes = config_.staging_bytes;
  usage.agent_resident_bytes = proc::own_resident_bytes();
  usage.disk_used_bytes = encoder_->disk_bytes();
  usage.ticks = clock::now_ticks(tick_source_);
  inbox_->define(spool::kNodeProcess, DefinitionType::kUsage, usage);
}

}  // namespace aon::agent
