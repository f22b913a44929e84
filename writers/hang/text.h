/// Words for people about hangs: who, which ranks, for how long, where a thread stands.
/// Thread: any.   Cost: of a string.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "writers/writer.h"

namespace aon::writers {

class HangText {
 public:
  /// `last_ns`: each group's last event. All outlives this.
  HangText(const Model& model, std::span<const uint64_t> last_ns, uint64_t now_ns)
      : model_(model), last_ns_(last_ns), now_ns_(now_ns) {}

  /// A thread is in a call that does not return: its stack is of this time, whatever others of its
  /// process record.
  void note_call(uint32_t group, int32_t tid, uint64_t start_ns) {
    calls_[{group, tid}] = start_ns;
  }

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
  /// Of an open MPI_Sendrecv it is known whom it sends to, not whom it receives from.
  bool is_exchange(const OpenCall& call) const;
  /// " with rank 2", " sending to rank 2", " from any rank"; "" where it names nobody.
  std::string partner_text(const OpenCall& call) const;

  /// Of a thread (0: the main thread); false where it was not looked at, or the process has gone on
  /// since, unless the thread is in a call (note_call).
  bool has_stack(uint32_t group, int32_t tid) const { return stack(group, tid) != nullptr; }
  /// "    0-1 stand in poll < progress < main (waits in the kernel, ...)", or "    0: why there is
  /// none": a line for each stack of the groups, of their main threads.
  std::vector<std::string> stacks(std::span<const uint32_t> groups) const;
  /// The same of threads: (group, tid).
  std::vector<std::string> stacks(std::span<const std::pair<uint32_t, int32_t>> threads) const;

 private:
  const HostStack* stack(uint32_t group, int32_t tid) const;

  const Model& model_;
  std::span<const uint64_t> last_ns_;
  uint64_t now_ns_;
  std::map<std::pair<uint32_t, int32_t>, uint64_t> calls_;  ///< since when, by group and thread
};

}  // namespace aon::writers
