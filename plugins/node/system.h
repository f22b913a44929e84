/// All that the providers of this folder ask of the machine: files of /proc and /sys, and events of
/// a CPU. Below an injectable root, so that tests replay machines that are not at hand.
/// `real_system()` is the machine we run on.
/// Thread: the provider's.   Cost: 5 to 20 us to read a file, 1 to 2 us to read an event.
#pragma once

#include <linux/perf_event.h>
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace aon::node {

/// What reading a file gave.
struct File {
  int error_number = 0;  ///< 0: it was read
  std::string text;

  explicit operator bool() const { return error_number == 0; }
};

constexpr size_t kMaxFileBytes = size_t{64} << 10;

class System {
 public:
  /// `root` stands before every path; "" is this machine.
  explicit System(std::string root) : root_(std::move(root)) {}
  virtual ~System();
  System(const System&) = delete;
  System& operator=(const System&) = delete;

  /// The first 64 KiB (`max_bytes`) of the file at an absolute path.
  virtual File read(const std::string& path, size_t max_bytes = kMaxFileBytes) const;
  /// The same of a file that is read again and again: from the second time on it stays open, unless
  /// descriptors are scarce, and where half a page is left its end is not asked for (no file of
  /// long records: mountinfo, maps, cpuinfo). Each of these saves half of what reading a file of
  /// /proc costs. Of a network card that gets another name it stays the file.
  File read_again(const std::string& path, size_t max_bytes = kMaxFileBytes) const;
  /// A descriptor of that file, or -errno: -EMFILE where a quarter of all is in use, too.
  virtual int open(const std::string& path) const;
  /// Names in a folder, sorted; empty when it is not there.
  virtual std::vector<std::string> list(const std::string& folder) const;
  virtual bool exists(const std::string& path) const;

  /// perf_event_open(attr, all processes, cpu): a descriptor, or -errno.
  virtual int open_event(const perf_event_attr& attr, int cpu);
  /// read(): bytes, or -errno.
  virtual ssize_t read_event(int fd, void* data, size_t size_bytes);
  virtual void close_event(int fd);
  /// kernel.perf_event_paranoid; 2 (the default of the kernel) where it cannot be read.
  int paranoid_level() const;

  /// A clock to measure what a reading costs.
  virtual uint64_t now_ns() const;
  /// The wall clock, which nodes have in common.
  virtual uint64_t wall_ns() const;

 private:
  std::string root_;
  mutable std::map<std::string, int> open_again_;  ///< descriptors, or -errno
};

System& real_system();

/// As System::read_again() of a file that is its owner's.
class RepeatedFile {
 public:
  RepeatedFile(const System& system, std::string path)
      : system_(&system), path_(std::move(path)), fd_(system.open(path_)) {}
  RepeatedFile(RepeatedFile&& other) noexcept
      : system_(other.system_), path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}
  RepeatedFile& operator=(RepeatedFile&& other) noexcept;
  ~RepeatedFile();

  /// As System::read(), from the start. A file of /proc/PID that is open stays that of its process;
  /// without a descriptor it is whose the number is now.
  File read() const;

 private:
  const System* system_;
  std::string path_;
  int fd_;  ///< negative: it is opened for each reading
};

}  // namespace aon::node
