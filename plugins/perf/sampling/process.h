/// One process that is sampled: a ring per thread, its mappings, its call paths.
///
///     tick: rings --> samples up to the last pair of clocks, by time --> call tree --> records
///           FORK records --> new threads;  EXIT records --> rings that are closed when empty
/// Context switches of a watched thread are dearer (cost.h): threads that switch too often for the
/// budget are left, and watched again when there is room.
/// Where timers in the process take the place of rings, the agent has the stacks that they noted.
///
/// Owner: Sampler.   Thread: the provider's.
/// Cost: per thread one descriptor and 32 KiB of locked memory; per sample about 2 us.
#pragma once

#include <aon/provider.h>
#include <aon/record.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "perf/sampling/call_tree.h"
#include "perf/sampling/event.h"
#include "perf/sampling/time_map.h"

namespace aon::perf {

constexpr size_t kSmallerRing = 8;           ///< as many times, where locked memory is short
constexpr size_t kMaxSampledThreads = 1024;  ///< of one process

struct SamplingHost {
  aon_core* core;
  const aon_core_api* api;
  const Kernel* kernel;
  SamplingEvent event;
  uint32_t first_id;  ///< of call paths and mappings, see kWorkerIdBits
};

class SampledProcess {
 public:
  SampledProcess(const SamplingHost& host, uint32_t process, pid_t pid);
  ~SampledProcess();
  SampledProcess(const SampledProcess&) = delete;
  SampledProcess& operator=(const SampledProcess&) = delete;

  /// Opens its threads.   Returns the first error, 0 if there was none.
  int open(uint64_t rate_hz);
  /// Takes samples up to the time of `times`, or all that there are.
  void take(const TimeMap& times, bool is_last);
  /// Finds threads that no record told of.
  void scan(uint64_t rate_hz);
  void set_rate(uint64_t rate_hz);

  /// Looks how often each thread switched since the last look. Returns the sum of those watched.
  /// Cost: 10 us a thread.
  uint64_t count_switches();
  /// A thread that can be left.
  struct Switching {
    pid_t tid;
    uint64_t per_second;  ///< context switches between the last two looks
    bool is_left;
  };
  std::vector<Switching> switching_threads() const;
  /// The thread is not watched from here on.
  void leave(pid_t tid);
  /// The next scan() watches it again.
  void take_back(pid_t tid);

  /// At least one thread was.
  bool is_watched() const { return is_watched_; }
  uint64_t sample_count() const { return sample_count_; }
  /// Threads that were left at one time, at most.
  size_t most_left_threads() const { return most_left_; }
  /// What is less than it should be, for the ledger; empty: nothing.
  Obstacle shortfall() const;

 private:
  struct Thread {
    int fd;
    SampleRing ring;
    bool has_ended = false;
  };
  /// Of /proc/PID/task/TID/schedstat: times that the thread was given a CPU.
  struct Turns {
    uint64_t count;
    uint64_t per_second = 0;
    bool is_left = false;
  };
  struct Sample {
    uint64_t time_ns;
    int32_t tid;
    uint64_t period;
    std::vector<uint64_t> frames;
  };

  int open_thread(pid_t tid, uint64_t rate_hz);
  void close_thread(Thread* thread);
  uint64_t turns_of(pid_t tid) const;
  size_t left_count() const;
  void drain(Thread* thread);
  void visit(const perf_event_header& header, std::span<const uint8_t> body);
  void take_sample(std::span<const uint8_t> body);
  void take_noted_stacks();
  void note_rate(uint64_t rate_hz);
  uint64_t period_at(uint64_t time_ns) const;
  bool has_timers() const { return host_.event.source == SamplingSource::kTimer; }
  void unwind();
  void read_maps();
  void put_lost(const TimeMap& times);
  void apply_mappings(uint64_t until_ns);
  void name_threads();
  void put(const TimeMap& times, bool is_last);
  void define_paths();
  void define_names();
  void define_jit_symbols();

  const SamplingHost& host_;
  uint32_t process_;
  pid_t pid_;
  std::map<pid_t, Thread> threads_;
  std::map<pid_t, Turns> turns_;  ///< of the threads that there are
  uint64_t last_look_ns_ = 0;     ///< at them
  size_t most_left_ = 0;
  std::set<pid_t> fresh_threads_;  ///< told of by a record
  std::set<pid_t> unnamed_;
  std::set<pid_t> named_;  ///< of those that timers sample
  Mappings mappings_;
  CallTree tree_;
  RawSample raw_;
  std::vector<uint64_t> jit_addresses_;  ///< of call paths, in no file
  int32_t own_pid_;                      ///< in the process's pid namespace
  int temporary_folder_;                 ///< its /tmp; outlives it
  uid_t owner_;
  int64_t start_ticks_ = 0;                 ///< of the clock, since boot
  std::vector<RawMapping> fresh_mappings_;  ///< told by records, not yet applied
  std::vector<Sample> samples_;             ///< taken, not yet put
  uint64_t rate_hz_ = 0;
  struct Rate {
    uint64_t since_ns;  ///< CLOCK_MONOTONIC_RAW
    uint64_t hz;
  };
  std::vector<Rate> rates_;  ///< of samples that are not put yet, in order
  uint64_t sample_count_ = 0;
  uint64_t lost_count_ = 0;
  uint64_t last_put_ns_ = 0;
  bool is_watched_ = false;
  bool has_small_ring_ = false;
  bool has_large_map_ = false;  ///< too large to be read
  int thread_error_ = 0;        ///< of the first thread that could not be watched
  size_t unwatched_count_ = 0;  ///< at one time, at most
};

}  // namespace aon::perf
