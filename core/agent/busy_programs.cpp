#include "core/agent/busy_programs.h"

namespace aon::agent {

void BusyPrograms::put_off(uint32_t number) {
  const auto found = programs_.find(number);
  if (found == programs_.end()) return;
  found->second.limit_ns = cpu_time_ns_(found->second.pid) + kBusyCpuNs;
}

void BusyPrograms::refuse(uint32_t number, uint64_t image) {
  const auto found = programs_.find(number);
  if (found != programs_.end()) found->second.refused_image = image;
}

uint64_t BusyPrograms::refused_image(uint32_t number) const {
  const auto found = programs_.find(number);
  return found != programs_.end() ? found->second.refused_image : 0;
}

std::vector<uint32_t> BusyPrograms::forget_pid(pid_t pid) {
  std::vector<uint32_t> numbers;
  std::erase_if(programs_, [&](const auto& entry) {
    if (entry.second.pid == pid) numbers.push_back(entry.first);
    return entry.second.pid == pid;
  });
  return numbers;
}

std::vector<uint32_t> BusyPrograms::due(uint64_t now_ns) {
  std::vector<uint32_t> numbers;
  if (programs_.empty() || now_ns - last_look_ns_ < kBusyLookNs) return numbers;
  for (const auto& [number, program] : programs_) {
    if (cpu_time_ns_(program.pid) < program.limit_ns) continue;
    numbers.push_back(number);
    if (numbers.size() == kMostBusyAtOnce) return numbers;  // the others at once
  }
  last_look_ns_ = now_ns;
  return numbers;
}

}  // namespace aon::agent
