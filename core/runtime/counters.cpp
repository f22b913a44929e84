#include "core/runtime/counters.h"

#include <aon/annotation.h>
#include <aon/definition.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/runtime/counter_source.h"
#include "core/runtime/process.h"
#include "core/runtime/provider_state.h"
#include "core/runtime/user_page.h"

namespace aon::runtime {
namespace {

constexpr uint32_t kTextBytes = 512;

ThreadCounters& counters_of(const Writer* w) { return process()->thread_counters[w->slot_index]; }

uint64_t read_register_of(const CounterSource& source, uint32_t index) {
#if defined(__x86_64__)
  if (AON_LIKELY(source.read_register == nullptr)) return __rdpmc(static_cast<int>(index));
#endif
  return source.read_register(index);
}

void tell_problem(const CounterProblem& problem) {
  char reason[kTextBytes / 2];
  snprintf(reason, sizeof reason, "%s%s", problem.reason, kNotAtBorders);
  tell_state("counters", ProviderState::kOff, reason, problem.remedy);
}

void define_metrics(const char* text, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    static constexpr char kPrefix[] = "counters::";
    static constexpr char kRest[] = "\0001\0at the borders of calls";  // unit, description
    uint32_t bytes = 0;
    const char* name = counter_name(text, i, &bytes);
    char all[kTextBytes];
    constexpr uint32_t kRoom = sizeof all - sizeof kPrefix - sizeof kRest;
    if (bytes > kRoom) bytes = kRoom;
    memcpy(all, kPrefix, sizeof kPrefix - 1);
    memcpy(all + sizeof kPrefix - 1, name, bytes);
    memcpy(all + sizeof kPrefix - 1 + bytes, kRest, sizeof kRest);
    MetricDefinition metric = {};
    metric.id = kFirstCounterMetric + i;
    metric.mode = MetricMode::kAccumulated;
    aon_define(static_cast<uint32_t>(DefinitionType::kMetric), &metric, sizeof metric, all,
               static_cast<uint32_t>(sizeof kPrefix - 1 + bytes + sizeof kRest));
  }
}

perf_event_attr attributes_of(const CounterPlan& plan, uint32_t index) {
  const CounterEvent& event = plan.event[index];
  perf_event_attr attr = {};
  attr.size = sizeof attr;
  attr.type = event.type;
  attr.config = event.config[0];
  attr.config1 = event.config[1];
  attr.config2 = event.config[2];
  attr.exclude_user = (event.exclude & kExcludeUser) != 0;
  attr.exclude_kernel = plan.excludes_kernel || (event.exclude & kExcludeKernel) != 0;
  attr.exclude_hv = 1;
  return attr;
}

void unmap_all(const CounterSource& source, ThreadCounters& counters) {
  for (uint32_t i = 0; i < counters.count; ++i) source.unmap(counters.page[i]);
  counters.count = 0;
}

/// Opens and maps all events of the thread as one group. 0, or why not (explain_counters()).
int open_group(const CounterSource& source, const CounterPlan& plan, ThreadCounters& counters) {
  int descriptor[kMaxRegionCounters];
  uint32_t opened = 0;
  int error_number = 0;
  counters = {};
  while (opened < plan.count && error_number == 0) {
    perf_event_attr attr = attributes_of(plan, opened);
    const int fd = source.open(&attr, opened == 0 ? -1 : descriptor[0]);
    if (fd < 0) {
      error_number = opened != 0 && fd == -EINVAL ? kGroupTooLarge : -fd;
      break;
    }
    descriptor[opened++] = fd;
    const perf_event_mmap_page* page = source.map(fd);
    if (page == nullptr) {
      error_number = errno == EPERM ? kNoLockedMemory : errno;
      break;
    }
    counters.page[counters.count++] = page;
    if (!page->cap_user_rdpmc) error_number = kNotAllowed;
  }
  for (uint32_t i = opened; i-- > 0;) source.close(descriptor[i]);
  if (error_number != 0) unmap_all(source, counters);
  return error_number;
}

/// The first thread finds out for all what can be opened.
int open_first(const CounterSource& source, CounterPlan& plan, ThreadCounters& counters) {
  int error_number = open_group(source, plan, counters);
  if (error_number != EACCES && error_number != EPERM) return error_number;
  plan.excludes_kernel = true;
  return open_group(source, plan, counters);
}

/// Whether this process counts; decided by its first thread.
CounterState decide(CounterPlan& plan, const CounterSource& source, ThreadCounters& counters) {
  const char* text = secure_getenv("AON_COUNTERS");
  if (text == nullptr || !parse_counters(text, &plan)) return CounterState::kOff;
  const int error_number = open_first(source, plan, counters);
  if (error_number != 0) {
    tell_problem(explain_counters(error_number));
    return CounterState::kOff;
  }
  define_metrics(text, plan.count);
  tell_state("counters", ProviderState::kOn, "", "");
  return CounterState::kOn;
}

void tell_missing_threads(CounterPlan& plan, const char* reason, const char* remedy) {
  if (plan.told_threads.exchange(1, std::memory_order_relaxed) != 0) return;
  tell_state("counters", ProviderState::kDegraded, reason, remedy);
}

/// Of threads that came while the first one decided. Told by whichever is later, them or the
/// decision: it sees both.
void tell_late_threads(CounterPlan& plan, uint32_t state) {
  if (state == static_cast<uint32_t>(CounterState::kOn))
    tell_missing_threads(plan, "threads that began with the first one are not counted", "");
}

}  // namespace

bool parse_counters(const char* text, CounterPlan* plan) {
  plan->count = 0;
  while (*text != '\0' && plan->count < kMaxRegionCounters) {
    uint64_t number[5];
    for (uint64_t& n : number) {
      char* end = nullptr;
      n = strtoull(text, &end, 0);
      if (end == text || *end != '/') return false;
      text = end + 1;
    }
    plan->event[plan->count++] = {static_cast<uint32_t>(number[0]),
                                  static_cast<uint32_t>(number[4]),
                                  {number[1], number[2], number[3]}};
    text = strchrnul(text, ',');
    if (*text == ',') ++text;
  }
  return plan->count != 0;
}

const char* counter_name(const char* text, uint32_t index, uint32_t* bytes) {
  for (; index > 0; --index) {
    text = strchrnul(text, ',');
    if (*text == ',') ++text;
  }
  const char* end = strchrnul(text, ',');
  for (int slash = 0; slash < 5 && text < end; ++slash) {
    const char* next = static_cast<const char*>(memchr(text, '/', static_cast<size_t>(end - text)));
    text = next == nullptr ? end : next + 1;
  }
  *bytes = static_cast<uint32_t>(end - text);
  return text;
}

void read_thread_counters(ThreadCounters* counters, const CounterSource& source,
                          CounterValues* values) {
  values->missed_ns = 0;
  values->is_exact = true;
  for (uint32_t i = 0; i < counters->count; ++i) {
    const PageReading reading = read_user_page(
        counters->page[i], [&](uint32_t index) { return read_register_of(source, index); });
    values->is_exact = values->is_exact && reading.state == PageState::kCounting;
    if (reading.state != PageState::kChanging && reading.value > counters->last.value[i]) {
      counters->last.value[i] = reading.value;
    }
    values->value[i] = counters->last.value[i];
    values->missed_ns += reading.missed_ns;
  }
}

Record counters_record(const RecordHead& call, uint64_t duration, uint32_t count,
                       const CounterValues& entry, const CounterValues& exit) {
  Record record = {};
  const bool is_exact = entry.is_exact && exit.is_exact && entry.missed_ns == exit.missed_ns;
  const bool is_wide = duration >> 32 != 0;
  const uint32_t words = 2 * count + (is_wide ? 1 : 0);
  record.head = call;
  record.head.kind = RecordKind::kCounters;
  record.head.slot_count = static_cast<uint8_t>(1 + (words + 3) / 4);
  record.head.flags =
      static_cast<uint16_t>((call.flags & kInsideSpan) | (is_wide ? kWideDuration : 0));
  record.head.duration_ticks = static_cast<uint32_t>(duration);
  record.head.a32 = count | (is_exact ? 0 : kInexact);
  record.head.a64 = 0;
  for (uint32_t i = 0; i < count; ++i) {
    record.words[i] = entry.value[i];
    record.words[count + i] = exit.value[i] - entry.value[i];
  }
  if (is_wide) record.words[(record.head.slot_count - 1u) * 4 - 1] = duration;
  return record;
}

void open_counters(Process& p, Writer* w) {
  CounterPlan& plan = p.counter_plan;
  const CounterSource& source = counter_source();
  ThreadCounters& counters = p.thread_counters[w->slot_index];
  uint32_t state = plan.state.load(std::memory_order_acquire);  // pairs with runtime:counters
  if (state == static_cast<uint32_t>(CounterState::kOff)) return;
  if (state == static_cast<uint32_t>(CounterState::kUnknown) &&
      plan.state.compare_exchange_strong(state, static_cast<uint32_t>(CounterState::kOpening),
                                         std::memory_order_relaxed)) {
    state = static_cast<uint32_t>(decide(plan, source, counters));
    plan.state.store(state, std::memory_order_release);  // pairs with runtime:counters
    // pairs with runtime:counters
    if (plan.late_threads.exchange(0, std::memory_order_acq_rel) != 0)
      tell_late_threads(plan, state);
  } else if (state == static_cast<uint32_t>(CounterState::kOn)) {
    const int error_number = open_group(source, plan, counters);
    if (error_number != 0) {
      const CounterProblem problem = explain_counters(error_number);
      char reason[kTextBytes / 2];
      snprintf(reason, sizeof reason, "threads that began later are not counted: %s",
               problem.reason);
      tell_missing_threads(plan, reason, problem.remedy);
    }
  } else {
    plan.late_threads.fetch_add(1, std::memory_order_acq_rel);  // pairs with runtime:counters
    // pairs with runtime:counters
    tell_late_threads(plan, plan.state.load(std::memory_order_acquire));
  }
  if (counters.count == 0) return;
  w->span_depth |= kReadsCounters;
  count_at_borders(w);
}

void close_counters(Process& p, Writer* w) {
  w->span_depth &= kSpanDepthMask;
  w->tracked_regions &= ~kCountsAtBorders;
  unmap_all(counter_source(), p.thread_counters[w->slot_index]);
}

void read_counters_at_entry(Writer* w, uint32_t depth) {
  ThreadCounters& counters = counters_of(w);
  read_thread_counters(&counters, counter_source(), &counters.entry[depth]);
}

void put_counters(Writer* w, uint32_t depth, const RecordHead& call, uint64_t duration) {
  ThreadCounters& counters = counters_of(w);
  CounterValues exit;
  read_thread_counters(&counters, counter_source(), &exit);
  const Record record =
      counters_record(call, duration, counters.count, counters.entry[depth], exit);
  aon_writer_put(w, &record);
}

void put_border_counters(Writer* w) {
  ThreadCounters& counters = counters_of(w);
  CounterValues now;
  read_thread_counters(&counters, counter_source(), &now);
  RecordHead border = {};
  border.start_ticks = ticks(w);
  border.id = kNextBorder;
  border.flags = (w->span_depth & kSpanDepthMask) != 0 ? kInsideSpan : 0;
  const Record record = counters_record(border, 0, counters.count, now, now);
  aon_writer_put(w, &record);
}

}  // namespace aon::runtime
