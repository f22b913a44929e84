#include "perf/kernel.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "perf/ring_pages.h"

namespace aon::perf {
namespace {

/// The last descriptors are the agent's: half of them for its files, the others for ranks that come
/// later.
/// Those before are for samples, which take one a thread: counters take up to ten of each, and
/// come first.
constexpr rlim_t kSpareDescriptors = 24;
constexpr rlim_t kPartOfSamples = 4;
constexpr size_t kMaxFileBytes = 16u << 20;
constexpr size_t kFirstReadBytes = 4096;  ///< most files of /proc are shorter
constexpr size_t kMostReadBytes = 64u << 10;

int open_event(const perf_event_attr& attr, pid_t pid, int group) {
  const long fd = syscall(SYS_perf_event_open, &attr, pid, -1, group, PERF_FLAG_FD_CLOEXEC);
  if (fd < 0) return -errno;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return static_cast<int>(fd);
  const bool is_counter = attr.sample_period == 0 && pid != 0;  // probes are of this thread
  const rlim_t spare =
      std::max(kSpareDescriptors, is_counter ? limit.rlim_cur / kPartOfSamples : 0);
  if (static_cast<rlim_t>(fd) + spare < limit.rlim_cur) return static_cast<int>(fd);
  close(static_cast<int>(fd));
  return -EMFILE;
}

ssize_t read_event(int fd, void* data, size_t size_bytes) {
  const ssize_t n = read(fd, data, size_bytes);
  return n < 0 ? -errno : n;
}

void close_event(int fd) { close(fd); }

std::vector<pid_t> list_tasks(pid_t pid) {
  std::vector<pid_t> tasks;
  char path[64];
  snprintf(path, sizeof(path), "/proc/%d/task", pid);
  DIR* folder = opendir(path);
  if (folder == nullptr) return tasks;
  while (const dirent* entry = readdir(folder)) {
    const int tid = atoi(entry->d_name);
    if (tid > 0) tasks.push_back(tid);
  }
  closedir(folder);
  return tasks;
}

/// Sums the numbers in `path` behind lines that begin with one of two keys. False: no such line.
bool sum_lines(const char* path, const char* key, const char* other_key, uint64_t* sum) {
  FILE* file = fopen(path, "re");
  if (file == nullptr) return false;
  bool found = false;
  char line[256];
  while (fgets(line, sizeof(line), file) != nullptr) {
    if (strncmp(line, key, strlen(key)) != 0 && strncmp(line, other_key, strlen(other_key)) != 0) {
      continue;
    }
    const char* value = strchr(line, ':');
    if (value == nullptr) continue;
    *sum += strtoull(value + 1, nullptr, 10);
    found = true;
  }
  fclose(file);
  return found;
}

bool read_task(pid_t pid, pid_t tid, TaskCounts* counts) {
  *counts = {};
  char path[64];
  snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
  if (!sum_lines(path, "voluntary_ctxt_switches", "nonvoluntary_ctxt_switches",
                 &counts->context_switches)) {
    return false;
  }
  snprintf(path, sizeof(path), "/proc/%d/task/%d/sched", pid, tid);
  counts->has_migrations =
      sum_lines(path, "se.nr_migrations", "se.nr_migrations", &counts->migrations);
  return true;
}

int paranoid_level() {
  int level = 2;
  if (FILE* file = fopen("/proc/sys/kernel/perf_event_paranoid", "re")) {
    if (fscanf(file, "%d", &level) != 1) level = 2;
    fclose(file);
  }
  return level;
}

void* map_ring(int fd, size_t data_bytes) {
  void* pages =
      mmap(nullptr, ring_page_bytes() + data_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return pages == MAP_FAILED ? nullptr : pages;
}

void unmap_ring(void* pages, size_t data_bytes) { munmap(pages, ring_page_bytes() + data_bytes); }

int set_period(int fd, uint64_t value) {
  return ioctl(fd, PERF_EVENT_IOC_PERIOD, &value) == 0 ? 0 : -errno;
}

/// The rest of the file. No buffer on the stack, which need not be large; little more room than the
/// text, for each new page is a fault.
std::string read_all(int fd) {
  std::string text;
  text.reserve(kFirstReadBytes);
  while (text.size() < kMaxFileBytes) {
    const size_t before = text.size();
    const size_t left = text.capacity() - before;
    const size_t room = std::min(left != 0 ? left : before, kMostReadBytes);
    text.resize(before + room);
    ssize_t n = 0;
    do {
      n = read(fd, text.data() + before, room);
    } while (n < 0 && errno == EINTR);
    text.resize(before + static_cast<size_t>(n > 0 ? n : 0));
    if (n <= 0) break;
  }
  return text;
}

std::string read_file(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::string text = read_all(fd);
  close(fd);
  return text;
}

int open_folder(const std::string& path) {
  return open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/// False: there is more.
bool read_pieces(int fd, size_t max_bytes, const TextTaker& take) {
  std::string piece(kMostReadBytes, '\0');
  for (size_t taken = 0;;) {
    const ssize_t n = read(fd, piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return true;
    taken += static_cast<size_t>(n);
    if (taken > max_bytes) return false;
    take({piece.data(), static_cast<size_t>(n)});
  }
}

bool read_owned(int folder, const std::string& name, uid_t owner, int64_t not_before_s,
                size_t max_bytes, const TextTaker& take) {
  const int fd =
      openat(folder, name.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) return true;
  struct stat status {};
  const bool is_his = fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
                      (status.st_uid == owner || status.st_uid == 0) &&
                      status.st_mtime >= not_before_s;
  bool is_whole = true;
  if (is_his) {
    is_whole =
        static_cast<uint64_t>(status.st_size) <= max_bytes && read_pieces(fd, max_bytes, take);
  }
  close(fd);
  return is_whole;
}

uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

const Kernel& real_kernel() {
  static const Kernel kernel{open_event,     read_event, close_event, list_tasks, read_task,
                             paranoid_level, map_ring,   unmap_ring,  set_period, read_file,
                             open_folder,    read_owned, now_ns};
  return kernel;
}

}  // namespace aon::perf
