#include "core/agent/stuck.h"

#include <algorithm>

namespace aon::agent {

void StuckThreads::ask(const StackRequest& request) {
  const MutexLock lock(&m_);
  if (requests_.size() < kMaxStackRequests) requests_.push_back(request);
}

std::vector<StackRequest> StuckThreads::take_requests() {
  const MutexLock lock(&m_);
  const size_t count = std::min(requests_.size(), kStacksPerSecond);
  const auto end = requests_.begin() + static_cast<std::ptrdiff_t>(count);
  std::vector<StackRequest> taken(requests_.begin(), end);
  requests_.erase(requests_.begin(), end);
  return taken;
}

/// Lines, innermost first. Of a caller the instruction that calls, not the one behind it.
std::string StuckThreads::frames_of(const StackRequest& request, ThreadLook* look,
                                    uint64_t now_ns) {
  if (!look->has_registers) return {};
  look->registers.bytes = look->stack.data();
  look->registers.byte_count = look->stack.size();
  uint64_t frames[kMaxStackFrames];
  const uint32_t count = walker_.unwind(request.process, look->registers, frames, now_ns);
  std::string text;
  for (uint32_t i = 0; i < count; ++i)
    text += walker_.place_of(request.process, frames[i] - (i == 0 ? 0 : 1)) + '\n';
  return text;
}

void StuckThreads::work(clock::TickSource ticks, uint64_t now_ns) {
  const std::vector<StackRequest> requests = take_requests();
  if (requests.empty()) return;
  std::vector<ThreadLook> looks(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    looks[i].pid = requests[i].pid;
    looks[i].tid = requests[i].tid;
    looks[i].may_stop = requests[i].is_in_call;
    walker_.add_process(requests[i].process, requests[i].pid);
  }
  look_at_threads(&looks);
  for (size_t i = 0; i < requests.size(); ++i) {
    const StackRequest& request = requests[i];
    StackDefinition told{};
    told.process = request.process;
    told.tid = request.tid;
    told.ticks = clock::now_ticks(ticks);
    told.quiet_ticks = request.quiet_ticks;
    const std::string frames = frames_of(request, &looks[i], now_ns);
    inbox_->define(request.process, DefinitionType::kStack, told, {frames, looks[i].remark});
  }
  for (const StackRequest& request : requests) walker_.remove_process(request.process);
}

}  // namespace aon::agent
