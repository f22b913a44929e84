/// What the agent does by the clock: pairs of clocks, measured cost, the budget, node providers.
/// Its definitions and samples go through the inbox.
/// Thread: one of its own, which drains nothing; process_started() and process_ended() are called
/// by the drain thread and only queue.   Cost: about 10 us per rank and second.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "core/agent/config.h"
#include "core/agent/encoder.h"
#include "core/agent/inbox.h"
#include "core/agent/server.h"
#include "core/agent/state.h"

namespace aon::agent {

class Housekeeping : public ProcessListener {
 public:
  Housekeeping(const Config& config, State* state, Inbox* inbox, ModeTable* modes,
               ActivityTable* activity, const Drainer* drainer, const Encoder* encoder);
  ~Housekeeping() override;

  void start();
  /// Stops providers and the thread, then sends the last clock and usage.
  void stop();

  void process_started(uint32_t process, int32_t pid, int32_t rank) override;
  void process_ended(uint32_t process) override;

 private:
  struct Event {
    bool is_start;
    uint32_t process;
    int32_t pid;
    int32_t rank;
  };
  struct Process {
    int32_t pid;
    uint64_t cpu_ns;
  };

  void run();
  void take_events();
  void second();
  void report_clock();
  void report_usage();
  uint64_t read_ranks_cpu_ns();

  const Config& config_;
  State* state_;
  Inbox* inbox_;
  ModeTable* modes_;
  ActivityTable* activity_;
  const Drainer* drainer_;
  const Encoder* encoder_;
  clock::TickSource tick_source_;

  // Owner: the thread.
  std::map<uint32_t, Process> processes_;
  uint64_t ended_cpu_ns_ = 0;

  std::mutex m_;
  std::condition_variable wake_;
  std::vector<Event> events_;  ///< guarded by m_
  bool is_stopping_ = false;   ///< guarded by m_
  std::thread thread_;
};

}  // namespace aon::agent
