/// The sampling provider between start() and stop(): every process of the node, its rate, its cost.
/// Owner: the provider.   Thread: the provider's.   Cost: per tick one look at each ring.
#pragma once

#include <aon/provider.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "perf/sampling/process.h"

namespace aon::perf {

class Sampler {
 public:
  /// `limits`: what is less than was asked for on this machine; empty: nothing.
  Sampler(const SamplingHost& host, Obstacle limits);

  void process_started(uint32_t process, pid_t pid);
  /// Its rings outlive it: takes what is left in them.
  void process_ended(uint32_t process);
  void tick(uint64_t now_ticks);
  /// Samples and context switches are to cost 1/divisor of what they would at the rate asked for
  /// and with all threads watched; 0: as little as one sample a second of each thread. The rate is
  /// lowered; where it is switches that cost, threads are left instead, the busiest first.
  void throttle(uint32_t divisor);

 private:
  static constexpr uint32_t kTicksPerScan = 10;

  /// A thread that may be left.
  struct Candidate {
    uint64_t cost_ns;  ///< of its context switches, a second
    uint32_t process;
    pid_t tid;
    bool is_left;
  };

  bool has_stacks() const;
  void define_rate(uint32_t process);
  void report(uint32_t process, const SampledProcess& sampled);
  void add_pair();
  void charge_samples(uint64_t sample_count);
  void charge_switches();
  std::vector<Candidate> candidates() const;
  void leave_more();
  uint64_t target(uint64_t switches_ns) const;
  uint64_t wanted_divisor() const;
  void set_rate(uint64_t rate_hz);

  SamplingHost host_;
  Obstacle limits_;
  uint64_t rate_hz_;
  uint64_t cost_per_sample_ns_;
  uint64_t cost_per_switch_ns_;
  uint64_t fresh_sample_ns_ = 0;   ///< samples since the last scan, were they of the rate asked for
  uint64_t second_sample_ns_ = 0;  ///< the same of the scan before
  uint32_t divisor_ = 1;           ///< of the last throttle()
  bool is_adopting_;  ///< the processes that come before the first tick had a worker before us
  std::set<uint32_t> adopted_;
  uint32_t ticks_to_scan_ = kTicksPerScan;
  TimeMap times_;
  std::map<uint32_t, std::unique_ptr<SampledProcess>> processes_;
  std::map<uint32_t, std::string> reported_;  ///< reason last given, by process
};

}  // namespace aon::perf
