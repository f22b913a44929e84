/// Hosts the providers that run on the node (aon/provider.h): loads them, calls them, turns what
/// they say into definitions and samples.
///
/// Ids of metrics are made from provider and name, so that a provider that is started again after
/// a killed worker gets the same ones; its counts go on from where they were (series.h), and the
/// state of such a process says that what happened in between is missing.
/// Thread: the housekeeping thread; providers drain nothing.   Cost: theirs.
/// Errors: a provider that cannot be loaded or started is named in the definitions and left out.
/// One that does not return holds this thread; call() tells others which.
#pragma once

#include <aon/provider.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/agent/inbox.h"
#include "core/agent/provider_call.h"
#include "core/agent/series.h"
#include "core/agent/shared_metrics.h"
#include "core/agent/stack_table.h"
#include "core/agent/stack_walker.h"
#include "core/base/options.h"
#include "core/clock/snapshot.h"
#include "core/provider/loader.h"
#include "core/provider/names.h"

namespace aon::agent {

struct NodeHostSettings {
  std::string folder;  ///< installed providers
  provider::Selection selection;
  std::vector<LeftAlone> left_alone;  ///< by aon-run, in the programs' environment
  std::vector<WrongSetting> wrong;    ///< that the launcher left out
  std::string config;                 ///< "key=value" lines for all providers
  StackTable* stacks = nullptr;       ///< of timers in the processes; null: none
};

class NodeHost {
 public:
  NodeHost(NodeHostSettings settings, Inbox* inbox, const State* state);
  ~NodeHost();
  NodeHost(const NodeHost&) = delete;
  NodeHost& operator=(const NodeHost&) = delete;

  /// What the node's service has of a provider is taken from there. Before start().
  void use_service(const service::PageReader* page) { page_ = page; }
  /// Loads and starts what is wanted, and says what is not.
  void start();
  /// `pid` 0: of a PID namespace that is not seen here. Providers hear nothing of such a process.
  void process_started(uint32_t process, int32_t pid, int32_t rank);
  /// `is_elsewhere`: no provider was told of its start.
  void process_ended(uint32_t process, bool is_elsewhere);
  /// Calls tick() of each provider whose period is over.
  void tick(uint64_t now_ns);
  void stop();

  /// What a provider costs the processes, for the budget.
  struct Cost {
    uint32_t provider;  ///< index, for throttle()
    uint32_t divisor;   ///< of the last throttle()
    uint64_t cost_ns;   ///< since start()
    uint64_t agent_ns;  ///< of the agent's CPU, for records and unwinding; since start()
  };
  std::vector<Cost> costs() const;
  /// Asks a provider to cost 1/divisor; 0: nothing.   False: it cannot.
  bool throttle(uint32_t provider, uint32_t divisor);
  /// Thread: any.
  ProviderCall& call() { return call_; }

 private:
  struct Hosted;
  struct Table;
  friend struct Table;

  void load(const std::string& path);
  bool share(Hosted* hosted);
  std::vector<std::string> wanted_files() const;
  void find_excluded();
  void report_excluded(uint32_t process);
  void report_wrong();
  void report_elsewhere(uint32_t process);
  void report_failure(Hosted* hosted);
  void report_returned();

  NodeHostSettings settings_;
  Inbox* inbox_;
  Series series_;
  StackWalker stack_walker_;
  const service::PageReader* page_ = nullptr;
  clock::TickSource tick_source_;
  uint64_t now_ns_ = 0;  ///< of the last tick
  ProviderCall call_;
  std::vector<std::unique_ptr<Hosted>> hosted_;
  std::map<std::string, provider::Exclusion> excluded_;           ///< by name
  std::map<std::pair<uint32_t, std::string>, uint32_t> metrics_;  ///< (process, provider::name)
  std::map<std::pair<uint32_t, uint32_t>, bool> metric_ids_;      ///< (process, id) in use
  std::set<std::pair<uint32_t, std::string>> continued_;          ///< (process, provider)
};

}  // namespace aon::agent
