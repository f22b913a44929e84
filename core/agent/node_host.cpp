#include "core/agent/node_host.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <set>

#include "core/agent/timing.h"
#include "core/base/log.h"
#include "core/spool/format.h"

namespace aon::agent {
namespace {

constexpr uint32_t kAgentMetric = 0x80000000u;  ///< ids of processes stay below
constexpr uint32_t kMaxProviderDefinitionBytes = 1u << 17;
constexpr uint64_t kMillisecondNs = 1'000'000;
constexpr uint64_t kLogPeriodNs = 100 * kMillisecondNs;
/// Taking a sample and encoding its record, without unwinding: 0.5 to 1.1 us, measured at 4 kHz.
constexpr uint64_t kRecordNs = 1000;
constexpr const char* kGapText =
    "the agent's worker was killed: the counts lack what happened until the next one ran";

static_assert(AON_PROCESS_NODE == spool::kNodeProcess);

uint32_t hash_of(const std::string& text) {
  uint32_t hash = 2166136261u;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619u;
  return hash;
}

uint64_t thread_cpu_ns() noexcept {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

}  // namespace

/// What a provider sees as its core.
struct NodeHost::Hosted {
  struct NodeState {
    ProviderState state;
    std::string reason;
    std::string remedy;
  };
  NodeHost* host;
  provider::Provider provider;
  uint16_t index;
  uint64_t period_ns;  ///< of its ticks; 0: it wants none
  Beat beat;
  uint64_t last_log_ns = 0;
  bool has_failed = false;
  std::optional<NodeState> node_state{};  ///< as it has said itself
  uint64_t cost_ns = 0;                   ///< of the processes it watches
  uint64_t agent_ns = 0;                  ///< what goes with it in the agent
  uint32_t divisor = 1;
  std::unique_ptr<SharedMetrics> shared =
      nullptr;  ///< the service reads, and the provider was not started
};

/// The functions of aon_core_api; `aon_core` is a Hosted.
struct NodeHost::Table {
  static Hosted* hosted(aon_core* core) { return reinterpret_cast<Hosted*>(core); }

  static uint64_t now_ticks(aon_core* core) {
    return clock::now_ticks(hosted(core)->host->tick_source_);
  }

  static uint32_t define_metric(aon_core* core, uint32_t process, const char* name,
                                const char* unit, const char* description, aon_metric_mode mode) {
    Hosted* self = hosted(core);
    NodeHost& host = *self->host;
    const std::string full_name = std::string(self->provider.name()) + "::" + name;
    const auto known = host.metrics_.find({process, full_name});
    if (known != host.metrics_.end()) return known->second;
    if (host.metrics_.size() >= kMaxMetrics) return AON_NO_ID;
    uint32_t id = (hash_of(full_name) | kAgentMetric) & ~1u;  // never AON_NO_ID
    while (host.metric_ids_.count({process, id}) != 0) id += 2;
    host.metric_ids_[{process, id}] = true;
    host.metrics_[{process, full_name}] = id;
    MetricDefinition metric{};
    metric.id = id;
    metric.mode = static_cast<MetricMode>(mode);
    metric.node_wide = process == AON_PROCESS_NODE ? 1 : 0;
    metric.provider = self->index;
    host.inbox_->define(process, DefinitionType::kMetric, metric, {full_name, unit, description});
    if (mode == AON_METRIC_ACCUMULATED && host.series_.add_accumulated(process, id))
      host.continued_.insert({process, self->provider.name()});
    return id;
  }

  static void sample(aon_core* core, uint32_t process, uint32_t metric, uint64_t ticks,
                     double value, uint64_t enabled_ns, uint64_t running_ns) {
    // What does not fit is counted for the ledger.
    hosted(core)->host->series_.put(process, metric, ticks, value, enabled_ns, running_ns);
  }

  static void set_state(aon_core* core, uint32_t process, aon_state state, const char* reason,
                        const char* remedy) {
    NodeHost& host = *hosted(core)->host;
    const std::string name = hosted(core)->provider.name();
    std::string text = reason;
    if (host.continued_.count({process, name}) != 0) {
      if (state == AON_STATE_ON) state = AON_STATE_DEGRADED;
      text += (text.empty() ? "" : "; ") + std::string(kGapText);
    }
    ProviderDefinition definition{};
    definition.state = static_cast<ProviderState>(state);
    if (process == AON_PROCESS_NODE) hosted(core)->node_state = {definition.state, text, remedy};
    host.inbox_->define(process, DefinitionType::kProvider, definition, {name, text, remedy});
  }

  static uint32_t intern(aon_core*, const char*) { return AON_NO_ID; }
  static void* reserve(aon_core*, uint32_t) { return nullptr; }
  static void commit(aon_core*, void*) {}

  static void log(aon_core* core, aon_log_level level, const char* text) {
    Hosted* self = hosted(core);
    const uint64_t now_ns = clock::take_snapshot(self->host->tick_source_, 1).monotonic_raw_ns;
    if (now_ns - self->last_log_ns < kLogPeriodNs) return;
    self->last_log_ns = now_ns;
    AON_LOG_AT(static_cast<LogLevel>(level), "%s: %s", self->provider.name(), text);
  }

  static aon_status send_message(aon_core*, uint32_t, const void*, uint32_t, const int*, uint32_t) {
    return AON_UNAVAILABLE;
  }

  static aon_status define(aon_core* core, uint32_t process, uint32_t type, const void* payload,
                           uint32_t payload_bytes) {
    const bool is_device = type == static_cast<uint32_t>(DefinitionType::kDevice);
    const bool is_of_process = type >= static_cast<uint32_t>(DefinitionType::kMapping) &&
                               type <= static_cast<uint32_t>(DefinitionType::kJitSymbol);
    if (!is_of_process && !(is_device && process == AON_PROCESS_NODE)) return AON_INVALID;
    if (payload_bytes > kMaxProviderDefinitionBytes) return AON_INVALID;
    hosted(core)->host->inbox_->define_bytes(process, static_cast<DefinitionType>(type), payload,
                                             payload_bytes);
    return AON_OK;
  }

  static aon_status put_record(aon_core* core, uint32_t process, uint32_t stream,
                               const void* bytes) {
    Record record{};
    std::memcpy(&record.head, bytes, sizeof(record.head));
    if (stream != spool::kCallSampleSlot || !is_valid(record.head) || record.head.slot_count > 2)
      return AON_INVALID;
    std::memcpy(&record, bytes, record.head.slot_count * kSlotBytes);
    hosted(core)->agent_ns += kRecordNs;
    return hosted(core)->host->series_.put_record(process, spool::kCallSampleSlot, record)
               ? AON_OK
               : AON_BUSY;
  }

  static void add_lost(aon_core* core, uint32_t process, uint32_t stream, uint64_t count,
                       uint64_t first_ticks, uint64_t last_ticks) {
    if (stream != spool::kCallSampleSlot) return;
    hosted(core)->host->series_.add_refused(process, spool::kCallSampleSlot, count, first_ticks,
                                            last_ticks);
  }

  static void add_cost(aon_core* core, uint64_t cost_ns) { hosted(core)->cost_ns += cost_ns; }

  static uint32_t unwind(aon_core* core, uint32_t process, const aon_stack_copy* copy,
                         uint64_t* frames, uint32_t capacity) {
    NodeHost& host = *hosted(core)->host;
    const uint64_t begin_ns = thread_cpu_ns();
    const uint32_t count =
        host.stack_walker_.unwind(process, *copy, {frames, capacity}, host.now_ns_);
    hosted(core)->agent_ns += thread_cpu_ns() - begin_ns;
    return count;
  }

  static uint32_t take_stack(aon_core* core, uint32_t process, aon_noted_stack* stack) {
    StackTable* stacks = hosted(core)->host->settings_.stacks;
    return stacks != nullptr && stacks->take(process, stack) ? 1 : 0;
  }

  static void set_stack_rate(aon_core* core, uint32_t process, uint32_t rate_hz) {
    StackTable* stacks = hosted(core)->host->settings_.stacks;
    if (stacks != nullptr) stacks->set_rate(process, rate_hz);
  }

  static constexpr aon_core_api kApi = {AON_PROVIDER_ABI, sizeof(aon_core_api),
                                        now_ticks,        define_metric,
                                        sample,           set_state,
                                        intern,           reserve,
                                        commit,           log,
                                        send_message,     define,
                                        put_record,       add_lost,
                                        add_cost,         unwind,
                                        take_stack,       set_stack_rate};
};

NodeHost::NodeHost(NodeHostSettings settings, Inbox* inbox, const State* state)
    : settings_(std::move(settings)),
      inbox_(inbox),
      series_(state),
      tick_source_(clock::choose_tick_source()) {}

NodeHost::~NodeHost() { stop(); }

std::vector<std::string> NodeHost::wanted_files() const {
  std::vector<std::string> files;
  std::error_code ignored;
  for (const std::string& name : provider::installed_names(settings_.folder, settings_.folder)) {
    const std::filesystem::path path = provider::provider_path(settings_.folder, name);
    const bool is_shim = !std::filesystem::exists(path, ignored);
    if (!is_shim && provider::is_wanted(settings_.selection, name)) files.push_back(path);
  }
  for (const std::string& name : settings_.selection.providers) {
    if (name.starts_with('/') && provider::is_wanted(settings_.selection, name))
      files.push_back(name);
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// Shims too: what is preloaded into programs cannot say that it was left out.
void NodeHost::find_excluded() {
  const std::string libraries = provider::library_folder(settings_.folder);
  for (const std::string& name : provider::installed_names(libraries, settings_.folder)) {
    if (auto exclusion = provider::exclusion(settings_.selection, name))
      excluded_[name] = std::move(*exclusion);
  }
  for (const LeftAlone& one : settings_.left_alone)
    excluded_[one.provider] = provider::left_alone(one);
}

void NodeHost::report_excluded(uint32_t process) {
  for (const auto& [name, exclusion] : excluded_) {
    ProviderDefinition definition{};
    definition.state = ProviderState::kOff;
    inbox_->define(process, DefinitionType::kProvider, definition,
                   {name, exclusion.reason, exclusion.remedy});
  }
}

void NodeHost::report_elsewhere(uint32_t process) {
  ProviderDefinition definition{};
  definition.state = ProviderState::kDegraded;
  inbox_->define(
      process, DefinitionType::kProvider, definition,
      {"recording",
       "it is in a PID namespace that its agent does not see: what it recorded itself is "
       "here, nothing that is asked of the kernel (exit status, CPU time, binding, "
       "counters, samples, memory, stacks)",
       "aon-run before the container's command, or containers that share a PID "
       "namespace"});
}

/// Of a job whose options nobody read before it began.
void NodeHost::report_wrong() {
  std::string reason;
  std::set<std::string> variables;
  for (const WrongSetting& one : settings_.wrong) {
    reason += (reason.empty() ? "" : "; ") + one.message;
    variables.insert(one.variable);
  }
  if (reason.empty()) return;
  std::string remedy = "change ";
  for (const std::string& one : variables) remedy += (one == *variables.begin() ? "" : ", ") + one;
  ProviderDefinition definition{};
  definition.state = ProviderState::kDegraded;
  inbox_->define(spool::kNodeProcess, DefinitionType::kProvider, definition,
                 {"options", "left out: " + reason, remedy + "; aon-task --check tells"});
}

void NodeHost::start() {
  find_excluded();
  report_wrong();
  report_excluded(spool::kNodeProcess);
  for (const std::string& file : wanted_files()) load(file);
}

void NodeHost::load(const std::string& path) {
  std::optional<ProviderCall::Scope> loading(std::in_place, &call_, path, "dlopen()");
  auto loaded = provider::Provider::load(path, AON_HOST_NODE, settings_.folder);
  loading.reset();
  if (!loaded) {
    AON_LOG_WARNING("provider %s: %s", path.c_str(), loaded.error().message.c_str());
    return;
  }
  const uint64_t period_ns = loaded->tick_period_ms() * kMillisecondNs;
  hosted_.push_back(std::unique_ptr<Hosted>(new Hosted{this, std::move(*loaded),
                                                       static_cast<uint16_t>(hosted_.size()),
                                                       period_ns, Beat(period_ns)}));
  Hosted* hosted = hosted_.back().get();
  if (share(hosted)) return;
  const ProviderCall::Scope calls(&call_, hosted->provider.name(), "start()");
  const Status status =
      hosted->provider.start(reinterpret_cast<aon_core*>(hosted), Table::kApi, settings_.config);
  if (!status)
    AON_LOG_INFO("%s", status.error().message.c_str());
  else if (!hosted->node_state)
    Table::set_state(reinterpret_cast<aon_core*>(hosted), AON_PROCESS_NODE, AON_STATE_ON, "", "");
}

/// True: the node's service reads what this provider would.
bool NodeHost::share(Hosted* hosted) {
  const auto view = page_ != nullptr ? page_->provider(hosted->provider.name()) : std::nullopt;
  if (!view || view->state == AON_STATE_OFF) return false;
  hosted->shared = std::make_unique<SharedMetrics>(page_, view->index);
  hosted->shared->start(view->state);
  // The state comes after the metrics: these tell whether they go on from a worker that was killed.
  hosted->shared->tick(reinterpret_cast<aon_core*>(hosted), Table::kApi, now_ns_);
  Table::set_state(reinterpret_cast<aon_core*>(hosted), AON_PROCESS_NODE,
                   static_cast<aon_state>(view->state), view->reason.c_str(), view->remedy.c_str());
  return true;
}

void NodeHost::report_failure(Hosted* hosted) {
  if (hosted->has_failed || hosted->provider.state() != provider::Provider::State::kFailed) return;
  hosted->has_failed = true;
  Table::set_state(reinterpret_cast<aon_core*>(hosted), AON_PROCESS_NODE, AON_STATE_OFF,
                   hosted->provider.failure().c_str(), "");
}

/// Of whom it was said that it does not return: it has, and is what it says itself, but for that
/// time.
void NodeHost::report_returned() {
  for (const ProviderCall::Running& call : call_.take_returned()) {
    ProviderDefinition definition{};
    definition.state = ProviderState::kDegraded;
    std::string reason = std::string(call.function) +
                         " took more than 10 s: no provider of this node was called meanwhile, and "
                         "the budget was not held";
    std::string remedy;
    for (const auto& hosted : hosted_) {
      if (call.provider != hosted->provider.name() || !hosted->node_state) continue;
      const Hosted::NodeState& own = *hosted->node_state;
      if (own.state == ProviderState::kOff) definition.state = own.state;
      if (!own.reason.empty()) reason = own.reason + "; " + reason;
      remedy = own.remedy;
    }
    inbox_->define(spool::kNodeProcess, DefinitionType::kProvider, definition,
                   {call.provider, reason, remedy});
  }
}

void NodeHost::process_started(uint32_t process, int32_t pid, int32_t rank) {
  report_excluded(process);
  if (pid == 0) return report_elsewhere(process);
  stack_walker_.add_process(process, pid);
  for (const auto& hosted : hosted_) {
    const ProviderCall::Scope calls(&call_, hosted->provider.name(), "process_started()");
    hosted->provider.process_started(process, pid, rank);
    report_failure(hosted.get());
  }
}

void NodeHost::process_ended(uint32_t process, bool is_elsewhere) {
  for (const auto& hosted : hosted_) {
    if (is_elsewhere) break;
    const ProviderCall::Scope calls(&call_, hosted->provider.name(), "process_ended()");
    hosted->provider.process_ended(process);
    report_failure(hosted.get());
  }
  metrics_.erase(metrics_.lower_bound({process, ""}), metrics_.lower_bound({process + 1, ""}));
  metric_ids_.erase(metric_ids_.lower_bound({process, 0}),
                    metric_ids_.lower_bound({process + 1, 0}));
  continued_.erase(continued_.lower_bound({process, ""}),
                   continued_.lower_bound({process + 1, ""}));
  series_.forget(process);
  stack_walker_.remove_process(process);
  if (settings_.stacks != nullptr) settings_.stacks->forget(process);
}

void NodeHost::tick(uint64_t now_ns) {
  now_ns_ = now_ns;
  report_returned();
  const uint64_t wall_now_ns = wall_ns();
  for (const auto& hosted : hosted_) {
    if (hosted->period_ns == 0 || !hosted->beat.is_due(wall_now_ns)) continue;
    const ProviderCall::Scope calls(&call_, hosted->provider.name(), "tick()");
    hosted->provider.tick(clock::now_ticks(tick_source_));
    if (hosted->shared)
      hosted->shared->tick(reinterpret_cast<aon_core*>(hosted.get()), Table::kApi, now_ns_);
    report_failure(hosted.get());
  }
}

std::vector<NodeHost::Cost> NodeHost::costs() const {
  std::vector<Cost> costs;
  for (const auto& hosted : hosted_) {
    if (hosted->cost_ns != 0 || hosted->divisor != 1)
      costs.push_back({hosted->index, hosted->divisor, hosted->cost_ns, hosted->agent_ns});
  }
  return costs;
}

bool NodeHost::throttle(uint32_t provider, uint32_t divisor) {
  if (provider >= hosted_.size()) return false;
  provider::Provider& throttled = hosted_[provider]->provider;
  const ProviderCall::Scope calls(&call_, throttled.name(), "throttle()");
  if (!throttled.throttle(divisor)) return false;
  hosted_[provider]->divisor = divisor;
  return true;
}

void NodeHost::stop() {
  report_returned();
  for (const auto& hosted : hosted_) {
    if (hosted->shared)
      hosted->shared->tick(reinterpret_cast<aon_core*>(hosted.get()), Table::kApi, now_ns_);
    {
      const ProviderCall::Scope calls(&call_, hosted->provider.name(), "flush()");
      hosted->provider.flush();
    }
    const ProviderCall::Scope calls(&call_, hosted->provider.name(), "stop()");
    hosted->provider.stop();
  }
}

}  // namespace aon::agent
