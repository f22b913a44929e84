#include "perf/events_in_use.h"

#include <algorithm>

namespace aon::perf {
namespace {

bool is_clock(const EventType& type) {
  return type.config == PERF_COUNT_SW_CPU_CLOCK || type.config == PERF_COUNT_SW_TASK_CLOCK;
}

/// Both kinds of page faults are asked for: their sum is not counted beside them.
bool has_kinds_of_faults(std::span<const EventType> types) {
  const auto has = [&](uint64_t config) {
    return std::any_of(types.begin(), types.end(),
                       [&](const EventType& type) { return is_software(type, config); });
  };
  return has(PERF_COUNT_SW_PAGE_FAULTS_MIN) && has(PERF_COUNT_SW_PAGE_FAULTS_MAJ);
}

}  // namespace

EventsInUse::EventsInUse(const Kernel& kernel, std::span<const EventType> types) : kernel_(kernel) {
  for (const EventType& type : types) {
    if (is_hardware(type) || is_clock(type)) continue;
    if (type.config == PERF_COUNT_SW_PAGE_FAULTS && has_kinds_of_faults(types)) continue;
    perf_event_attr attr{};
    attr.size = sizeof(attr);
    attr.type = type.type;
    attr.config = type.config;
    attr.disabled = 1;
    attr.exclude_kernel = 1;
    const int fd = kernel_.open_event(attr, 0, kNoGroup);
    if (fd >= 0) events_.push_back(fd);
  }
}

EventsInUse::~EventsInUse() {
  for (const int fd : events_) kernel_.close_event(fd);
}

}  // namespace aon::perf
