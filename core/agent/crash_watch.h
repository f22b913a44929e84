/// Programs that die in AON's own code are recorded no more: finds them, by the word of the process
/// (aon/crash.h), by the kernel's log or by the node's service, says so in the ledger, and puts
/// them on the user's list (core/base/avoid_list.h) by a process of its own, for a home directory
/// may hang.
/// Owner and thread: housekeeping.   Cost: reading the log when a process dies by a signal, or
/// nobody knows how; a line of the service is waited for in later ticks, kLateNs at most.
/// Errors: where none of them says anything, nothing is found; `aon doctor` says what is missing.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/agent/config.h"
#include "core/agent/inbox.h"
#include "core/agent/state.h"
#include "core/service/crash_log.h"
#include "core/service/page_reader.h"

namespace aon::agent {

class CrashWatch {
 public:
  CrashWatch(const Config& config, Inbox* inbox) : config_(config), inbox_(inbox) {}

  /// Crashes from here on are seen: in the kernel's log, or else by the node's service.
  void start();
  void use_service(service::PageReader* page);
  /// `cell` has its exit status by now; `tids`: of its threads, as the process says.
  void process_ended(const ProcessCell& cell, std::vector<int32_t> tids, uint64_t now_ns);
  void tick(uint64_t now_ns);
  /// The last tick: waits for what may still come, once, kLateNs at most.
  void finish();

 private:
  /// A process that has ended by a fault, of which no line was found yet.
  struct Waiting {
    uint32_t process;
    std::string program;
    std::vector<int32_t> tids;  ///< its own number among them
    uint64_t until_ns;
  };
  struct Seen {
    service::Crash crash;
    uint64_t at_ns;
  };

  void read_crashes(uint64_t now_ns);
  bool find_in_log(const Waiting& ended);
  void report(uint32_t process, const std::string& program, const std::string& place);
  void add_to_list(const std::string& program, const std::string& place);

  const Config& config_;
  Inbox* inbox_;
  std::optional<service::CrashLog> log_;
  service::PageReader* page_ = nullptr;
  std::vector<Seen> crashes_;  ///< of the last seconds, not found to be anybody's
  std::vector<Waiting> waiting_;
  std::set<std::string> added_;  ///< to the list, by this agent
};

}  // namespace aon::agent
