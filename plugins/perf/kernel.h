/// All that the perf provider asks of the kernel, as one table of functions, so that tests replay
/// machines that are not at hand. `real_kernel()` is the machine we run on.
/// Thread: any.   Signal: no.
#pragma once

#include <linux/perf_event.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace aon::perf {

/// Of one thread, since it began.
struct TaskCounts {
  uint64_t context_switches;
  uint64_t migrations;
  bool has_migrations;  ///< false: this kernel does not tell (CONFIG_SCHED_DEBUG)
};

constexpr int kNoGroup = -1;

using TextTaker = std::function<void(std::string_view piece)>;

struct Kernel {
  /// perf_event_open(attr, pid, any CPU, group, CLOEXEC): a descriptor, or -errno. `group`: the
  /// descriptor of its first event, or kNoGroup. -EMFILE where few descriptors are left: counters
  /// of other threads leave the last quarter to samples, all leave 24 to the agent.
  int (*open_event)(const perf_event_attr& attr, pid_t pid, int group);
  /// read(): bytes, or -errno.
  ssize_t (*read_event)(int fd, void* data, size_t size_bytes);
  void (*close_event)(int fd);
  /// Threads of a process; empty when it has ended.
  std::vector<pid_t> (*list_tasks)(pid_t pid);
  /// /proc/PID/task/TID/status and sched. False: it has ended.
  bool (*read_task)(pid_t pid, pid_t tid, TaskCounts* counts);
  /// kernel.perf_event_paranoid; 2 (the default of the kernel) where it cannot be read.
  int (*paranoid_level)();
  // Of sampling.
  /// Control page and `data_bytes` of ring (ring_pages.h) of an event: the pages, or null.
  void* (*map_ring)(int fd, size_t data_bytes) = nullptr;
  void (*unmap_ring)(void* pages, size_t data_bytes) = nullptr;
  /// Sets the period of an event, or its frequency if it was opened with one. 0, or -errno.
  int (*set_period)(int fd, uint64_t value) = nullptr;
  /// A file of /proc or /sys, at most 16 MiB of it; empty when it cannot be read.
  std::string (*read_file)(const std::string& path) = nullptr;
  /// A descriptor of a folder, or -1.
  int (*open_folder)(const std::string& path) = nullptr;
  /// A file in it that anybody may have put there, in pieces: nothing unless it is an ordinary file
  /// of `owner` (or root) that was written at `not_before_s` (since the epoch) or later. False: it
  /// has more than `max_bytes`; what was taken is a part of it.
  bool (*read_owned)(int folder, const std::string& name, uid_t owner, int64_t not_before_s,
                     size_t max_bytes, const TextTaker& take) = nullptr;
  /// CLOCK_MONOTONIC_RAW.
  uint64_t (*now_ns)() = nullptr;
};

const Kernel& real_kernel();

}  // namespace aon::perf
