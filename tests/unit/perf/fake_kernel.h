/// A kernel for tests, set up by the fields of `fake`; one at a time, as the real one.
#pragma once

#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <vector>

#include "plugins/perf/kernel.h"

namespace aon::perf::test {

struct Raw {
  uint64_t value;
  uint64_t enabled_ns;
  uint64_t running_ns;
};

struct FakeKernel {
  struct Open {
    perf_event_attr attr;
    pid_t pid;
  };
  /// 0, or the error (negative) of an open.
  std::function<int(const perf_event_attr&, pid_t)> refuse = [](const perf_event_attr&, pid_t) {
    return 0;
  };
  std::map<pid_t, std::vector<pid_t>> tasks;
  std::map<pid_t, TaskCounts> task_counts;  ///< by thread
  std::map<int, Raw> values;                ///< by descriptor
  std::map<int, Open> open;                 ///< by descriptor
  int paranoid = 2;
  int next_fd = 100;
};

inline FakeKernel fake;

inline const Kernel& fake_kernel() {
  static const Kernel kernel = {
      .open_event =
          [](const perf_event_attr& attr, pid_t pid) {
            const int error = fake.refuse(attr, pid);
            if (error != 0) return error;
            fake.open[fake.next_fd] = {attr, pid};
            return fake.next_fd++;
          },
      .read_event = [](int fd, void* data, size_t size_bytes) -> ssize_t {
        if (fake.open.count(fd) == 0) return -EBADF;
        const Raw raw = fake.values[fd];
        if (size_bytes != sizeof(raw)) return -ENOSPC;
        memcpy(data, &raw, sizeof(raw));
        return sizeof(raw);
      },
      .close_event = [](int fd) { fake.open.erase(fd); },
      .list_tasks = [](pid_t pid) { return fake.tasks[pid]; },
      .read_task =
          [](pid_t, pid_t tid, TaskCounts* counts) {
            const auto found = fake.task_counts.find(tid);
            if (found == fake.task_counts.end()) return false;
            *counts = found->second;
            return true;
          },
      .paranoid_level = [] { return fake.paranoid; },
  };
  return kernel;
}

}  // namespace aon::perf::test
