/// What the perf provider can do on this machine and for one process, and the words for the ledger.
/// Thread: the provider's.   Cost: strings; only when a process starts.
#pragma once

#include <aon/provider.h>

#include <span>
#include <string>
#include <vector>

#include "perf/counters.h"

namespace aon::perf {

struct ProbedEvent {
  const EventType* type;
  Probe how;
  bool from_proc = false;  ///< perf may not count it for us, but /proc tells it
};

struct Availability {
  std::vector<ProbedEvent> events;
  int paranoid_level = 2;
  bool has_hybrid_cores = false;  ///< see counters.h
  bool has_groups = false;        ///< events of software can be read together
  bool names_hardware = false;    ///< each by its name, also where all are missing
  std::string unknown_names{};    ///< asked for, and no events
};

/// Opens every event once on the calling thread; `types` must live as long as the result.
/// Cost: 10 ms the first time on a machine.
Availability probe_all(const Kernel& kernel, std::span<const EventType> types = event_types());

/// What went wrong for one process, although the machine allows it.
struct OpenProblems {
  struct Failure {
    const EventType* type;
    int error_number;
  };
  std::vector<Failure> errors;
  bool tasks_left_out = false;  ///< more than kMaxTasks threads
  bool nothing_opened = false;
};

struct StateText {
  aon_state state;
  std::string reason;  ///< one clause per kind of problem, with the events it hits
  std::string remedy;
};

StateText state_of(const Availability& availability, const OpenProblems& problems);

}  // namespace aon::perf
