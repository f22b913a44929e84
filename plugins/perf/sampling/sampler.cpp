#include "perf/sampling/sampler.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "perf/cost.h"

namespace aon::perf {
namespace {

constexpr uint64_t kLowestRateHz = 1;
constexpr uint64_t kDominance = 2;  ///< so many times dearer is what is to give

}  // namespace

Sampler::Sampler(const SamplingHost& host, Obstacle limits)
    : host_(host),
      limits_(std::move(limits)),
      rate_hz_(host_.event.rate_hz),
      cost_per_sample_ns_(sample_cost_ns(*host_.kernel)),
      cost_per_switch_ns_(switch_cost_ns(*host_.kernel)),
      is_adopting_(host_.first_id >> (32 - kWorkerIdBits) > 1) {
  add_pair();
}

/// Whether the core knows of timers in the processes.
bool Sampler::has_stacks() const {
  return host_.api->size >= offsetof(aon_core_api, set_stack_rate) + sizeof(void*);
}

void Sampler::add_pair() { times_.add(host_.kernel->now_ns(), host_.api->now_ticks(host_.core)); }

void Sampler::define_rate(uint32_t process) {
  const SamplingDefinition definition{process, host_.event.source, static_cast<uint32_t>(rate_hz_),
                                      0, host_.api->now_ticks(host_.core)};
  const std::string name = host_.event.name();
  std::vector<uint8_t> payload(sizeof(definition) + name.size() + 1);
  std::memcpy(payload.data(), &definition, sizeof(definition));
  std::memcpy(payload.data() + sizeof(definition), name.c_str(), name.size() + 1);
  host_.api->define(host_.core, process, static_cast<uint32_t>(DefinitionType::kSampling),
                    payload.data(), static_cast<uint32_t>(payload.size()));
}

void Sampler::report(uint32_t process, const SampledProcess& sampled) {
  Obstacle obstacle = sampled.shortfall();
  const auto add = [&](const std::string& reason, const std::string& remedy) {
    obstacle.reason += (obstacle.reason.empty() ? "" : "; ") + reason;
    obstacle.remedy += (obstacle.remedy.empty() || remedy.empty() ? "" : "; ") + remedy;
  };
  if (obstacle.reason.empty() && adopted_.count(process) != 0)
    add("the agent's worker was killed: samples lack what happened until the next one ran", "");
  if (const size_t left = sampled.most_left_threads(); left != 0) {
    add(std::to_string(left) + (left == 1 ? " thread was" : " threads were") +
            " not sampled for a time: watching their context switches cost more than the budget",
        "a larger --budget");
  }
  if (rate_hz_ < host_.event.rate_hz) {
    add("the budget lowered the rate from " + std::to_string(host_.event.rate_hz) + " to " +
            std::to_string(rate_hz_) + " Hz" + (rate_hz_ == kLowestRateHz ? ", the lowest" : ""),
        "a larger --budget or a lower --sampling");
  }
  if (obstacle.reason.empty()) obstacle = limits_;
  const auto [last, is_new] = reported_.try_emplace(process);
  if (!is_new && last->second == obstacle.reason) return;
  last->second = obstacle.reason;
  const aon_state state = !sampled.is_watched()     ? AON_STATE_OFF
                          : obstacle.reason.empty() ? AON_STATE_ON
                                                    : AON_STATE_DEGRADED;
  if (state == AON_STATE_OFF && obstacle.reason.empty())
    obstacle.reason = "the process ended before it could be watched";
  host_.api->set_state(host_.core, process, state, obstacle.reason.c_str(),
                       obstacle.remedy.c_str());
}

void Sampler::process_started(uint32_t process, pid_t pid) {
  auto sampled = std::make_unique<SampledProcess>(host_, process, pid);
  sampled->open(rate_hz_);
  if (has_stacks() && host_.event.source != SamplingSource::kTimer)
    host_.api->set_stack_rate(host_.core, process, 0);  // its own look at perf may be darker
  if (is_adopting_) adopted_.insert(process);
  report(process, *sampled);
  if (!sampled->is_watched()) return;
  define_rate(process);
  processes_[process] = std::move(sampled);
}

void Sampler::charge_samples(uint64_t sample_count) {
  const uint64_t cost_ns = sample_count * cost_per_sample_ns_;
  fresh_sample_ns_ += cost_ns * host_.event.rate_hz / rate_hz_;
  host_.api->add_cost(host_.core, cost_ns);
}

/// Once in kTicksPerScan ticks, a second.
void Sampler::charge_switches() {
  second_sample_ns_ = std::exchange(fresh_sample_ns_, 0);
  uint64_t switches = 0;
  for (auto& [number, process] : processes_) switches += process->count_switches();
  host_.api->add_cost(host_.core, switches * cost_per_switch_ns_);
  leave_more();
}

/// Between two words of the budget, for threads that have begun and others that switch more.
void Sampler::leave_more() {
  if (divisor_ == 1) return;
  const std::vector<Candidate> threads = candidates();
  const uint64_t samples_ns = second_sample_ns_ * rate_hz_ / host_.event.rate_hz;
  uint64_t all_ns = 0;
  uint64_t watched_ns = 0;
  for (const Candidate& thread : threads) {
    all_ns += thread.cost_ns;
    if (!thread.is_left) watched_ns += thread.cost_ns;
  }
  const uint64_t target_ns = target(all_ns);
  for (const Candidate& thread : threads) {
    if (samples_ns + watched_ns <= target_ns || watched_ns <= kDominance * samples_ns) return;
    if (thread.is_left) continue;
    watched_ns -= thread.cost_ns;
    processes_.at(thread.process)->leave(thread.tid);
  }
}

/// What samples and `switches_ns` may cost. A quarter more is near enough: steps are halves.
uint64_t Sampler::target(uint64_t switches_ns) const {
  return (switches_ns + second_sample_ns_) / wanted_divisor() * 5 / 4;
}

/// As the budget says, 1 Hz at last.
uint64_t Sampler::wanted_divisor() const {
  const uint64_t last = host_.event.rate_hz;
  return divisor_ == 0 ? last : std::min<uint64_t>(divisor_, last);
}

void Sampler::process_ended(uint32_t process) {
  const auto found = processes_.find(process);
  if (found == processes_.end()) return;
  add_pair();
  const uint64_t before = found->second->sample_count();
  found->second->take(times_, true);
  charge_samples(found->second->sample_count() - before);
  report(process, *found->second);
  processes_.erase(found);
  reported_.erase(process);
  adopted_.erase(process);
}

void Sampler::tick(uint64_t) {
  is_adopting_ = false;
  add_pair();
  const bool is_scan = --ticks_to_scan_ == 0;
  if (is_scan) ticks_to_scan_ = kTicksPerScan;
  if (is_scan) charge_switches();
  for (auto& [number, process] : processes_) {
    const uint64_t before = process->sample_count();
    process->take(times_, false);
    charge_samples(process->sample_count() - before);
    if (is_scan) process->scan(rate_hz_);
    if (is_scan) report(number, *process);
  }
}

/// Threads that switch, those that do it most first.
std::vector<Sampler::Candidate> Sampler::candidates() const {
  std::vector<Candidate> candidates;
  for (const auto& [number, process] : processes_) {
    for (const auto& [tid, per_second, is_left] : process->switching_threads())
      candidates.push_back({per_second * cost_per_switch_ns_, number, tid, is_left});
  }
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate& a, const Candidate& b) { return a.cost_ns > b.cost_ns; });
  return candidates;
}

void Sampler::throttle(uint32_t divisor) {
  divisor_ = divisor;
  const std::vector<Candidate> threads = candidates();
  uint64_t switches_ns = 0;
  for (const Candidate& thread : threads) switches_ns += thread.cost_ns;
  const uint64_t last = host_.event.rate_hz;  // 1 Hz
  const uint64_t wanted = wanted_divisor();
  const uint64_t target_ns = target(switches_ns);
  uint64_t rate_divisor = switches_ns > kDominance * second_sample_ns_ ? 1 : wanted;
  size_t left = 0;
  while (second_sample_ns_ / rate_divisor + switches_ns > target_ns) {
    const bool is_lowest = rate_divisor >= last;
    if (!is_lowest && switches_ns <= kDominance * (second_sample_ns_ / rate_divisor)) {
      rate_divisor *= 2;
    } else if (left < threads.size()) {
      switches_ns -= threads[left++].cost_ns;
    } else {
      break;
    }
  }
  for (size_t i = 0; i < threads.size(); ++i) {
    SampledProcess& process = *processes_.at(threads[i].process);
    i < left ? process.leave(threads[i].tid) : process.take_back(threads[i].tid);
  }
  set_rate(divisor == 0 && left == 0 ? kLowestRateHz
                                     : std::max(last / rate_divisor, kLowestRateHz));
}

void Sampler::set_rate(uint64_t rate_hz) {
  if (rate_hz == rate_hz_) return;
  rate_hz_ = rate_hz;
  for (auto& [number, process] : processes_) {
    process->set_rate(rate_hz);
    define_rate(number);
  }
}

}  // namespace aon::perf
