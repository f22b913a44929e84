/// The helper process, from its start to its end: never left behind.
///
///     start -> runs --ends itself, or is killed--> ended, and why
///     stop: its input ends; it gets kEndMs, then SIGKILL
///
/// When we die it gets SIGKILL from the kernel, and the end of its input.
/// Owner: the provider.   Thread: one, the one that started it (the kernel watches that one).
/// Cost: a process; no call waits but stop().
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace aon::gpu_counters {

constexpr int kEndMs = 3000;  ///< CUPTI frees the counters in this time

class Child {
 public:
  Child() = default;
  ~Child() { stop(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Starts `arguments` (the program first), without what would load us into it.
  /// Returns errno, 0: it runs.
  int start(const std::vector<std::string>& arguments);
  /// Reads what there is, without waiting, into `bytes`.   False: it has ended; see ending().
  bool read(std::string* bytes);
  /// `rest`: what it had not been asked for yet is added to it; null: dropped.
  void stop(std::string* rest = nullptr);

  pid_t pid() const { return pid_; }
  /// "exit code 1", "signal 11"; empty while it runs.
  const std::string& ending() const { return ending_; }

 private:
  void drain(std::string* rest);
  bool reap(bool waits);

  pid_t pid_ = -1;
  int input_ = -1;   ///< its standard input
  int output_ = -1;  ///< its standard output
  std::string ending_;
};

}  // namespace aon::gpu_counters
