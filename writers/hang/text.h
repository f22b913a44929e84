/// Words for people about hangs: who, which ranks, for how long, where a thread stands.
/// Thread: any.   Cost: of a string.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "writers/writer.h"

namespace aon::writers {

class HangText {
 public:
  /// `last_ns`: each group's last event. All outlives this.
  HangText(const Model& model, std::span<const uint64_t> last_ns, uint64_t now_ns)
      : model_(model), last_ns_(last_ns), now_ns_(now_ns) {}

  std::string for_seconds(uint64_t since_ns) const;
  /// "rank 3 on n1 (pid 4711)"
  std::string who(uint32_t group) const;
  /// "0-2, 5 and 9 more": ranks, or the names of processes without one; of many the first ones.
  std::string list(std::vector<uint32_t> groups) const;
  /// "; it was ended by signal 9", "" while it runs.
  std::string end_text(uint32_t group) const;
  /// "its last call was over 5 s ago"
  std::string last_call(uint32_t group) const;
  /// Behind the time of the last call: of polls that find nothing one in many is recorded.
  const char* polls_apart(uint32_t group) const;

  /// "poll < progress < main (waits in the kernel, ...)" of a thread (0: the main thread); "" where
  /// none was taken, or the process has gone on since.
  std::string stack(uint32_t group, int32_t tid = 0) const;
  /// "    0-1 stand in ...", a line for each stack of the groups, of their main threads.
  std::vector<std::string> stacks(std::span<const uint32_t> groups) const;
  /// The same of threads: (group, tid).
  std::vector<std::string> stacks(std::span<const std::pair<uint32_t, int32_t>> threads) const;

 private:
  const Model& model_;
  std::span<const uint64_t> last_ns_;
  uint64_t now_ns_;
};

}  // namespace aon::writers
