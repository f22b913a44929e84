#include "perf/state.h"

#include <aon/perf_refusal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

namespace aon::perf {
namespace {

/// Collects events under the obstacle they share; all hardware events together are named as such.
class Reasons {
 public:
  /// `hardware_count`: of events that together are "hardware events".
  explicit Reasons(size_t hardware_count) : hardware_count_(hardware_count) {}

  void add(const Obstacle& obstacle, const EventType& event) {
    Clause& clause = of(obstacle);
    if (is_hardware(event) && ++clause.hardware_count == hardware_count_) {
      clause.events.resize(clause.events.size() - clause.hardware_bytes);
      append(clause.events, "hardware events", ", ");
      return;
    }
    const size_t bytes_before = clause.events.size();
    append(clause.events, event.name, ", ");
    if (is_hardware(event)) clause.hardware_bytes += clause.events.size() - bytes_before;
  }

  void add(const Obstacle& obstacle, const char* event_name) {
    append(of(obstacle).events, event_name, ", ");
  }

  bool empty() const { return clauses_.empty(); }

  std::string reason() const {
    std::string text;
    for (const Clause& clause : clauses_) {
      append(text, clause.obstacle.reason + " (not counted: " + clause.events + ")", "; ");
    }
    return text;
  }

  std::string remedy() const {
    std::string text;
    for (const Clause& clause : clauses_) append(text, clause.obstacle.remedy, "; ");
    return text;
  }

 private:
  struct Clause {
    Obstacle obstacle;
    std::string events;
    size_t hardware_count = 0;
    size_t hardware_bytes = 0;  ///< of their names at the end of `events`
  };

  Clause& of(const Obstacle& obstacle) {
    const auto found = std::find_if(clauses_.begin(), clauses_.end(), [&](const Clause& clause) {
      return clause.obstacle.reason == obstacle.reason;
    });
    return found != clauses_.end() ? *found : clauses_.emplace_back(Clause{obstacle, ""});
  }

  /// Once: "cycles" stands not in "cycles:u".
  static void append(std::string& text, const std::string& more, const std::string& separator) {
    const std::string item = separator + more + separator;
    if (more.empty() || (separator + text + separator).find(item) != std::string::npos) return;
    if (!text.empty()) text += separator;
    text += more;
  }

  size_t hardware_count_;
  std::vector<Clause> clauses_;
};

/// Kernel-side events are refused at level 2 although the process may be watched.
Obstacle obstacle_of(const EventType& type, int error_number, int paranoid_level) {
  const bool needs_kernel = type.in_kernel || type.kernel_only;
  if (needs_kernel && error_number == EACCES && paranoid_level == 2) {
    return {"kernel.perf_event_paranoid is 2: only user mode may be counted",
            perf_paranoid_remedy(PerfReach::kKernelMode)};
  }
  return explain(error_number, is_hardware(type), paranoid_level);
}

size_t count_hardware(const Availability& availability) {
  if (availability.names_hardware) return SIZE_MAX;
  return static_cast<size_t>(
      std::count_if(availability.events.begin(), availability.events.end(),
                    [](const ProbedEvent& event) { return is_hardware(*event.type); }));
}

/// Adds what is counted, but not of all of the CPU.
void add_hybrid(const Availability& availability, StateText* state) {
  const bool is_partial = std::any_of(
      availability.events.begin(), availability.events.end(), [](const ProbedEvent& event) {
        return event.how.available && is_of_performance_cores(*event.type);
      });
  if (!availability.has_hybrid_cores || !is_partial) return;
  if (state->state == AON_STATE_ON) state->state = AON_STATE_DEGRADED;
  const auto add = [](std::string* text, const char* more) {
    *text += (text->empty() ? "" : "; ") + std::string(more);
  };
  add(&state->reason, "hardware events are counted on performance cores only");
  add(&state->remedy,
      "counts of ranks that are bound to those cores are whole: "
      "taskset -c $(cat /sys/bus/event_source/devices/cpu_core/cpus)");
}

Obstacle unknown_name() {
  return {"no event of this machine has such a name", "aon-run --events names near ones"};
}

/// Nothing is known of the machine then, but of what was asked for.
StateText ended_before(const std::string& unknown_names) {
  const std::string reason = "the process ended before it could be watched";
  if (unknown_names.empty()) return {AON_STATE_OFF, reason, ""};
  const Obstacle unknown = unknown_name();
  return {AON_STATE_OFF, reason + "; " + unknown.reason + " (not counted: " + unknown_names + ")",
          unknown.remedy};
}

bool is_in_proc(const Kernel& kernel, const EventType& type) {
  if (type.type != PERF_TYPE_SOFTWARE) return false;
  TaskCounts counts{};
  if (!kernel.read_task(getpid(), gettid(), &counts)) return false;
  return type.config == PERF_COUNT_SW_CONTEXT_SWITCHES ||
         (type.config == PERF_COUNT_SW_CPU_MIGRATIONS && counts.has_migrations);
}

}  // namespace

Availability probe_all(const Kernel& kernel, std::span<const EventType> types) {
  Availability availability;
  availability.paranoid_level = kernel.paranoid_level();
  availability.has_hybrid_cores = has_hybrid_cores(kernel);
  for (const EventType& type : types) {
    ProbedEvent event{&type, probe(kernel, type)};
    event.from_proc = !event.how.available && is_in_proc(kernel, type);
    availability.events.push_back(event);
  }
  const auto of_software =
      std::find_if(availability.events.begin(), availability.events.end(),
                   [](const ProbedEvent& e) { return e.how.available && !is_hardware(*e.type); });
  if (of_software != availability.events.end())
    availability.has_groups = probe_groups(kernel, *of_software->type, of_software->how);
  return availability;
}

StateText state_of(const Availability& availability, const OpenProblems& problems) {
  Reasons reasons(count_hardware(availability));
  bool any_available = false;
  for (const ProbedEvent& event : availability.events) {
    any_available |= event.how.available || event.from_proc;
    if (!event.how.available && !event.from_proc) {
      reasons.add(obstacle_of(*event.type, event.how.error_number, availability.paranoid_level),
                  *event.type);
    }
  }
  for (const OpenProblems::Failure& failure : problems.errors) {
    reasons.add(obstacle_of(*failure.type, failure.error_number, availability.paranoid_level),
                *failure.type);
  }
  if (problems.tasks_left_out) {
    reasons.add({"more than " + std::to_string(kMaxTasks) + " threads when it attached", ""},
                "the threads beyond");
  }
  if (!availability.unknown_names.empty())
    reasons.add(unknown_name(), availability.unknown_names.c_str());
  // What there is could not be opened, and no error was told: the process was not there.
  if (any_available && problems.nothing_opened && problems.errors.empty())
    return ended_before(availability.unknown_names);
  StateText state{AON_STATE_ON, reasons.reason(), reasons.remedy()};
  if (!any_available || problems.nothing_opened) {
    state.state = AON_STATE_OFF;
  } else if (!reasons.empty()) {
    state.state = AON_STATE_DEGRADED;
  }
  if (state.state != AON_STATE_OFF) add_hybrid(availability, &state);
  return state;
}

}  // namespace aon::perf
