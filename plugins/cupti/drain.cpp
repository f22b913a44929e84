#include "cupti/drain.h"

#include <aon/writer.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "cupti/fields.h"
#include "cupti/gaps.h"
#include "cupti/state.h"
#include "cupti/system_clock.h"

namespace aon::cupti {
namespace {

constexpr uint64_t kLeastPairDistanceNs = 10'000'000;  ///< of the host's clock
constexpr int kPairAttempts = 5;
constexpr uint32_t kCalibrateUs = 20'000;
constexpr size_t kCacheLineBytes = 64;
constexpr size_t kClearBytes = 2048;
constexpr uint64_t kSilentLaunches = 16;
constexpr uint64_t kLeastKeptNs = 1'000'000'000;
constexpr uint64_t kLongNs = 5'000'000'000;
constexpr size_t kAlignment = 8;          ///< of records
constexpr size_t kLeastRecordBytes = 40;  ///< of those with times

/// A call that did not work started nothing: it is the call of no work, and of no capture.
inline bool did_nothing(const uint8_t* call) {
  return AON_UNLIKELY(field<int32_t>(call, api::kResult) != 0) && !is_end_of_capture(call);
}

bool is_nameless(const Work& work) {
  return work.operation == DeviceOperation::kKernel && work.name == nullptr;
}
void note_nameless() { shared().missing.nameless.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

void Drain::use(const Client* client, const char* fixture_folder) {
  client_ = client;
  emitter_.use(&client->cupti);
  uint32_t version = 0;
  if (client->cupti.get_version(&version) == kSuccess)
    fixture_.open_for_process(fixture_folder, version);
}

/// Where CUPTI does not tell its time, it is that of the host: its default.
void Drain::read_time(uint64_t* ns) const {
  if (client_->backend->read_time(*client_, ns) == kSuccess) return;
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  *ns = static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

/// Reads both clocks together: the attempt with the narrowest bracket counts.
void Drain::note_clock(const Writer* w) {
  const uint64_t now_ns = read_clock(CLOCK_MONOTONIC);
  if (last_pair_ns_ != 0 && now_ns - last_pair_ns_ < kLeastPairDistanceNs) return;
  last_pair_ns_ = now_ns;
  const int attempts = shared().quirks.slows_with_calls ? 1 : kPairAttempts;
  ClockPair best = {};
  uint64_t narrowest = UINT64_MAX;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    uint64_t ns = 0;
    const uint64_t before = ticks(w);
    read_time(&ns);
    const uint64_t after = ticks(w);
    if (after - before >= narrowest) continue;
    narrowest = after - before;
    best = {before + (after - before) / 2, ns};
  }
  emitter_.clock().add(best);
}

/// Two pairs at least: one has no rate.
void Drain::follow_clock() {
  const Writer* w = attached_writer();
  if (w == nullptr) return;
  note_clock(w);
  if (has_clock()) return;
  usleep(kCalibrateUs);
  note_clock(w);
}

void Drain::flush(uint32_t flag) {
  // A CUPTI that was never asked for a buffer may wait for ever.
  if (!shared().has_requested.load(std::memory_order_relaxed)) return;
  const Writer* w = attached_writer();
  const uint64_t begin_ticks = w != nullptr ? ticks(w) : 0;
  Code code = kSuccess;
  if (flush_alone(client_->cupti.flush_all, flag, true, &code)) {
    flush_ticks_ = code == kSuccess ? begin_ticks : 0;
    note_flush(code);
  } else if (flag != kFlushComplete) {
    // What our own of each half second leaves, the next one takes.
    shared().has_skipped_flush.store(true, std::memory_order_relaxed);
  }
}

/// One that fails may be an accident. Behind cuptiFinalize(), which others may call, all do.
void Drain::note_flush(Code code) {
  flush_errors_ = code == kSuccess ? 0 : flush_errors_ + 1;
  if (flush_errors_ != kMostErrors) return;
  shared().is_dead.store(true, std::memory_order_relaxed);
  char reason[160];
  snprintf(reason, sizeof reason,
           "CUPTI hands no records over any more (cuptiActivityFlushAll: error %d)", code);
  tell(Remark::kFailed, ProviderState::kDegraded, reason,
       "another client may have finalized it; the driver's log");
}

void Drain::ask_cupti() {
  if (!shared().has_requested.load(std::memory_order_relaxed)) return;
  follow_clock();
  size_t dropped = 0;
  const Code code = client_->backend->take_dropped(*client_, &dropped);
  if (code != kSuccess || dropped == 0) return;
  Missing& missing = shared().missing;
  const uint64_t refused = missing.refused.load(std::memory_order_relaxed);
  const bool is_unbuffered = std::exchange(refused_count_, refused) != refused;
  (is_unbuffered ? missing.unbuffered : missing.dropped)
      .fetch_add(dropped, std::memory_order_relaxed);
}

bool Drain::take_buffers() {
  if (!shared().has_requested.load(std::memory_order_relaxed)) return true;
  for (uint32_t count = 0; count < kBuffersPerPass; ++count) {
    FilledBuffer buffer = shared().pool.next();
    if (buffer.bytes == nullptr) {
      emitter_.tell_pause();
      return true;
    }
    read(&buffer);
    shared().pool.give_back(buffer);
  }
  return false;
}

void Drain::discard_buffers(GapCause cause) {
  uint64_t bytes = 0;
  for (;;) {
    const FilledBuffer buffer = shared().pool.next();
    if (buffer.bytes == nullptr) break;
    bytes += buffer.valid_bytes;
    shared().pool.give_back(buffer);
  }
  if (bytes == 0) return;
  shared().missing.late_bytes.fetch_add(bytes, std::memory_order_relaxed);
  const uint64_t complete = shared().complete_ticks.load(std::memory_order_relaxed);
  if (const Writer* w = attached_writer(); w != nullptr && complete != 0)
    write_gap(cause, complete, ticks(w));
}

void Drain::keep(const FilledBuffer& buffer) {
  for_each_record({buffer.bytes, buffer.valid_bytes}, [&](const uint8_t* record) {
    if (kind_of(record) != Kind::kConcurrentKernel) return;
    Work work;
    parse(record, shared().quirks, &work);
    if (work.name != nullptr) fixture_.add_name(work.name);
  });
  fixture_.add_buffer(buffer.bytes, buffer.valid_bytes);
}

/// Clears behind itself, while the records are in the cache, but not beyond the first record of
/// waiting: those are read once more.
void Drain::read(FilledBuffer* buffer) {
  if (fixture_.is_open()) keep(*buffer);
  emitter_.begin_buffer();
  const bool is_usual =
      has_seen_work_ && emitter_.clock().pair_count() != 0 && !shared().are_graphs_confused;
  const size_t clear_bytes = client_->backend->looks_at_one_record ? kClearBytes : SIZE_MAX;
  uint8_t* first_wait = nullptr;
  uint8_t* cleared = buffer->bytes;
  const Walk walk = for_each_record({buffer->bytes, buffer->valid_bytes}, [&](uint8_t* record) {
    if (AON_UNLIKELY(static_cast<size_t>(record - cleared) >= clear_bytes) &&
        first_wait == nullptr) {
      memset(cleared, 0, static_cast<size_t>(record - cleared));
      cleared = record;
    }
    if (AON_LIKELY(is_usual) && AON_LIKELY(take_frequent(record))) return;
    if (kind_of(record) != Kind::kSynchronization) {
      take(record);
    } else if (first_wait == nullptr) {
      first_wait = record;
    }
  });
  if (!walk.is_whole) shared().missing.damaged.fetch_add(1, std::memory_order_relaxed);
  if (walk.unknown != 0)
    shared().missing.unknown.fetch_add(walk.unknown, std::memory_order_relaxed);
  if (first_wait != nullptr) read_waits(*buffer, first_wait);
  buffer->cleared_bytes = static_cast<size_t>(cleared - buffer->bytes);
}

/// Who waited stands in the record of the call, which may come behind that of the waiting.
void Drain::read_waits(const FilledBuffer& buffer, uint8_t* first) {
  const std::span<uint8_t> bytes(first, buffer.bytes + buffer.valid_bytes);
  for_each_record(bytes, [&](const uint8_t* record) {
    if (kind_of(record) == Kind::kSynchronization) take(record);
  });
}

/// Where CUPTI's iterator meets what it does not know, the next record is looked for.
template <class Action>
Drain::Walk Drain::for_each_record(std::span<uint8_t> bytes, Action action) const {
  constexpr Code kEnd = 12;            // CUPTI_ERROR_MAX_LIMIT_REACHED
  constexpr size_t kAheadBytes = 512;  // two kernels and two calls
  const auto next = client_->backend->next_record;
  Walk walk;
  while (!bytes.empty()) {
    uint8_t* last = nullptr;
    Code code = kSuccess;
    for (uint8_t* record = nullptr;;) {
      code = next(*client_, bytes.data(), bytes.size(), &record);
      if (code != kSuccess) break;
      last = record;
      // Written by another core a moment ago, and cleared by this one in a moment.
      __builtin_prefetch(record + kAheadBytes, 1);
      __builtin_prefetch(record + kAheadBytes + kCacheLineBytes, 1);
      action(record);
    }
    if (code == kEnd) return walk;
    uint8_t* end = bytes.data() + bytes.size();
    uint8_t* unknown = last != nullptr ? last + length_of({last, end}) : bytes.data();
    uint8_t* found = find_record({unknown, end});
    if (found == nullptr) {
      walk.is_whole = false;
      return walk;
    }
    ++walk.unknown;
    bytes = {found, end};
  }
  return walk;
}

/// Of the record at the begin: what CUPTI's iterator needs to give it; 0: it is none.
size_t Drain::length_of(std::span<uint8_t> bytes) const {
  const auto is_record = [&](size_t count) {
    uint8_t* record = nullptr;
    return client_->backend->next_record(*client_, bytes.data(), count, &record) == kSuccess;
  };
  if (!is_record(bytes.size())) return 0;
  size_t count = kAlignment;
  while (count < bytes.size() && !is_record(count)) count += kAlignment;
  return count;
}

/// The first record in `bytes` that is surely one: with times of about now. Null: there is none.
uint8_t* Drain::find_record(std::span<uint8_t> bytes) const {
  for (; bytes.size() >= kLeastRecordBytes; bytes = bytes.subspan(kAlignment)) {
    if (length_of(bytes) == 0) continue;
    Work work;
    const bool is_work = parse(bytes.data(), shared().quirks, &work) == Parsed::kWork;
    if (is_work && has_plausible_times(work)) return bytes.data();
  }
  return nullptr;
}

void Drain::rest() {
  const Writer* w = attached_writer();
  const bool has_slot = w != nullptr && w->slot != nullptr;
  usleep(pace_.rest_us(has_slot ? w->slot->stream[0].refused.load(std::memory_order_relaxed) : 0));
}

inline void Drain::note_call(uint32_t correlation, uint32_t thread, uint64_t start) {
  call_threads_.note(correlation, thread, start);
  if (AON_UNLIKELY(!external_ids_.is_empty())) put_external_ids(correlation, thread, start);
}

/// Most records are kernels and calls with good times. False: take() is for this one.
inline bool Drain::take_frequent(const uint8_t* record) {
  const Kind kind = kind_of(record);
  if (kind == Kind::kConcurrentKernel) {
    Work work = {};
    parse_kernel(record, shared().quirks, &work);
    if (AON_UNLIKELY(!has_times(work) || !has_plausible_times(work))) return false;
    records_ns_ += work.graph != 0 ? kNodeNs : kLaunchNs;
    counts_.nodes += work.graph != 0 ? 1 : 0;
    if (AON_UNLIKELY(work.name == nullptr)) note_nameless();
    last_work_ns_ = work.end_ns;
    emitter_.put(work);
  } else if (kind == Kind::kRuntime || kind == Kind::kDriver) {
    Work work = {};
    parse_call(record, kind == Kind::kDriver, &work);
    if (AON_UNLIKELY(!has_times(work) || !has_plausible_times(work))) return false;
    const uint32_t correlation = work.correlation;
    if (did_nothing(record)) work.correlation = 0;
    records_ns_ += kOtherNs;
    ++counts_.calls;
    last_work_ns_ = work.end_ns;
    note_call(correlation, work.stream, emitter_.put(work));
  } else {
    return false;
  }
  ++counts_.all;
  if (AON_UNLIKELY(pace_.is_due())) rest();
  return true;
}

void Drain::look_for_work(const Work& work, const uint8_t* record) {
  has_seen_work_ = work.row == Row::kStream;
  if (work.row != Row::kCalls || did_nothing(record)) return;
  const Does does = does_of(work);
  Capture* const last = captures_ + capture_count_;
  Capture* const own =
      std::find_if(captures_, last, [&](const Capture& one) { return one.thread == work.stream; });
  const bool is_capturing = own != last;
  if (does == Does::kCapture && is_capturing) own->begin_ns = work.start_ns;
  if (does == Does::kCapture && !is_capturing && capture_count_ < kMostCapturing)
    captures_[capture_count_++] = {work.stream, work.start_ns};
  if (does == Does::kEndCapture) end_capture(is_capturing ? own : captures_);
  const bool is_launch = does == Does::kLaunch || does == Does::kLaunchGraph;
  const bool is_captured = is_capturing && work.start_ns < own->begin_ns + kLongestCaptureNs;
  if (is_launch && !is_captured) ++launch_count_;
}

/// Ends `capture`: another thread may end what one has begun. Where none is known to capture
/// the begin was not seen, and what was launched behind it has not run.
void Drain::end_capture(Capture* capture) {
  if (capture_count_ == 0) {
    launch_count_ = 0;
  } else {
    *capture = captures_[--capture_count_];
  }
}

/// A CUPTI that is older than the GPU reports no error and no work.
void Drain::tell_silence() const {
  const Missing& missing = shared().missing;
  const bool is_told = missing.dropped.load(std::memory_order_relaxed) != 0 ||
                       missing.without_times.load(std::memory_order_relaxed) != 0 ||
                       missing.unbuffered.load(std::memory_order_relaxed) != 0 ||
                       missing.discarded_bytes.load(std::memory_order_relaxed) != 0 ||
                       missing.late_bytes.load(std::memory_order_relaxed) != 0;
  if (has_seen_work_ || is_told || launch_count_ < kSilentLaunches) return;
  uint32_t version = 0;
  client_->cupti.get_version(&version);
  char reason[200];
  snprintf(reason, sizeof reason,
           "the program launched work %" PRIu64 " times and CUPTI (version %" PRIu32
           ") told of none: it may be older than the GPU",
           launch_count_, version);
  tell(Remark::kSilence, ProviderState::kDegraded, reason,
       "the CUPTI of a CUDA that knows the GPU, in LD_LIBRARY_PATH");
}

void Drain::note_complete() {
  if (flush_ticks_ == 0) return;
  const uint64_t now_ns = read_clock(CLOCK_REALTIME);
  const uint64_t since_ns = shared().pool.kept_since_ns(now_ns);
  uint64_t complete_ticks = flush_ticks_;
  if (has_clock()) complete_ticks = std::min(complete_ticks, emitter_.clock().to_ticks(since_ns));
  shared().complete_ticks.store(complete_ticks, std::memory_order_relaxed);
  flush_ticks_ = 0;
  const uint64_t kept_ns = now_ns - since_ns;
  tell_kept_back(kept_ns >= kLongNs ? kept_ns : 0);
}

void Drain::tell_kept_back(uint64_t kept_ns) {
  const bool is_told = kept_ns != 0 ? kept_ns < 2 * kept_told_ns_ : kept_told_ns_ == 0;
  if (is_told) return;
  kept_told_ns_ = kept_ns;
  if (kept_ns == 0) return tell(Remark::kKept, ProviderState::kOn, "", "");
  char reason[200];
  snprintf(reason, sizeof reason,
           "CUPTI keeps records of the last %" PRIu64
           " s back: a kernel runs as long, or CUPTI is stuck; a program that is killed loses them",
           kept_ns / 1'000'000'000);
  tell(Remark::kKept, ProviderState::kDegraded, reason, "");
}

/// What CUPTI writes about the last flush itself is younger than the limit.
void Drain::tell_kept() {
  const Writer* w = attached_writer();
  const uint64_t now_ns = read_clock(CLOCK_REALTIME);
  const uint64_t since_ns = shared().pool.kept_since_ns(now_ns);
  if (now_ns - since_ns < kLeastKeptNs || w == nullptr || !has_clock()) return tell_kept_back(0);
  write_gap(GapCause::kKept, emitter_.clock().to_ticks(since_ns), ticks(w));
  char reason[160];
  snprintf(reason, sizeof reason,
           "CUPTI did not hand over records of the last %.1f s: work of that time is missing",
           static_cast<double>(now_ns - since_ns) / 1e9);
  tell(Remark::kKept, ProviderState::kDegraded, reason, "the CUPTI of another CUDA version");
}

void Drain::tell_names() {
  const struct {
    bool is_so;
    const char* text;
  } facts[] = {{shared().missing.nameless.load(std::memory_order_relaxed) != 0,
                "CUPTI gave kernels without a name: \"[CUDA kernel]\""},
               {emitter_.names().has_shared(),
                "there is no room for the names of all kernels: the others are \"(more names)\""},
               {emitter_.names().has_cut(), "names of kernels beyond 3072 characters are cut"}};
  uint32_t found = 0;
  char reason[320] = "";
  for (const auto& fact : facts) {
    found = 2 * found + (fact.is_so ? 1 : 0);
    if (!fact.is_so) continue;
    const size_t used = strlen(reason);
    snprintf(reason + used, sizeof reason - used, "%s%s", used != 0 ? "; " : "", fact.text);
  }
  if (found == names_told_) return;
  names_told_ = found;
  tell(Remark::kNames, ProviderState::kDegraded, reason, "");
}

/// Of our thread and CUPTI's the CPU time is known; what they wait is not the program's.
bool Drain::is_of_measured_thread(const Work& overhead) {
  const auto thread = static_cast<int>(overhead.stream);
  return thread != 0 && (thread == shared().drain_thread.load(std::memory_order_relaxed) ||
                         thread == shared().worker_thread.load(std::memory_order_relaxed));
}

/// Of our flushes while the program does nothing: each has CUPTI record what the last one took. A
/// program that hangs would never be quiet.
bool Drain::is_idle_cost(const Work& cost) const {
  constexpr uint64_t kIdleNs = 1'000'000'000;
  return cost.start_ns > last_work_ns_ && cost.start_ns - last_work_ns_ > kIdleNs;
}

bool Drain::has_plausible_times(const Work& work) const {
  return emitter_.clock().is_plausible(work.start_ns) && emitter_.clock().is_plausible(work.end_ns);
}

void Drain::take(const uint8_t* record) {
  if (kind_of(record) == Kind::kExternalCorrelation) return take_external_id(record);
  Missing& missing = shared().missing;
  Work work;
  const Parsed parsed = parse(record, shared().quirks, &work);
  records_ns_ += cost_of(parsed, work);
  ++counts_.all;
  if (parsed != Parsed::kIgnored) {
    counts_.calls += work.row == Row::kCalls ? 1 : 0;
    counts_.nodes += is_node(work) ? 1 : 0;
    counts_.graphs += work.operation == DeviceOperation::kGraph ? 1 : 0;
  }
  // Without a pair of clocks no time of CUPTI is one of ours.
  const bool is_timeless = parsed == Parsed::kWork && emitter_.clock().pair_count() == 0;
  if (parsed == Parsed::kZeroTimes || is_timeless) {
    missing.without_times.fetch_add(1, std::memory_order_relaxed);
  } else if (parsed == Parsed::kDamaged ||
             (parsed == Parsed::kWork && !has_plausible_times(work))) {
    missing.damaged.fetch_add(1, std::memory_order_relaxed);
  } else if (parsed == Parsed::kWork) {
    if (!has_seen_work_) look_for_work(work, record);
    if (shared().are_graphs_confused && is_of_graph(work)) work.correlation = 0;
    if (work.is_cost_of_records && !is_of_measured_thread(work))
      overhead_ns_ += work.end_ns - work.start_ns;
    const uint32_t correlation = work.correlation;
    if (work.row == Row::kCalls && did_nothing(record)) work.correlation = 0;
    if (work.row == Row::kOverhead) {
      if (is_idle_cost(work)) return;
    } else {
      last_work_ns_ = work.end_ns;
    }
    if (is_nameless(work)) note_nameless();
    if (work.row == Row::kSynchronization) work.stream = call_threads_.thread_of(work.correlation);
    const uint64_t start = emitter_.put(work);
    if (work.row == Row::kCalls) note_call(correlation, work.stream, start);
    if (pace_.is_due()) rest();
  }
}

}  // namespace aon::cupti
