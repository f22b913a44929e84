/// What the agent does by the clock: pairs of clocks, measured cost, the budget, node providers.
/// Its definitions go through the inbox, samples through the state (series.h).
/// Thread: one of its own, which drains nothing; process_started() and process_ended() are called
/// by the drain thread and only queue. A provider that does not return holds it, and delays the end
/// of a launch by kEndNs at most.   Cost: about 10 us per rank and second.
#pragma once

#include <aon/mutex.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/agent/budget.h"
#include "core/agent/config.h"
#include "core/agent/crash_watch.h"
#include "core/agent/encoder.h"
#include "core/agent/inbox.h"
#include "core/agent/loaded_mpi.h"
#include "core/agent/nccl_levels.h"
#include "core/agent/node_host.h"
#include "core/agent/process_events.h"
#include "core/agent/record_cost.h"
#include "core/agent/recording_notes.h"
#include "core/agent/server.h"
#include "core/agent/state.h"
#include "core/agent/stuck.h"
#include "core/agent/topology_file.h"
#include "core/agent/unseen.h"

namespace aon::agent {

class Housekeeping : public ProcessListener {
 public:
  /// What the end of a launch waits for calls of providers, all together; one that has lasted as
  /// long before is not waited for. The waits of the project's own come to less, together.
  static constexpr uint64_t kEndNs = 10'000'000'000;

  Housekeeping(const Config& config, State* state, Inbox* inbox, ModeTable* modes,
               ActivityTable* activity, const Drainer* drainer, const Encoder* encoder,
               StackTable* stacks = nullptr, StuckThreads* stuck = nullptr);
  ~Housekeeping() override;

  void start();
  /// Waits until everything queued so far is handled (samples of processes that ended are in the
  /// inbox then); for providers as long as they have for the end of a launch (kEndNs).
  void settle();
  /// Stops providers and the thread, which sends the last clock and usage. False: the thread does
  /// not come back from a provider, which the ledger names; all that it uses must live until the
  /// worker's end takes it along.
  bool stop();
  /// Once a second: who does not come back is named while the job runs.
  void look_at_providers();

  void process_started(uint32_t process, int32_t pid, int32_t rank) override;
  /// Starts need not be kept back for it any more, and the budget begins.
  void process_left_init();
  void process_ended(uint32_t process, std::vector<int32_t> tids) override;
  void note(RecordingNote note, const std::string& program) override;
  void process_refused(const Error& reason) override;

 private:
  /// Sums of a process at the last second.
  struct Load {
    int32_t pid = 0;
    bool has_ended = false;
    uint64_t start_ns = 0;    ///< CLOCK_MONOTONIC
    uint64_t cpu_due_ns = 0;  ///< when its CPU time is read next
    std::shared_ptr<Activity> activity;
    uint64_t counted_calls = 0;
    uint64_t kind_count[kRecordKindCount] = {};
    uint64_t site_count[kMaxSites] = {};
    uint32_t site_delta[kMaxSites] = {};  ///< in the last second
    double nccl_delta = 0;                ///< records of NCCL, the same
    bool is_mpi_told = false;             ///< that it has loaded MPI's library
  };

  void let_ranks_start();
  void run();
  void tell_refusal(const Error& reason);
  void connect_to_service();
  bool has_work() const AON_REQUIRES(m_);
  void take_events() AON_EXCLUDES(m_);
  void take_start(const ProcessEvent& event);
  void take_end(const ProcessEvent& event);
  void look_for_mpi();
  void second();
  void report_clock();
  ProcessCell& process_cell(uint32_t process) const;
  void read_ranks_cpu(uint64_t now_ns, bool are_all_due);
  double read_costs();
  double read_counting_costs();
  double take_costs(Load* load) const;
  std::vector<SiteLoad> read_sites(double seconds);
  void hold_budget(bool is_measure);
  void apply(const ModeChange& change);
  bool throttle(const ModeChange& change);
  double take_provider_costs(double seconds, std::vector<SiteLoad>* sites);
  uint64_t agent_cpu_ns() const;
  void report_usage();
  uint64_t end_left_ns(const ProviderCall::Running& call);
  /// The call that nothing is left for; nothing: `is_over` is so.
  template <class Predicate>
  std::optional<ProviderCall::Running> wait_at_end(MutexLock* lock, Predicate is_over)
      AON_REQUIRES(m_);
  void tell_for_held();
  void tell_held(const std::string& provider, const std::string& reason);

  const Config& config_;
  State* state_;
  Inbox* inbox_;
  ModeTable* modes_;
  ActivityTable* activity_;
  const Drainer* drainer_;
  const Encoder* encoder_;
  StuckThreads* stuck_;
  clock::TickSource tick_source_;

  // Owner: the thread.
  std::unique_ptr<service::PageReader> service_;  ///< of the node; null: none
  NodeHost providers_;
  CrashWatch crash_watch_;
  UnseenPrograms unseen_;
  RecordingNotes notes_;
  MpiLibraries mpi_;
  TopologyFile topology_file_;
  Budget budget_;
  NcclLevels nccl_levels_;
  RecordCosts record_costs_{};  ///< on this machine
  std::map<uint32_t, Load> loads_;
  std::map<uint32_t, NodeHost::Cost> provider_costs_;  ///< at the last second
  uint64_t last_agent_cpu_ns_ = 0;
  uint64_t last_ranks_cpu_ns_ = 0;
  uint64_t last_second_ns_ = 0;

  Mutex m_;
  std::condition_variable wake_;
  std::condition_variable settled_;  ///< also at the thread's end
  ProcessEvents events_ AON_GUARDED_BY(m_);
  std::vector<std::pair<RecordingNote, std::string>> fresh_notes_ AON_GUARDED_BY(m_);
  std::optional<Error> refusal_ AON_GUARDED_BY(m_);  ///< the first one
  bool is_refusal_told_ AON_GUARDED_BY(m_) = false;
  bool is_busy_ AON_GUARDED_BY(m_) = false;  ///< events were taken and are being handled
  bool has_left_init_ AON_GUARDED_BY(m_) = false;
  bool is_hurried_ AON_GUARDED_BY(m_) = false;  ///< somebody waits for events to be handled
  bool is_stopping_ AON_GUARDED_BY(m_) = false;
  bool has_ended_ AON_GUARDED_BY(m_) = false;
  std::thread thread_;

  // Owner: the drain thread.
  std::optional<uint64_t> before_end_ns_;  ///< what calls of providers had taken when it came
  uint64_t stopped_ns_ = 0;                ///< how long this process did not run since then
  uint64_t seen_call_ns_ = 0;              ///< begin of the call that the last look has seen
  uint64_t look_count_ = 0;                ///< that have seen it before
  uint64_t told_call_ns_ = 0;              ///< begin of the call that was told to be held
};

}  // namespace aon::agent
