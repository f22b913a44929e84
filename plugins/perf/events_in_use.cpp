#include "perf/events_in_use.h"

namespace aon::perf {
namespace {

bool is_clock(const EventType& type) {
  return type.config == PERF_COUNT_SW_CPU_CLOCK || type.config == PERF_COUNT_SW_TASK_CLOCK;
}

}  // namespace

EventsInUse::EventsInUse(const Kernel& kernel, std::span<const EventType> types) : kernel_(kernel) {
  for (const EventType& type : types) {
    if (is_hardware(type) || is_clock(type)) continue;
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
