#include "core/agent/polled_pids.h"

#include "core/agent/proc.h"

namespace aon::agent {
namespace {

constexpr uint64_t kLookNs = 100'000'000;

}  // namespace

bool PolledPids::add(uint32_t number, int32_t pid) {
  const uint64_t start_time_ticks = proc::start_time_ticks(pid);
  if (!proc::is_running(pid, start_time_ticks)) return false;
  pids_[number] = {pid, start_time_ticks};
  return true;
}

void PolledPids::adopt(const StateHeader& header, const std::map<uint32_t, UniqueFd>& watched) {
  for (uint32_t i = 0; i < header.registered_count.load(std::memory_order_relaxed); ++i) {
    const RegisteredPid& registered = header.registered[i];
    if (registered.is_gone == 0 && watched.count(i) == 0) add(i, registered.pid);
  }
}

std::vector<uint32_t> PolledPids::take_ended(uint64_t now_ns) {
  std::vector<uint32_t> ended;
  if (pids_.empty() || now_ns - last_look_ns_ < kLookNs) return ended;
  last_look_ns_ = now_ns;
  for (const auto& [number, pid] : pids_) {
    if (!proc::is_running(pid.pid, pid.start_time_ticks)) ended.push_back(number);
  }
  for (const uint32_t number : ended) pids_.erase(number);
  return ended;
}

}  // namespace aon::agent
