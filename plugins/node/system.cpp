#include "node/system.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "node/text.h"

namespace aon::node {
namespace {

/// The last descriptors are the agent's: it must be able to take ranks on and open its files.
constexpr rlim_t kSpareDescriptors = 16;
constexpr int kNotOpened = -EAGAIN;

bool is_among_the_last(int fd) {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
         static_cast<rlim_t>(fd) + kSpareDescriptors >= limit.rlim_cur;
}

/// What only saves time leaves most of them to counters and samples.
bool is_scarce(int fd) {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) != 0 || static_cast<rlim_t>(fd) > limit.rlim_cur / 4;
}

uint64_t clock_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

enum class Records { kShort, kAny };

/// The kernel fills a page with as many whole records as fit. Where those of a file are short, or
/// it is one record, nothing follows where half of the page is left: asking for the end costs as
/// much as the file, which the kernel writes anew for it.
File read_from_start(int fd, size_t max_bytes, Records records) {
  File file;
  char buffer[4096];
  while (file.text.size() < max_bytes) {
    const size_t wanted = std::min(sizeof(buffer), max_bytes - file.text.size());
    const ssize_t n = pread(fd, buffer, wanted, static_cast<off_t>(file.text.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) file = {errno, ""};
    if (n <= 0) break;
    file.text.append(buffer, static_cast<size_t>(n));
    if (records == Records::kShort && static_cast<size_t>(n) < sizeof(buffer) / 2) break;
  }
  return file;
}

}  // namespace

File System::read(const std::string& path, size_t max_bytes) const {
  const int fd = ::open((root_ + path).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {errno, ""};
  File file = read_from_start(fd, max_bytes, Records::kAny);
  close(fd);
  return file;
}

System::~System() {
  for (const auto& [path, fd] : open_again_) {
    if (fd >= 0) close(fd);
  }
}

File System::read_again(const std::string& path, size_t max_bytes) const {
  const auto [found, is_first] = open_again_.try_emplace(path, kNotOpened);
  if (is_first) return read(path, max_bytes);
  int& fd = found->second;
  if (fd == kNotOpened) fd = open(path);
  if (fd >= 0) {
    File file = read_from_start(fd, max_bytes, Records::kShort);
    if (file) return file;
    close(fd);  // what it belonged to is gone, and may come again
    fd = kNotOpened;
    return file;
  }
  return read(path, max_bytes);
}

int System::open(const std::string& path) const {
  const int fd = ::open((root_ + path).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -errno;
  if (!is_scarce(fd)) return fd;
  close(fd);
  return -EMFILE;
}

std::vector<std::string> System::list(const std::string& folder) const {
  std::vector<std::string> names;
  DIR* directory = opendir((root_ + folder).c_str());
  if (directory == nullptr) return names;
  while (const dirent* entry = readdir(directory)) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  closedir(directory);
  std::sort(names.begin(), names.end());
  return names;
}

bool System::exists(const std::string& path) const {
  return access((root_ + path).c_str(), F_OK) == 0;
}

int System::open_event(const perf_event_attr& attr, int cpu) {
  const long fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
  if (fd < 0) return -errno;
  if (!is_among_the_last(static_cast<int>(fd))) return static_cast<int>(fd);
  close(static_cast<int>(fd));
  return -EMFILE;
}

ssize_t System::read_event(int fd, void* data, size_t size_bytes) {
  const ssize_t n = ::read(fd, data, size_bytes);
  return n < 0 ? -errno : n;
}

void System::close_event(int fd) { close(fd); }

int System::paranoid_level() const {
  const File file = read("/proc/sys/kernel/perf_event_paranoid");
  if (file && file.text.starts_with("-")) return -1;
  const auto level = number_in(file.text);
  return file && level ? static_cast<int>(*level) : 2;
}

uint64_t System::now_ns() const { return clock_ns(CLOCK_MONOTONIC); }

uint64_t System::wall_ns() const { return clock_ns(CLOCK_REALTIME); }

System& real_system() {
  static System* const system = new System("");  // never destroyed
  return *system;
}

RepeatedFile& RepeatedFile::operator=(RepeatedFile&& other) noexcept {
  std::swap(system_, other.system_);
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  return *this;
}

RepeatedFile::~RepeatedFile() {
  if (fd_ >= 0) close(fd_);
}

File RepeatedFile::read() const {
  return fd_ >= 0 ? read_from_start(fd_, kMaxFileBytes, Records::kShort) : system_->read(path_);
}

}  // namespace aon::node
