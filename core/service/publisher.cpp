#include "core/service/publisher.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/file.h"
#include "core/base/log.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace aon::service {
namespace {

template <size_t kBytes>
void copy_text(char (&to)[kBytes], const char* from) {
  std::strncpy(to, from, kBytes - 1);
  to[kBytes - 1] = '\0';
}

/// Of an entry: each store comes after the odd version, the even one after all.
template <class T, class Value>
void put(std::atomic<T>& field, Value value) {
  field.store(value, std::memory_order_release);  // pairs with service:entry
}

}  // namespace

/// What a provider sees as its core.
struct Publisher::Hosted {
  Publisher* publisher;
  provider::Provider provider;
  uint32_t index;
  uint64_t next_tick_ns = 0;
  bool is_shown = false;  ///< in the page
};

/// The functions of aon_core_api; `aon_core` is a Hosted. Only the node itself is known here.
struct Publisher::Table {
  static Hosted* hosted(aon_core* core) { return reinterpret_cast<Hosted*>(core); }

  static uint64_t now_ticks(aon_core* core) {
    return clock::now_ticks(hosted(core)->publisher->tick_source_);
  }

  static uint32_t define_metric(aon_core* core, uint32_t process, const char* name,
                                const char* unit, const char* description, aon_metric_mode mode) {
    if (process != AON_PROCESS_NODE) return AON_NO_ID;
    const Hosted& self = *hosted(core);
    Page& page = *self.publisher->page_;
    const uint32_t count = page.series_count.load(std::memory_order_relaxed);
    for (uint32_t i = 0; i < count; ++i) {
      if (page.series[i].provider == self.index && std::strcmp(page.series[i].name, name) == 0)
        return i;
    }
    if (count >= kMaxSeries || std::strlen(name) >= sizeof(page.series[count].name)) {
      AON_LOG_WARNING("no room for the series %s", name);
      return AON_NO_ID;
    }
    SharedSeries& series = page.series[count];
    series.provider = self.index;
    series.mode = static_cast<uint32_t>(mode);
    copy_text(series.name, name);
    copy_text(series.unit, unit);
    copy_text(series.description, description);
    page.series_count.store(count + 1, std::memory_order_release);  // pairs with service:count
    return count;
  }

  static void sample(aon_core* core, uint32_t process, uint32_t metric, uint64_t ticks,
                     double value, uint64_t enabled_ns, uint64_t running_ns) {
    Page& page = *hosted(core)->publisher->page_;
    if (process != AON_PROCESS_NODE || metric >= page.series_count.load(std::memory_order_relaxed))
      return;
    SharedSeries& series = page.series[metric];
    const uint32_t version = series.version.load(std::memory_order_relaxed);
    series.version.store(version + 1, std::memory_order_relaxed);
    put(series.ticks, ticks);
    put(series.value, value);
    put(series.enabled_ns, enabled_ns);
    put(series.running_ns, running_ns);
    put(series.version, version + 2);
  }

  static void set_state(aon_core* core, uint32_t process, aon_state state, const char* reason,
                        const char* remedy) {
    if (process != AON_PROCESS_NODE) return;
    Hosted& self = *hosted(core);
    SharedProvider& shared = self.publisher->page_->providers[self.index];
    put(shared.state, static_cast<uint32_t>(state));
    if (self.is_shown) return;  // readers may be at its texts
    copy_text(shared.reason, reason);
    copy_text(shared.remedy, remedy);
  }

  static uint32_t intern(aon_core*, const char*) { return AON_NO_ID; }
  static void* reserve(aon_core*, uint32_t) { return nullptr; }
  static void commit(aon_core*, void*) {}
  static void log(aon_core* core, aon_log_level level, const char* text) {
    AON_LOG_AT(static_cast<LogLevel>(level), "%s: %s", hosted(core)->provider.name(), text);
  }
  static aon_status send_message(aon_core*, uint32_t, const void*, uint32_t, const int*, uint32_t) {
    return AON_UNAVAILABLE;
  }
  static aon_status define(aon_core*, uint32_t, uint32_t, const void*, uint32_t) {
    return AON_INVALID;
  }
  static aon_status put_record(aon_core*, uint32_t, uint32_t, const void*) { return AON_INVALID; }
  static void add_lost(aon_core*, uint32_t, uint32_t, uint64_t, uint64_t, uint64_t) {}
  static void add_cost(aon_core*, uint64_t) {}
  static uint32_t unwind(aon_core*, uint32_t, const aon_stack_copy*, uint64_t*, uint32_t) {
    return 0;
  }
  static uint32_t take_stack(aon_core*, uint32_t, aon_noted_stack*) { return 0; }
  static void set_stack_rate(aon_core*, uint32_t, uint32_t) {}

  static constexpr aon_core_api kApi = {AON_PROVIDER_ABI, sizeof(aon_core_api),
                                        now_ticks,        define_metric,
                                        sample,           set_state,
                                        intern,           reserve,
                                        commit,           log,
                                        send_message,     define,
                                        put_record,       add_lost,
                                        add_cost,         unwind,
                                        take_stack,       set_stack_rate};
};

Result<std::unique_ptr<Publisher>> Publisher::create() {
  UniqueFd fd(::memfd_create("aon-node", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd || ::ftruncate(fd.get(), sizeof(Page)) != 0)
    return errno_error("cannot make", "the page", errno);
  void* memory = ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) return errno_error("cannot map", "the page", errno);
  // From here on there is no other writable mapping: Linux 5.1 and later.
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;
  if (::fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) {
    const int error_number = errno;
    ::munmap(memory, sizeof(Page));
    return errno_error("cannot seal", "the page", error_number);
  }
  return std::unique_ptr<Publisher>(new Publisher(std::move(fd), static_cast<Page*>(memory)));
}

Publisher::Publisher(UniqueFd fd, Page* page)
    : fd_(std::move(fd)), page_(page), tick_source_(clock::choose_tick_source()) {
  page_->magic = kPageMagic;
  page_->version = kPageVersion;
  page_->clock_is_tsc = static_cast<uint32_t>(tick_source_);
}

Publisher::~Publisher() {
  for (const auto& hosted : hosted_) hosted->provider.stop();
  ::munmap(page_, sizeof(Page));
}

void Publisher::add(provider::Provider provider) {
  const uint32_t index = page_->provider_count.load(std::memory_order_relaxed);
  if (index >= kMaxShared) {
    AON_LOG_WARNING("no room for the provider %s", provider.name());
    return;
  }
  hosted_.push_back(std::unique_ptr<Hosted>(new Hosted{this, std::move(provider), index}));
  Hosted& hosted = *hosted_.back();
  SharedProvider& shared = page_->providers[index];
  copy_text(shared.name, hosted.provider.name());
  put(shared.state, static_cast<uint32_t>(AON_STATE_ON));
  const Status status =
      hosted.provider.start(reinterpret_cast<aon_core*>(&hosted), Table::kApi, "");
  if (!status && shared.state.load(std::memory_order_relaxed) == AON_STATE_ON) {
    put(shared.state, static_cast<uint32_t>(AON_STATE_OFF));
    copy_text(shared.reason, status.error().message.c_str());
  }
  hosted.is_shown = true;
  page_->provider_count.store(index + 1, std::memory_order_release);  // pairs with service:count
}

int Publisher::tick(uint64_t now_ns) {
  uint64_t next_ns = UINT64_MAX;
  for (const auto& hosted : hosted_) {
    const uint64_t period_ns = uint64_t{hosted->provider.tick_period_ms()} * 1'000'000u;
    if (period_ns == 0 || hosted->provider.state() != provider::Provider::State::kRunning) continue;
    if (now_ns >= hosted->next_tick_ns) {
      hosted->next_tick_ns = now_ns - now_ns % period_ns + period_ns;
      hosted->provider.tick(clock::now_ticks(tick_source_));
      note_failure(*hosted);
    }
    next_ns = std::min(next_ns, hosted->next_tick_ns);
  }
  return next_ns == UINT64_MAX ? -1 : static_cast<int>((next_ns - now_ns) / 1'000'000u + 1);
}

void Publisher::tick_all() {
  for (const auto& hosted : hosted_) {
    // A provider that costs too much leaves ticks out; flush() always reads.
    hosted->provider.flush();
    hosted->provider.tick(clock::now_ticks(tick_source_));
    note_failure(*hosted);
  }
}

void Publisher::note_failure(const Hosted& hosted) {
  if (hosted.provider.state() != provider::Provider::State::kFailed) return;
  put(page_->providers[hosted.index].state, static_cast<uint32_t>(AON_STATE_OFF));
}

void Publisher::add_crash(int32_t tid, uint32_t place) {
  const uint32_t count = page_->crash_count.load(std::memory_order_relaxed);
  SharedCrash& crash = page_->crashes[count % kCrashCount];
  const uint32_t version = crash.version.load(std::memory_order_relaxed);
  crash.version.store(version + 1, std::memory_order_relaxed);
  put(crash.tid, tid);
  put(crash.place, place);
  put(crash.version, version + 2);
  page_->crash_count.store(count + 1, std::memory_order_release);  // pairs with service:count
}

void Publisher::set_has_log(bool has_log) {
  page_->has_log.store(has_log ? 1 : 0, std::memory_order_relaxed);
}

}  // namespace aon::service
