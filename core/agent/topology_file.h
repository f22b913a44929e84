/// topology.xml in the node's spool folder: the machine as hwloc sees it, written once. What cannot
/// be written is tried again each second; meanwhile provider `topology` of the node says why.
/// Thread: housekeeping.   Cost: hwloc's 20 to 300 ms once, then nothing.
#pragma once

#include <string>

#include "core/agent/config.h"
#include "core/agent/inbox.h"

namespace aon::agent {

class TopologyFile {
 public:
  /// Both outlive it.
  TopologyFile(const Config& config, Inbox* inbox) : config_(config), inbox_(inbox) {}

  /// Each second.
  void write();

 private:
  void load();
  void define(const std::string& problem, const char* remedy);

  const Config& config_;
  Inbox* inbox_;
  bool is_loaded_ = false;
  std::string text_;     ///< to be written; empty: there is nothing to do any more
  std::string problem_;  ///< of hwloc; empty: none
  bool is_failure_told_ = false;
};

}  // namespace aon::agent
