/// Whether programs of this machine may read the chosen events where a call begins and ends, as one
/// of them would find out (core/runtime/counters.h): of those that the agent only follows, none
/// tells it.
/// Thread: any.   Cost: an event is opened, 20 us.
#pragma once

#include <string>
#include <vector>

#include "core/runtime/counter_source.h"

namespace aon::agent {

/// The first of `events` (--events, as aon-run has encoded them) that is of the hardware; empty:
/// there is none, and programs read nothing.
std::string first_border_event(const std::vector<std::string>& events);

/// 0: they may read it; else for explain_counters().
int try_border_event(const std::string& event, const runtime::CounterSource& source);

}  // namespace aon::agent
