/// Helper: a forked process that does dangerous work and tells its results through a pipe. Reading
/// files that anybody may have written, with libraries that trust them, can crash, loop or eat
/// memory; then the helper dies and the caller goes on with what came until then.
///
///     caller                          helper
///     start() ── fork ──────────────▶ core dumps off, descriptors closed, memory limited
///     read() ◀──────── pipe ───────── work(pipe), _exit(0)
///     end()  ── kill, wait
///
/// Thread: one owner; may be used in a program with threads: of them only the caller is in the
/// helper.   Cost: a fork.   Errors: kUnavailable when no process can be made.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>

#include "core/base/result.h"
#include "core/base/unique_fd.h"

namespace aon::symbols {

/// Exit code of a helper that had no memory left.
constexpr int kOutOfMemoryExit = 77;

struct HelperLimits {
  uint64_t memory_bytes = 0;  ///< more than the caller has at the start
  uint32_t seconds = 0;
};

class Helper {
 public:
  /// Runs `work` in a new process; it writes its results to the descriptor it gets.
  static Result<Helper> start(const HelperLimits& limits, const std::function<void(int)>& work);
  Helper(Helper&& other) noexcept;
  Helper& operator=(Helper&&) = delete;
  ~Helper();

  /// Reads up to `bytes`; 0 when the helper ended or its time is over.
  size_t read(void* buffer, size_t bytes);
  /// Waits for the end. Empty when all went well, else why not: "ran out of memory".
  std::string end();

 private:
  Helper(pid_t pid, UniqueFd pipe, uint32_t seconds);

  pid_t pid_;
  UniqueFd pipe_;
  int64_t deadline_ms_;
  uint32_t seconds_;
  bool is_late_ = false;
};

}  // namespace aon::symbols
