#include "core/agent/housekeeping.h"

#include <chrono>

#include "core/agent/proc.h"
#include "core/base/log.h"

namespace aon::agent {

Housekeeping::Housekeeping(const Config& config, State* state, Inbox* inbox, ModeTable* modes,
                           ActivityTable* activity, const Drainer* drainer, const Encoder* encoder)
    : config_(config),
      state_(state),
      inbox_(inbox),
      modes_(modes),
      activity_(activity),
      drainer_(drainer),
      encoder_(encoder),
      tick_source_(clock::choose_tick_source()) {}

Housekeeping::~Housekeeping() { stop(); }

void Housekeeping::start() {
  report_clock();
  thread_ = std::thread([this] { run(); });
}

void Housekeeping::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(m_);
    is_stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
  take_events();
  report_clock();
  report_usage();
}

void Housekeeping::process_started(uint32_t process, int32_t pid, int32_t rank) {
  const std::lock_guard lock(m_);
  events_.push_back({true, process, pid, rank});
}

void Housekeeping::process_ended(uint32_t process) {
  const std::lock_guard lock(m_);
  events_.push_back({false, process, 0, 0});
}

void Housekeeping::run() {
  auto next_second = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  std::unique_lock lock(m_);
  while (!is_stopping_) {
    wake_.wait_for(lock, std::chrono::milliseconds(100));
    if (is_stopping_) break;
    lock.unlock();
    take_events();
    if (std::chrono::steady_clock::now() >= next_second) {
      next_second += std::chrono::seconds(1);
      second();
    }
    lock.lock();
  }
}

void Housekeeping::take_events() {
  std::vector<Event> events;
  {
    const std::lock_guard lock(m_);
    events.swap(events_);
  }
  for (const Event& event : events) {
    if (event.is_start) {
      processes_[event.process] = {event.pid, 0};
      continue;
    }
    const uint32_t cell = event.process - state_->header().first_process;
    ended_cpu_ns_ += state_->process(cell).cpu_time_ns.load(std::memory_order_relaxed);
    processes_.erase(event.process);
  }
}

void Housekeeping::second() {
  report_clock();
  report_usage();
}

void Housekeeping::report_clock() {
  inbox_->define(spool::kNodeProcess, DefinitionType::kClock, clock::take_snapshot(tick_source_));
}

uint64_t Housekeeping::read_ranks_cpu_ns() {
  uint64_t sum = ended_cpu_ns_;
  for (auto& [process, one] : processes_) {
    const uint64_t cpu_ns = proc::cpu_time_ns(one.pid);
    if (cpu_ns > one.cpu_ns) one.cpu_ns = cpu_ns;
    ProcessCell& cell = state_->process(process - state_->header().first_process);
    if (one.cpu_ns > cell.cpu_time_ns.load(std::memory_order_relaxed))
      cell.cpu_time_ns.store(one.cpu_ns, std::memory_order_relaxed);
    sum += one.cpu_ns;
  }
  return sum;
}

void Housekeeping::report_usage() {
  UsageDefinition usage{};
  usage.agent_cpu_ns = state_->header().dead_workers_cpu_ns + proc::own_cpu_time_ns();
  usage.ranks_cpu_ns = read_ranks_cpu_ns();
  usage.segment_bytes = drainer_->ring_bytes();
  usage.staging_bytes = config_.staging_bytes;
  usage.agent_resident_bytes = proc::own_resident_bytes();
  usage.disk_used_bytes = encoder_->disk_bytes();
  usage.ticks = clock::now_ticks(tick_source_);
  inbox_->define(spool::kNodeProcess, DefinitionType::kUsage, usage);
}

}  // namespace aon::agent
