#include "perf/sampling/process.h"

#include <aon/lost_record.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <utility>

#include "perf/sampling/perf_map.h"

namespace aon::perf {
namespace {

constexpr size_t kNodesPerDefinition = 4096;
constexpr size_t kMaxJitAddresses = 65536;
constexpr size_t kMaxPerfMapBytes = size_t{256} << 20;  ///< a second or two to read
constexpr uint64_t kNsPerSecond = 1'000'000'000;

std::string proc_path(pid_t pid, const std::string& rest) {
  return "/proc/" + std::to_string(pid) + "/" + rest;
}

/// A definition with one or no string, in one piece.
template <class T>
std::vector<uint8_t> payload_of(const T& definition, std::string_view text) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(&definition);
  std::vector<uint8_t> payload(bytes, bytes + sizeof(definition));
  payload.insert(payload.end(), text.begin(), text.end());
  payload.push_back(0);
  return payload;
}

/// The last number of a line of /proc/PID/status: of NSpid the innermost namespace's, of Uid the
/// one that files are made with.
int64_t last_number(const std::string& status, const char* key, int64_t otherwise) {
  const size_t line = status.find(key);
  if (line == std::string::npos) return otherwise;
  const size_t end = status.find('\n', line);
  const size_t last = status.find_last_of(" \t", end);
  return last == std::string::npos || last < line ? otherwise : atoll(status.c_str() + last + 1);
}

/// When a process began, in clock ticks since boot: field 22 of its /proc/PID/stat; 0 unknown.
int64_t start_ticks(const std::string& process_stat) {
  size_t at = process_stat.rfind(')');
  for (int field = 2; field < 22 && at != std::string::npos; ++field)
    at = process_stat.find(' ', at + 1);
  return at == std::string::npos ? 0 : atoll(process_stat.c_str() + at + 1);
}

/// The same in seconds since the epoch, by /proc/stat; 0 unknown.
int64_t start_time_s(int64_t ticks, const std::string& system_stat) {
  const size_t boot = system_stat.find("btime ");
  if (boot == std::string::npos || ticks == 0) return 0;
  return atoll(system_stat.c_str() + boot + 6) + ticks / sysconf(_SC_CLK_TCK);
}

}  // namespace

SampledProcess::SampledProcess(const SamplingHost& host, uint32_t process, pid_t pid)
    : host_(host),
      process_(process),
      pid_(pid),
      mappings_(process, host.first_id, proc_path(pid, "root"), read_build_id,
                [pid](uint64_t start, uint64_t end) { return read_mapped_path(pid, start, end); }),
      tree_(host.first_id),
      own_pid_(pid) {
  const std::string status = host.kernel->read_file(proc_path(pid, "status"));
  own_pid_ = static_cast<pid_t>(last_number(status, "NSpid:", pid));
  owner_ = static_cast<uid_t>(last_number(status, "Uid:", static_cast<int64_t>(geteuid())));
  start_ticks_ = start_ticks(host.kernel->read_file(proc_path(pid, "stat")));
  temporary_folder_ = host.kernel->open_folder(proc_path(pid, "root/tmp"));
}

SampledProcess::~SampledProcess() {
  for (auto& [tid, thread] : threads_) close_thread(&thread);
  if (temporary_folder_ >= 0) host_.kernel->close_event(temporary_folder_);
}

void SampledProcess::close_thread(Thread* thread) {
  host_.kernel->unmap_ring(thread->ring.pages(), thread->ring.data_bytes());
  host_.kernel->close_event(thread->fd);
}

int SampledProcess::open_thread(pid_t tid, uint64_t rate_hz) {
  const auto turns = turns_.find(tid);
  if (threads_.count(tid) != 0 || (turns != turns_.end() && turns->second.is_left)) return 0;
  if (threads_.size() >= kMaxSampledThreads) return E2BIG;
  const int fd = host_.kernel->open_event(host_.event.attributes(rate_hz), tid, kNoGroup);
  if (fd < 0) return fd == -ESRCH ? 0 : -fd;  // it has ended
  const size_t wanted_bytes = host_.event.ring_bytes();
  for (const size_t least_bytes : {wanted_bytes, wanted_bytes / kSmallerRing}) {
    const size_t bytes = ring_data_bytes(least_bytes, ring_page_bytes());
    void* pages = host_.kernel->map_ring(fd, bytes);
    if (pages == nullptr) continue;
    threads_.emplace(tid, Thread{fd, SampleRing(pages, bytes)});
    unnamed_.insert(tid);
    is_watched_ = true;
    has_small_ring_ |= bytes < wanted_bytes;
    return 0;
  }
  host_.kernel->close_event(fd);
  return EPERM;
}

/// Times that a thread was given a CPU; 0 unknown.
uint64_t SampledProcess::turns_of(pid_t tid) const {
  const std::string text =
      host_.kernel->read_file(proc_path(pid_, "task/" + std::to_string(tid) + "/schedstat"));
  unsigned long long count = 0;
  if (sscanf(text.c_str(), "%*u %*u %llu", &count) == 1 && count != 0) return count;
  TaskCounts counts{};  // a kernel without CONFIG_SCHED_INFO
  return host_.kernel->read_task(pid_, tid, &counts) ? counts.context_switches : 0;
}

uint64_t SampledProcess::count_switches() {
  if (has_timers()) return 0;
  const uint64_t now_ns = host_.kernel->now_ns();
  const double seconds = static_cast<double>(now_ns - last_look_ns_) / kNsPerSecond;
  last_look_ns_ = now_ns;
  std::map<pid_t, Turns> seen;
  uint64_t watched = 0;
  for (const pid_t tid : host_.kernel->list_tasks(pid_)) {
    Turns turns{turns_of(tid)};
    const auto before = turns_.find(tid);
    // A thread id that was given to a new thread begins anew.
    if (before != turns_.end() && before->second.count <= turns.count) {
      const uint64_t fresh = turns.count - before->second.count;
      turns.per_second = static_cast<uint64_t>(static_cast<double>(fresh) / seconds);
      turns.is_left = before->second.is_left;
      if (threads_.count(tid) != 0) watched += fresh;
    }
    seen[tid] = turns;
  }
  turns_ = std::move(seen);
  return watched;
}

std::vector<SampledProcess::Switching> SampledProcess::switching_threads() const {
  std::vector<Switching> threads;
  for (const auto& [tid, turns] : turns_) {
    const bool is_watched = threads_.count(tid) != 0;
    if (turns.is_left || (is_watched && turns.per_second != 0))
      threads.push_back({tid, turns.per_second, turns.is_left});
  }
  return threads;
}

void SampledProcess::leave(pid_t tid) {
  turns_.at(tid).is_left = true;
  most_left_ = std::max(most_left_, left_count());
  const auto found = threads_.find(tid);
  if (found == threads_.end()) return;
  drain(&found->second);
  close_thread(&found->second);
  threads_.erase(found);
}

void SampledProcess::take_back(pid_t tid) { turns_.at(tid).is_left = false; }

size_t SampledProcess::left_count() const {
  return static_cast<size_t>(std::count_if(turns_.begin(), turns_.end(),
                                           [](const auto& entry) { return entry.second.is_left; }));
}

void SampledProcess::scan(uint64_t rate_hz) {
  if (has_timers()) {
    read_maps();
    return;
  }
  const std::vector<pid_t> tasks = host_.kernel->list_tasks(pid_);
  const std::set<pid_t> alive(tasks.begin(), tasks.end());
  // A full ring may have dropped the record of a thread's end.
  for (auto& [tid, thread] : threads_) thread.has_ended |= alive.count(tid) == 0;
  fresh_threads_.clear();
  const size_t before = threads_.size();
  size_t unwatched_count = 0;
  for (const pid_t tid : alive) {
    const int error = open_thread(tid, rate_hz);
    if (error == 0) continue;
    ++unwatched_count;
    if (thread_error_ == 0) thread_error_ = error;
  }
  unwatched_count_ = std::max(unwatched_count_, unwatched_count);
  // What a thread mapped while it was not watched was told to nobody. After the rings: what is
  // mapped in between is told twice, not never.
  if (threads_.size() != before || left_count() != 0) read_maps();
}

int SampledProcess::open(uint64_t rate_hz) {
  rate_hz_ = rate_hz;
  rates_ = {{0, rate_hz}};
  if (has_timers()) {
    is_watched_ = true;
    set_rate(rate_hz);
  }
  scan(rate_hz);
  return thread_error_;
}

void SampledProcess::read_maps() {
  const std::string text = host_.kernel->read_file(proc_path(pid_, "maps"));
  if (text.empty()) return;  // it has ended: what was known stays
  if (mappings_.replace(parse_maps(text))) tree_.forget_addresses();
}

void SampledProcess::note_rate(uint64_t rate_hz) {
  rate_hz_ = rate_hz;
  // What is put by now asks for no earlier ones, but for the one in force.
  while (rates_.size() > 1 && rates_[1].since_ns <= last_put_ns_) rates_.erase(rates_.begin());
  rates_.push_back({host_.kernel->now_ns(), rate_hz});
}

/// CPU time that a sample of a clock stands for. The kernel tells the period of the clock's first
/// rate in all of its samples, also when it was given another one.
uint64_t SampledProcess::period_at(uint64_t time_ns) const {
  uint64_t hz = rate_hz_;
  for (const Rate& rate : rates_) {
    if (rate.since_ns <= time_ns) hz = rate.hz;
  }
  return kNsPerSecond / std::max<uint64_t>(hz, 1);
}

void SampledProcess::set_rate(uint64_t rate_hz) {
  note_rate(rate_hz);
  if (has_timers()) {
    host_.api->set_stack_rate(host_.core, process_, static_cast<uint32_t>(rate_hz));
    return;
  }
  const uint64_t value = host_.event.period_or_rate(rate_hz);
  for (const auto& [tid, thread] : threads_) host_.kernel->set_period(thread.fd, value);
}

void SampledProcess::visit(const perf_event_header& header, std::span<const uint8_t> body) {
  RawTask task;
  RawMapping mapping;
  switch (header.type) {
    case PERF_RECORD_SAMPLE:
      take_sample(body);
      break;
    case PERF_RECORD_LOST:
      lost_count_ += parse_lost(body);
      break;
    case PERF_RECORD_MMAP2:
      if (parse_mapping(body, &mapping)) fresh_mappings_.push_back(mapping);
      break;
    case PERF_RECORD_FORK:
      if (parse_task(body, &task) && task.pid == pid_) fresh_threads_.insert(task.tid);
      break;
    case PERF_RECORD_EXIT:
      if (parse_task(body, &task)) {
        fresh_threads_.erase(task.tid);
        const auto found = threads_.find(task.tid);
        if (found != threads_.end()) found->second.has_ended = true;
      }
      break;
    default:
      break;
  }
}

void SampledProcess::take_sample(std::span<const uint8_t> body) {
  const CallGraph how = host_.event.call_graph;
  const SampleTail tail = how == CallGraph::kBranches      ? SampleTail::kBranches
                          : how == CallGraph::kStackCopies ? SampleTail::kStackCopy
                                                           : SampleTail::kNothing;
  if (!parse_sample(body, tail, &raw_)) {
    ++lost_count_;
    return;
  }
  if (raw_.has_stack) unwind();
  const bool is_clock = host_.event.source != SamplingSource::kCycles;
  samples_.push_back(
      {raw_.time_ns, raw_.tid, is_clock ? period_at(raw_.time_ns) : raw_.period, raw_.frames});
}

void SampledProcess::unwind() {
  const uint64_t* r = raw_.registers;
  const aon_stack_copy copy{.bx = r[0],
                            .bp = r[1],
                            .sp = r[2],
                            .r12 = r[4],
                            .r13 = r[5],
                            .r14 = r[6],
                            .r15 = r[7],
                            .ip = r[3],
                            .bytes = raw_.stack.data(),
                            .byte_count = raw_.stack.size()};
  uint64_t frames[kMaxFrames];
  const uint32_t count = host_.api->unwind(host_.core, process_, &copy, frames, kMaxFrames);
  if (count != 0) raw_.frames.assign(frames, frames + count);
}

void SampledProcess::drain(Thread* thread) {
  const bool is_whole =
      thread->ring.drain([this](const perf_event_header& header, std::span<const uint8_t> body) {
        visit(header, body);
      });
  if (!is_whole) ++lost_count_;  // one at least
}

/// No record tells what is mapped: a look at it where a stack is in what is not known.
void SampledProcess::take_noted_stacks() {
  constexpr int kMaxTaken = 65536;  // at one time: the process may write as fast as this reads
  bool has_looked = false;
  uint64_t now_ns = 0;
  aon_noted_stack stack;
  for (int i = 0; i < kMaxTaken && host_.api->take_stack(host_.core, process_, &stack) != 0; ++i) {
    lost_count_ += stack.lost_count;
    if (stack.frame_count == 0) continue;
    if (!has_looked && !mappings_.is_code(stack.frames[0])) {
      read_maps();
      has_looked = true;
    }
    if (named_.insert(stack.tid).second) unnamed_.insert(stack.tid);
    const bool has_callers = host_.event.call_graph != CallGraph::kNone;
    // Of a broken ring it may be any time: stacks of times to come would pile up here.
    if (stack.raw_ns > now_ns) now_ns = host_.kernel->now_ns();
    const uint64_t time_ns = std::min(stack.raw_ns, now_ns);
    samples_.push_back({time_ns,
                        stack.tid,
                        period_at(time_ns),
                        {stack.frames, stack.frames + (has_callers ? stack.frame_count : 1)}});
  }
}

void SampledProcess::take(const TimeMap& times, bool is_last) {
  if (has_timers()) take_noted_stacks();
  for (auto& [tid, thread] : threads_) drain(&thread);
  name_threads();
  put(times, is_last);
  for (auto at = threads_.begin(); at != threads_.end();) {
    if (!at->second.has_ended) {
      ++at;
      continue;
    }
    close_thread(&at->second);
    unnamed_.erase(at->first);
    at = threads_.erase(at);
  }
  if (!is_last && !fresh_threads_.empty()) scan(rate_hz_);
}

/// Threads are named after they begin, by themselves: a look at the next tick finds most names.
void SampledProcess::name_threads() {
  for (const pid_t tid : std::exchange(unnamed_, {})) {
    const std::string comm =
        host_.kernel->read_file(proc_path(pid_, "task/" + std::to_string(tid) + "/comm"));
    if (comm.empty()) continue;
    const TaskNameDefinition definition{process_, tid};
    const auto payload = payload_of(definition, comm.substr(0, comm.find('\n')));
    host_.api->define(host_.core, process_, static_cast<uint32_t>(DefinitionType::kTaskName),
                      payload.data(), static_cast<uint32_t>(payload.size()));
  }
}

/// Puts what was taken before the last pair of clocks, in order; later samples wait, for another
/// ring may still have earlier ones.
void SampledProcess::put(const TimeMap& times, bool is_last) {
  std::stable_sort(samples_.begin(), samples_.end(),
                   [](const Sample& a, const Sample& b) { return a.time_ns < b.time_ns; });
  std::stable_sort(fresh_mappings_.begin(), fresh_mappings_.end(),
                   [](const auto& a, const auto& b) { return a.time_ns < b.time_ns; });
  auto at = samples_.begin();
  for (; at != samples_.end() && (is_last || at->time_ns <= times.last_raw_ns()); ++at) {
    // A ring that was opened late may hold what is older than the last tick.
    last_put_ns_ = std::max(last_put_ns_, at->time_ns);
    Record record{};
    record.head.start_ticks = times.to_ticks(last_put_ns_);
    record.head.kind = RecordKind::kCallSample;
    record.head.slot_count = 1;
    apply_mappings(at->time_ns);
    record.head.id = tree_.intern(at->frames, &mappings_);
    record.head.a32 = static_cast<uint32_t>(at->tid);
    record.head.a64 = at->period;
    host_.api->put_record(host_.core, process_, AON_CALL_SAMPLES, &record);
    ++sample_count_;
  }
  samples_.erase(samples_.begin(), at);
  apply_mappings(is_last ? UINT64_MAX : times.last_raw_ns());
  define_names();
  define_paths();
  if (is_last) define_jit_symbols();
  if (lost_count_ != 0) put_lost(times);
}

/// What was mapped up to a time; samples of that time are interned next.
void SampledProcess::apply_mappings(uint64_t until_ns) {
  auto at = fresh_mappings_.begin();
  for (; at != fresh_mappings_.end() && at->time_ns <= until_ns; ++at) {
    if (mappings_.add(*at)) tree_.forget_addresses();
  }
  fresh_mappings_.erase(fresh_mappings_.begin(), at);
}

/// What the kernel found no room for since the last tick.
void SampledProcess::put_lost(const TimeMap& times) {
  const uint64_t count = std::exchange(lost_count_, 0);
  const uint64_t end = times.to_ticks(times.last_raw_ns());
  const uint64_t start = last_put_ns_ == 0 ? end : times.to_ticks(last_put_ns_);
  const Record record = lost_record(LossReason::kPoolFull, count, start, end);
  // Counted apart: where the record finds no room either, the sum is right.
  host_.api->add_lost(host_.core, process_, AON_CALL_SAMPLES, count, start, end);
  host_.api->put_record(host_.core, process_, AON_CALL_SAMPLES, &record);
  last_put_ns_ = std::max(last_put_ns_, times.last_raw_ns());
}

void SampledProcess::define_names() {
  for (const Mappings::Used& used : mappings_.take_used()) {
    const auto payload = payload_of(used.definition, used.path);
    host_.api->define(host_.core, process_, static_cast<uint32_t>(DefinitionType::kMapping),
                      payload.data(), static_cast<uint32_t>(payload.size()));
  }
}

void SampledProcess::define_paths() {
  const CallTree::Fresh fresh = tree_.take_fresh();
  for (const CallPathNode& node : fresh.nodes) {
    if (node.mapping == kNoMapping && jit_addresses_.size() < kMaxJitAddresses)
      jit_addresses_.push_back(node.offset);
  }
  for (size_t first = 0; first < fresh.nodes.size(); first += kNodesPerDefinition) {
    const size_t count = std::min(kNodesPerDefinition, fresh.nodes.size() - first);
    const CallPathsDefinition definition{process_, fresh.first_id + static_cast<uint32_t>(first),
                                         static_cast<uint32_t>(count), 0};
    std::vector<uint8_t> payload(sizeof(definition) + count * sizeof(CallPathNode));
    std::memcpy(payload.data(), &definition, sizeof(definition));
    std::memcpy(payload.data() + sizeof(definition), &fresh.nodes[first],
                count * sizeof(CallPathNode));
    host_.api->define(host_.core, process_, static_cast<uint32_t>(DefinitionType::kCallPaths),
                      payload.data(), static_cast<uint32_t>(payload.size()));
  }
}

/// Of the functions that samples hit. The compiler writes its map as it goes, and leaves it.
void SampledProcess::define_jit_symbols() {
  if (jit_addresses_.empty() || temporary_folder_ < 0) return;
  const std::string name = "perf-" + std::to_string(own_pid_) + ".map";
  const int64_t start_s = start_time_s(start_ticks_, host_.kernel->read_file("/proc/stat"));
  PerfMap map(jit_addresses_);
  has_large_map_ =
      !host_.kernel->read_owned(temporary_folder_, name, owner_, start_s, kMaxPerfMapBytes,
                                [&map](std::string_view piece) { map.add(piece); });
  if (has_large_map_) return;  // a later line could have replaced any
  map.finish();
  for (const PerfMap::Symbol& symbol : map.symbols()) {
    const JitSymbolDefinition definition{process_, 0, symbol.start, symbol.end};
    const auto payload = payload_of(definition, symbol.name);
    host_.api->define(host_.core, process_, static_cast<uint32_t>(DefinitionType::kJitSymbol),
                      payload.data(), static_cast<uint32_t>(payload.size()));
  }
}

Obstacle SampledProcess::shortfall() const {
  if (tree_.is_full()) {
    return {"more than " + std::to_string(kMaxNodesPerProcess) +
                " different call paths: later ones are cut",
            "--call-graph=none or a lower --sampling"};
  }
  if (unwatched_count_ == 0 && has_small_ring_) {
    return {"no locked memory left for whole rings: samples of deep paths are lost sooner",
            "sysctl kernel.perf_event_mlock_kb=4096 or ulimit -l"};
  }
  if (unwatched_count_ == 0 && has_large_map_) {
    return {"code made at run time has no names: /tmp/perf-" + std::to_string(own_pid_) +
                ".map has more than " + std::to_string(kMaxPerfMapBytes >> 20) + " MiB",
            ""};
  }
  if (unwatched_count_ == 0) return {};
  const std::string threads = std::to_string(unwatched_count_) +
                              (unwatched_count_ == 1 ? " thread is" : " threads are") +
                              " not sampled: ";
  if (thread_error_ == E2BIG)
    return {threads + "more than " + std::to_string(kMaxSampledThreads) + " in one process", ""};
  if (thread_error_ == EPERM) {
    return {threads + "no locked memory left for their rings",
            "sysctl kernel.perf_event_mlock_kb=4096 or ulimit -l"};
  }
  Obstacle obstacle = explain(thread_error_, false, host_.kernel->paranoid_level());
  obstacle.reason = threads + obstacle.reason;
  return obstacle;
}

}  // namespace aon::perf
