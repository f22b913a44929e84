/// Operations that never ended: of those told as in flight (aon/nccl.h) the ones without a whole
/// record, of one process after the other. In flight and whole records come in any order, for
/// different threads write them.
///
/// Thread: one.   Cost: a hash per operation; of a process and communicator a bit per call, and
/// memory for kMaxKept operations: no more are in flight at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "writers/writer.h"

namespace aon::writers::nccl {

class InFlight {
 public:
  static constexpr size_t kMaxKept = 32768;        ///< twice what the plugin follows
  static constexpr uint32_t kMaxCalls = 1u << 27;  ///< of a process, told by their bits (16 MiB)

  /// Takes any kNcclCall of the process.
  void add(const NcclOperation& operation);

  /// The highest call of a communicator of which nothing was told although later ones were.
  std::optional<uint32_t> last_gap(uint32_t communicator) const;

  /// Those that never ended, by communicator (local) and call; the next process begins.
  std::vector<NcclOperation> take();

 private:
  struct Communicator {
    std::vector<bool> has_ended;                 ///< by call
    std::map<uint32_t, NcclOperation> enqueued;  ///< by call
  };
  std::map<uint32_t, Communicator> communicators_;
  size_t bit_count_ = 0;  ///< of all has_ended
};

}  // namespace aon::writers::nccl
