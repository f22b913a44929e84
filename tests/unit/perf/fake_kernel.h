/// A kernel for tests, set up by the fields of `fake`; one at a time, as the real one.
#pragma once

#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "plugins/perf/kernel.h"
#include "plugins/perf/ring_pages.h"

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
    int group = kNoGroup;
  };
  /// 0, or the error (negative) of an open.
  std::function<int(const perf_event_attr&, pid_t)> refuse = [](const perf_event_attr&, pid_t) {
    return 0;
  };
  std::map<pid_t, std::vector<pid_t>> tasks;
  std::map<pid_t, TaskCounts> task_counts;       ///< by thread
  std::map<int, Raw> values;                     ///< by descriptor
  std::map<int, Open> open;                      ///< by descriptor
  std::map<pid_t, std::vector<uint64_t>> rings;  ///< by thread: control page and data
  std::map<pid_t, uint64_t> periods;             ///< by thread, as set later
  std::map<std::string, std::string> files;
  std::vector<std::string> perf_map;  ///< its pieces; none: there is no such file
  bool is_perf_map_whole = true;
  size_t most_ring_bytes = 1u << 20;
  int unmapped_count = 0;
  uint64_t now_ns = 0;
  int paranoid = 2;
  int read_count = 0;
  int next_fd = 100;
};

inline FakeKernel fake;

inline const Kernel& fake_kernel() {
  static const Kernel kernel = {
      .open_event =
          [](const perf_event_attr& attr, pid_t pid, int group) {
            const int error = fake.refuse(attr, pid);
            if (error != 0) return error;
            fake.open[fake.next_fd] = {attr, pid, group};
            return fake.next_fd++;
          },
      .read_event = [](int fd, void* data, size_t size_bytes) -> ssize_t {
        if (fake.open.count(fd) == 0) return -EBADF;
        ++fake.read_count;
        const Raw raw = fake.values[fd];
        std::vector<uint64_t> words = {raw.value, raw.enabled_ns, raw.running_ns};
        if ((fake.open[fd].attr.read_format & PERF_FORMAT_GROUP) != 0) {
          words = {1, raw.enabled_ns, raw.running_ns, raw.value};
          for (const auto& [member, open] : fake.open) {
            if (open.group != fd) continue;
            ++words[0];
            words.push_back(fake.values[member].value);
          }
        }
        if (size_bytes < words.size() * sizeof(uint64_t)) return -ENOSPC;
        memcpy(data, words.data(), words.size() * sizeof(uint64_t));
        return static_cast<ssize_t>(words.size() * sizeof(uint64_t));
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
      .map_ring = [](int fd, size_t data_bytes) -> void* {
        if (data_bytes > fake.most_ring_bytes) return nullptr;
        auto& words = fake.rings[fake.open.at(fd).pid];
        words.assign((ring_page_bytes() + data_bytes) / sizeof(uint64_t), 0);
        return words.data();
      },
      .unmap_ring = [](void*, size_t) { ++fake.unmapped_count; },
      .set_period =
          [](int fd, uint64_t value) {
            fake.periods[fake.open.at(fd).pid] = value;
            return 0;
          },
      .read_file = [](const std::string& path) { return fake.files[path]; },
      .open_folder = [](const std::string&) { return fake.perf_map.empty() ? -1 : 99; },
      .read_owned =
          [](int, const std::string&, uid_t, int64_t, size_t, const TextTaker& take) {
            for (const std::string& piece : fake.perf_map) take(piece);
            return fake.is_perf_map_whole;
          },
      .now_ns = [] { return fake.now_ns; },
  };
  return kernel;
}

}  // namespace aon::perf::test
