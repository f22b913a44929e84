/// A machine as text: what its files hold and its events count, at first and after each step. The
/// providers run on it as on a real one.
///
///     # a comment
///     /proc/loadavg = 0.50 0.40 0.30 1/200 1234     a file of one line
///     /proc/meminfo <<                              a file up to the line with a single dot
///     MemTotal: 100 kB
///     .
///     /sys/class/powercap/intel-rapl:0/energy_uj !EACCES
///     /sys/class/net/eth0/device exists             a folder or link
///     /sys/class/net/eth0 gone                      and all below it
///     event 9/0x2/0 = 100 1000 1000                 type/config/cpu = value, enabled, running
///     event 9/0x2/0 !EACCES                         may not be opened
///     > tick 1000                                   or: start NUMBER PID, end NUMBER
///
/// What stands before the first step is there when a provider starts.
/// Thread: one.
#pragma once

#include <cerrno>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "plugins/node/system.h"

namespace aon::node::test {

class Machine : public System {
 public:
  explicit Machine(const std::string& text);

  File read(const std::string& path, size_t max_bytes) const override;
  int open(const std::string&) const override { return -EMFILE; }
  std::vector<std::string> list(const std::string& folder) const override;
  bool exists(const std::string& path) const override;
  int open_event(const perf_event_attr& attr, int cpu) override;
  ssize_t read_event(int fd, void* data, size_t size_bytes) override;
  void close_event(int fd) override;
  uint64_t now_ns() const override { return now_ns_; }
  uint64_t wall_ns() const override { return now_ns_; }

  /// Goes on to the next step; "" after the last one. Returns what is to be done, "tick 1000".
  std::string next();
  /// What the clock says from now on; each reading of it adds nothing.
  void set_now_ns(uint64_t now_ns) { now_ns_ = now_ns; }
  /// Descriptors that are open now.
  size_t open_count() const { return open_.size(); }

 private:
  struct Counter {
    int error_number = 0;
    uint64_t words[3] = {};
  };

  void apply(const std::string& line);
  void set_event(const std::string& text);

  std::vector<std::string> lines_;
  size_t position_ = 0;
  std::map<std::string, File> files_;
  std::map<std::string, Counter> events_;  ///< by "type/0xconfig/cpu"
  std::map<int, std::string> open_;
  int next_fd_ = 100;
  uint64_t now_ns_ = 0;
};

}  // namespace aon::node::test
