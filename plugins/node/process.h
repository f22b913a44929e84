/// The process provider: memory and file-system bytes of each process, from /proc/PID/status and
/// /proc/PID/io (Documentation/filesystems/proc.rst). Page faults and context switches of a process
/// are perf's.
///
/// Memory is what the process maps, pages that it shares with others included: exact shares
/// (smaps_rollup) take milliseconds. Bytes count from process_started(); the last reading is
/// up to a period older than the end of the process.
///
/// Owner: the provider.   Thread: the provider's.   Cost: two files, 10 us, per process and
/// reading; two descriptors per process.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "node/session.h"

namespace aon::node {

constexpr uint32_t kProcessPeriodMs = 200;
constexpr uint64_t kProcessPeriodNs = kProcessPeriodMs * 1'000'000;
constexpr size_t kProcessesPerTick = 16;  ///< of more, all are read in every second, third ... tick
constexpr size_t kMaxStride = 5;          ///< once a second

class ProcessSession : public Session {
 public:
  using Session::Session;

  void process_started(uint32_t process, pid_t pid) override;
  /// One more reading where the process has not been waited for yet.
  void process_ended(uint32_t process) override;

 protected:
  StateText find() override;
  void read() override;

 private:
  struct Process {
    std::string folder;   ///< "/proc/123"
    uint64_t start_time;  ///< tells the process from a later one with its pid
    RepeatedFile status;
    RepeatedFile io;
    bool has_io = false;
  };

  void read_process(uint32_t number, const Process& process);
  void read_memory(uint32_t number, const Process& process);
  void read_io(uint32_t number, const Process& process);
  bool is_same(const Process& process) const;
  bool has_ended(const File& status) const;

  std::map<uint32_t, Process> processes_;
  uint64_t last_beat_ = 0;  ///< of the last reading, in periods of the wall clock
};

}  // namespace aon::node
