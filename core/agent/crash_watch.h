/// Programs that die in AON's own code are recorded no more: finds them, by the word of the process
/// (aon/crash.h), by the kernel's log or by the node's service, says so in the ledger, and puts
/// them on the user's list (core/base/avoid_list.h) by a process of its own, for a home directory
/// may hang.
/// Owner and thread: housekeeping.   Cost: none until a process dies by a signal.
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
  void use_service(service::PageReader* page) { page_ = page; }
  /// `cell` has its exit status by now.
  void process_ended(const ProcessCell& cell);
  /// A program on the list came and was sent away.
  void left_alone(const std::string& program);

 private:
  void read_crashes();
  std::string place_elsewhere(const ProcessCell& cell);
  void report(const ProcessCell& cell, const std::string& place);
  void add_to_list(const std::string& program, const std::string& place) const;

  const Config& config_;
  Inbox* inbox_;
  std::optional<service::CrashLog> log_;
  service::PageReader* page_ = nullptr;
  std::vector<service::Crash> crashes_;  ///< in our code, of processes whose end was not seen yet
  std::set<std::string> left_alone_;
};

}  // namespace aon::agent
