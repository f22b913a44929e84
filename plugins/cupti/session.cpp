#include "cupti/session.h"

#include <aon/cupti_version.h>
#include <aon/device.h>
#include <aon/writer.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cupti/calls.h"
#include "cupti/drain.h"
#include "cupti/driver.h"
#include "cupti/fields.h"
#include "cupti/gaps.h"
#include "cupti/governor.h"
#include "cupti/library.h"
#include "cupti/requests.h"
#include "cupti/session_remarks.h"
#include "cupti/settings.h"
#include "cupti/state.h"
#include "cupti/system_clock.h"

namespace aon::cupti {
namespace {

constexpr uint32_t kStopMs = 2000;
constexpr uint32_t kQuestionMs = 100;     ///< between two
constexpr uint32_t kHurriedMs = 10;       ///< between two flushes for want of a buffer
constexpr size_t kStackBytes = 2u << 20;  ///< libcupti and the driver run on it, too
constexpr size_t kOwnerBytes = 128;
constexpr size_t kMaxFolderBytes = 1024;

// Written in start(), then by our thread.
Client g_client;
Governor g_governor;
Settings g_settings;
bool g_collects;
char g_fixture_folder[kMaxFolderBytes];

Requests g_requests;  ///< of the program's threads, to ours
std::atomic<bool> g_has_thread{false};

/// Behind a pause there are records of the time before it.
ProviderState without_cupti(bool is_resumed) {
  return is_resumed ? ProviderState::kDegraded : ProviderState::kOff;
}

void tell_error(ProviderState state, const char* function, Code code) {
  const char* text = nullptr;
  g_client.cupti.get_result_string(code, &text);
  char reason[256];
  snprintf(reason, sizeof reason, "%s: error %d, %.100s", function, code,
           text != nullptr ? text : "unknown");
  tell(Remark::kStart, state, reason,
       "see `aon doctor` and the driver's log; the program is unhurt");
}

void tell_start(const MissingKinds& missing) {
  if (missing.text[0] == '\0') {
    const bool is_shared = g_client.backend == &kBackendV2;
    tell(Remark::kStart, ProviderState::kOn,
         is_shared ? "other clients of CUPTI may be there, too (v2)" : "", "");
    return;
  }
  char reason[MissingKinds::kMaxText + 32];
  snprintf(reason, sizeof reason, "not recorded: %s", missing.text);
  tell(Remark::kStart, ProviderState::kDegraded, reason, "a CUPTI of the driver's version");
}

/// Behind a pause, too: then graphs may have changed.
void tell_pause() {
  char reason[192];
  snprintf(reason, sizeof reason, "paused by the program: work of that time is not recorded%s",
           g_governor.has_lost_graphs()
               ? ", and graphs are recorded node by node since (some may have been made then)"
               : "");
  tell(Remark::kPause, ProviderState::kDegraded, reason, "");
}

/// Where the driver is too old the subscription would be given back and taken once more.
bool wants_v2() {
  return shared().quirks.has_subscribers && has_v2(g_client.cupti) && !g_settings.refuses_v2 &&
         driver_version() >= kDriverWithSubscribers;
}

void flush_before_release(const void* data) {
  const uint8_t* parameters = nullptr;
  memcpy(&parameters, static_cast<const uint8_t*>(data) + call_data::kParameters,
         sizeof parameters);
  const int32_t device = parameters != nullptr ? field<int32_t>(parameters, 0) : 0;
  Releases& releases = shared().releases;
  const Releases::Flush flush = releases.begin(read_clock(CLOCK_MONOTONIC), device);
  if (flush == Releases::Flush::kNone) return;
  const bool may_wait = flush == Releases::Flush::kWaiting;
  if (!flush_alone(g_client.cupti.flush_all, kFlushComplete, may_wait)) releases.skip(device);
}

/// CUPTI asks one by one for the calls that are told; what it tells beside them is none.
bool is_asked_for(int32_t domain, uint32_t id) {
  if (domain != kDriverDomain && domain != kRuntimeDomain) return false;
  return is_context_end(domain == kDriverDomain, id);
}

/// A call that ends a context: what is complete of its work is handed over before. NVIDIA's samples
/// flush before cudaDeviceReset(), or in this callback; from those of resources it may not be done.
/// Thread: the program's.
void on_event(void* user, int32_t domain, uint32_t id, const void* data) {
  if (domain == kStateDomain) {
    on_callback(user, domain, id, data);
    return;
  }
  if (!is_asked_for(domain, id)) return;
  const int32_t site = field<int32_t>(static_cast<const uint8_t*>(data), call_data::kSite);
  const bool may_flush = is_our_process() && !shared().is_dead.load(std::memory_order_relaxed) &&
                         shared().has_requested.load(std::memory_order_relaxed);
  if (site != kCallBegins || !may_flush) return;
  if (is_release(domain == kDriverDomain, id)) return flush_before_release(data);
  if (!flush_alone(g_client.cupti.flush_all, kFlushComplete))
    shared().has_skipped_flush.store(true, std::memory_order_relaxed);
}

/// Records of a context that ends unseen are lost with it. A function that the version does not
/// know is not missing.
void enable_callbacks(MissingKinds* missing) {
  const Functions& cupti = g_client.cupti;
  if (cupti.enable_callback(1, g_client.subscriber, kStateDomain, kFatalError) != kSuccess)
    add_missing(missing, "fatal errors of CUPTI");
  bool are_all = true;
  for (const ContextEnd& end : kContextEnds) {
    const int32_t domain = end.is_driver_call ? kDriverDomain : kRuntimeDomain;
    are_all &= cupti.enable_callback(1, g_client.subscriber, domain, end.id) == kSuccess ||
               !is_known_call(g_client, domain, end.id);
  }
  if (!are_all) add_missing(missing, "last work of contexts that end");
}

/// As one of several where that can be; a driver or a client of the older kind leaves the other.
Code subscribe(char (&owner)[kOwnerBytes]) {
  if (wants_v2()) {
    g_client.backend = &kBackendV2;
    if (g_client.backend->subscribe(&g_client, on_event, owner, sizeof owner) == kSuccess)
      return kSuccess;
  }
  g_client.backend = &kBackendV1;
  return g_client.backend->subscribe(&g_client, on_event, owner, sizeof owner);
}

void unsubscribe() {
  g_client.backend->reset(g_client);
  g_client.cupti.unsubscribe(g_client.subscriber);
}

/// Subscribes and switches everything on. After a pause the ledger keeps what it says of it.
bool collect(bool is_resumed) {
  const ProviderState without = without_cupti(is_resumed);
  char owner[kOwnerBytes] = {};
  const Code code = subscribe(owner);
  if (code != kSuccess) {
    if (code == kSubscribed) {
      tell_owner(without, owner);
    } else {
      tell_error(without, "cuptiSubscribe", code);
    }
    return false;
  }
  // Whoever had CUPTI may have left them on.
  if (is_resumed && !shared().quirks.hangs_on_disable) disable_graphs(g_client);
  // The buffer to throw away, which versions need that may not refuse, is never zero.
  g_client.backend->set_up(g_client,
                           {.has_zeroed_buffers = shared().quirks.may_refuse_buffers,
                            .has_graph_nodes = g_governor.has_graph_nodes(),
                            .has_pinned_buffers = shared().quirks.crashes_on_device_buffers});
  MissingKinds missing = {};
  static constexpr BufferCallbacks kCallbacks = {request_buffer, complete_buffer, request_buffer_v2,
                                                 complete_buffer_v2};
  Code result = g_client.backend->register_buffers(g_client, kCallbacks);
  const char* function = "cuptiActivityRegisterCallbacks";
  if (result == kSuccess) {
    result = g_governor.switch_on(&missing);
    function = "cuptiActivityEnable";
  }
  if (result != kSuccess) {
    tell_error(without, function, result);
    g_governor.leave();
    unsubscribe();
    return false;
  }
  enable_callbacks(&missing);
  g_collects = true;
  // Behind a pause, too: another client may have been in the way before. What was missing before it
  // stays told.
  static MissingKinds told = {};
  if (missing.text[0] != '\0') told = missing;
  tell_start(told);
  if (is_resumed) {
    tell_pause();
  } else {
    tell_version();
  }
  return true;
}

/// What is still there without a subscription: in v2 only a subscriber may read its records, and
/// they are missing for `cause`.
void take_rest(Drain* drain, GapCause cause) {
  if (g_client.backend == &kBackendV2 && !g_collects) {
    drain->discard_buffers(cause);
    return;
  }
  while (!drain->take_buffers()) {
  }
}

/// Switches everything off and gives the subscription back. What was recorded is flushed before,
/// and what came until all was off behind it. Where who asked gives up meanwhile CUPTI is left as
/// it is: the program may be within exit(), where libraries end.
void release(Drain* drain, GapCause cause) {
  if (!g_collects) return;
  const auto has_time = [] { return !g_requests.is_abandoned(); };
  drain->flush(kFlushComplete);
  if (has_time()) drain->flush(kFlushForced);
  if (has_time() && !shared().quirks.hangs_on_disable) {
    g_governor.leave();
    if (has_time()) drain->flush(kFlushForced);
  }
  if (has_time()) drain->ask_cupti();
  while (!drain->take_buffers()) {
  }
  if (!has_time()) return;
  unsubscribe();
  g_collects = false;
  take_rest(drain, cause);
}

/// CUPTI is ours again behind a pause, unless the program has graphs: CUPTI of CUDA 13.0 (driver
/// 580, an H100) ended a program that launched them then.
void take_back(Drain* drain) {
  if (!drain->has_seen_graphs()) {
    collect(true);
    return;
  }
  tell(Remark::kPause, ProviderState::kDegraded,
       "paused by the program, and work behind that is not recorded: it uses graphs, and CUPTI may "
       "crash on them where it was given away and taken back",
       "--cupti-mode exclusive");
}

void tell_blind() { g_governor.set_blind(g_collects ? GapCause::kUnknown : GapCause::kPause); }

bool is_dead() { return shared().is_dead.load(std::memory_order_relaxed); }

/// Answers the request, if there is one. False: the thread's work is done.
bool serve(Drain* drain) {
  const Request request = g_requests.take();
  if (request == Request::kNone) return true;
  bool is_well = false;
  // What comes behind the last flush: CUPTI has kept it back, or it is of a pause.
  const GapCause cause =
      request == Request::kStop && g_collects ? GapCause::kKept : GapCause::kPause;
  if (!is_dead()) {
    if (request == Request::kResume && !g_collects) take_back(drain);
    if (request == Request::kPause) g_governor.set_blind(GapCause::kPause);
    if (request != Request::kResume) release(drain, cause);
    if (request == Request::kPause) drain->forget_captures();
    is_well = g_collects == (request == Request::kResume);
    if (request != Request::kStop) tell_blind();
    if (request == Request::kPause) tell_pause();
  }
  if (request == Request::kStop) {
    take_rest(drain, cause);
    // Before the answer: the process may end right behind it.
    g_governor.finish(drain);
    if (!is_dead()) {  // else nobody has asked for what is kept
      drain->tell_silence();
      drain->tell_kept();
    }
    drain->tell_names();
    drain->tell_external_ids(true);
    tell_missing(true);
    tell_unread(false);
    tell_skipped_flush();
    tell_skipped_release();
  }
  const bool is_awaited = g_requests.answer(is_well);
  // Who was refused believes that CUPTI is still ours.
  if (!is_awaited && request == Request::kPause && is_well) {
    take_back(drain);
    tell_blind();
  }
  return request != Request::kStop;
}

uint64_t steady_ms() { return read_clock(CLOCK_MONOTONIC) / 1'000'000; }

void name_thread() {
  pthread_setname_np(pthread_self(), "aon-cupti");
  const IdDefinition thread = {static_cast<uint32_t>(syscall(SYS_gettid))};
  shared().drain_thread.store(static_cast<int>(thread.id), std::memory_order_relaxed);
  aon_define(static_cast<uint32_t>(DefinitionType::kThreadName), &thread, sizeof thread,
             kDeviceRecordsThread, sizeof kDeviceRecordsThread);
}

/// Flushes where a thread of the program was refused a buffer, not all the time: each that launches
/// holds one, which has few records. Returns when to try again; `end_ms` where none was refused.
uint64_t flush_hurriedly(Drain* drain, uint64_t end_ms) {
  static uint64_t last_ms;  // our thread only
  const bool may_flush = g_collects && !is_dead();
  if (!may_flush || !shared().wants_flush.load(std::memory_order_relaxed)) return end_ms;
  if (steady_ms() - last_ms >= kHurriedMs) {
    shared().wants_flush.store(false, std::memory_order_relaxed);
    drain->flush(kFlushComplete);
    while (!drain->take_buffers()) {
    }
    last_ms = steady_ms();
  }
  const uint64_t next_ms = last_ms + kHurriedMs;
  return next_ms < end_ms ? next_ms : end_ms;
}

void* run(void*) {
  static Drain drain;  // too large for the stack; once per process
  name_thread();
  drain.use(&g_client, g_fixture_folder);
  g_governor.begin();
  bool was_dead = false;
  bool has_begun = false;
  uint64_t last_flush_ms = 0;
  uint64_t next_flush_ms = 0;
  uint64_t last_question_ms = 0;
  // With a flush where questions are dear.
  const uint32_t question_ms = shared().quirks.slows_with_calls ? kDrainMs / 2 : kQuestionMs;
  for (;;) {
    const uint32_t seen = shared().wake.load(std::memory_order_acquire);  // pairs with cupti:wake
    const bool may_ask = !is_dead() && g_collects;
    if (!has_begun && shared().has_requested.load(std::memory_order_relaxed)) {
      has_begun = true;
      stay_out_of_captures();
      tell_unread(true);
    }
    tell_skipped_flush();
    tell_skipped_release();
    // A flush hands over buffers that are not full, and so wakes us: it has a clock of its own.
    const uint64_t start_ms = steady_ms();
    if (may_ask && start_ms >= next_flush_ms) {
      last_flush_ms = start_ms;
      next_flush_ms = g_governor.next_interval_ms(start_ms);
      drain.flush(kFlushComplete);
    }
    if (may_ask && (!drain.has_clock() || start_ms - last_question_ms >= question_ms)) {
      last_question_ms = start_ms;
      drain.ask_cupti();
    }
    const bool may_read = g_collects || g_client.backend != &kBackendV2;
    if (!may_read) drain.discard_buffers(GapCause::kPause);
    const bool is_all = !may_read || drain.take_buffers();
    if (is_all) drain.note_complete();
    if (may_ask && !is_dead() && last_flush_ms == start_ms) g_governor.end_interval(&drain);
    if (is_dead() && !was_dead) {
      was_dead = true;
      g_governor.set_blind(GapCause::kStopped);
      if (!drain.is_refused())
        tell(Remark::kEnd, ProviderState::kDegraded, "CUPTI reported a fatal error and stopped",
             "the driver's log may tell why; later work of the device is not recorded");
    }
    if (!serve(&drain)) break;
    if (!may_ask) g_governor.go_on();
    tell_missing(false);
    drain.tell_names();
    drain.tell_external_ids(false);
    if (!is_all) continue;
    // Without anything to flush (paused, or after a fatal error) only a wake brings work.
    const uint64_t now_ms = steady_ms();
    const uint64_t end_ms = may_ask ? flush_hurriedly(&drain, next_flush_ms) : now_ms + kDrainMs;
    if (now_ms < end_ms) wait_for_wake(seen, static_cast<uint32_t>(end_ms - now_ms));
  }
  return nullptr;
}

/// Asks our thread, behind others who ask, and waits for the answer, at most kStopMs in all.
Answer ask(Request request) {
  if (!is_our_process() || !g_has_thread.load(std::memory_order_relaxed)) return Answer::kRefused;
  const Answer answer = g_requests.ask(request, kStopMs, wake_drain);
  if (request == Request::kStop && answer != Answer::kNone)
    g_has_thread.store(false, std::memory_order_relaxed);
  return answer;
}

/// What our thread has not told.   Thread: the one that exits.
void tell_open_gaps() {
  const Writer* w = attached_writer();
  if (w == nullptr) return;
  const uint64_t complete = shared().complete_ticks.load(std::memory_order_relaxed);
  if (complete != 0) write_gap(GapCause::kUnread, complete, ticks(w));
  const char* gap = shared().open_gap.load(std::memory_order_acquire);  // pairs with cupti:gap
  const uint64_t start = shared().open_gap_ticks.load(std::memory_order_relaxed);
  if (gap != nullptr) write_gap(gap, start, ticks(w));
}

void note_exit() {
  const Writer* w = attached_writer();
  shared().exit_ns.store(read_clock(CLOCK_REALTIME), std::memory_order_relaxed);
  shared().exit_ticks.store(w != nullptr ? ticks(w) : 0,
                            std::memory_order_release);  // pairs with cupti:exit
}

bool start_thread() {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  sigset_t all;
  sigset_t saved;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &saved);
  pthread_t thread;
  const int error = pthread_create(&thread, &attributes, run, nullptr);
  pthread_sigmask(SIG_SETMASK, &saved, nullptr);
  pthread_attr_destroy(&attributes);
  return error == 0;
}

}  // namespace

void start() {
  if (shared().pid != 0) return;
  g_settings = read_settings();
  tell_settings(g_settings);
  if (g_settings.mode == Mode::kOff) {
    tell(Remark::kStart, ProviderState::kOff, "switched off by --cupti-mode (AON_CUPTI_MODE)",
         "another --cupti-mode");
    return;
  }
  CuptiLibrary library;
  const char* missing = load(&g_client.cupti, &library);
  tell_library(library, missing);
  if (missing != nullptr) return;
  uint32_t version = 0;
  g_client.cupti.get_version(&version);
  shared().quirks = quirks_of(version);
  g_settings.wanted.has_graph_nodes |= shared().quirks.crashes_on_graphs;
  const char* folder = getenv("AON_RECORD_FIXTURE");
  if (folder != nullptr && strlen(folder) < kMaxFolderBytes) strcpy(g_fixture_folder, folder);
  g_governor.use(&g_client, g_settings.wanted);
  shared().pid = getpid();
  if (!shared().pool.start(g_settings.memory_mib)) {
    tell(Remark::kStart, ProviderState::kOff, "no memory for the buffers",
         "a smaller --cupti-memory");
    return;
  }
  if (!collect(false)) return;
  if (!start_thread()) {
    tell(Remark::kStart, ProviderState::kOff, "no thread for the records",
         "a higher limit of threads (ulimit -u)");
    g_governor.leave();
    unsubscribe();
    return;
  }
  g_has_thread.store(true, std::memory_order_relaxed);
  on_exit([](int, void*) { stop(); }, nullptr);  // atexit() needs a library that is not libc.so
}

void stop() {
  if (!is_our_process() || !g_has_thread.load(std::memory_order_relaxed)) return;
  note_exit();
  if (ask(Request::kStop) != Answer::kNone) return;
  if (!shared().has_requested.load(std::memory_order_relaxed)) return;  // there was no work
  tell_open_gaps();
  char reason[160];
  snprintf(reason, sizeof reason,
           "the program ended before all records were read: about %u MiB of them are missing",
           shared().pool.queued_count() + 1);
  tell_unread(false);
  tell(Remark::kEnd, ProviderState::kDegraded, reason, "");
}

/// A version that may hang while kinds are disabled cannot give them up.
bool pause() {
  return g_settings.mode == Mode::kYield && !shared().quirks.hangs_on_disable &&
         ask(Request::kPause) == Answer::kDone;
}
bool resume() { return g_settings.mode == Mode::kYield && ask(Request::kResume) == Answer::kDone; }

}  // namespace aon::cupti
