/// Operations that never ended: of those told as in flight (aon/nccl.h) the ones without a whole
/// record, of one process after the other. In flight and whole records come in any order, for
/// different threads write them.
///
/// Thread: one.   Cost: two look-ups per operation; of a process kMaxWords words of 64 calls each
/// (13 MiB; 12 more of those beyond), the latest ones, and of a communicator kMaxKept operations,
/// of all kMaxKeptInAll (140 MiB): no more are in flight at a time. A damaged number costs no more
/// than another one.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "writers/writer.h"

namespace aon::writers::nccl {

class InFlight {
 public:
  static constexpr size_t kMaxKept = 32768;  ///< twice what the plugin follows
  static constexpr size_t kMaxKeptInAll = size_t{1} << 20;
  static constexpr size_t kMaxCommunicators = size_t{1} << 18;  ///< others are not followed
  static constexpr uint64_t kMaxCalls = uint64_t{1} << 42;      ///< of years; more: damage
  static constexpr size_t kMaxWords = 1u << 18;

  /// As it was told when it was enqueued, and by which thread (slot of its ring).
  struct Enqueued : NcclOperation {
    uint32_t slot = 0;
  };

  /// Takes any kNcclCall of the process.
  void add(const NcclOperation& operation, uint32_t slot = 0);

  /// The highest call of a communicator of which nothing was told although later ones were.
  std::optional<uint64_t> last_gap(uint32_t communicator) const;

  /// How many of those that were in flight beyond kMaxKept have not ended, as far as it is known.
  using Key = std::tuple<uint32_t, uint32_t, uint32_t>;  ///< communicator, region, log2 of bytes
  static Key key_of(const NcclOperation& operation);
  const std::map<Key, uint64_t>& forgotten() const { return forgotten_; }

  /// Those that never ended, by communicator (local) and call; the next process begins.
  std::vector<Enqueued> take();

 private:
  struct Communicator {
    std::map<uint64_t, uint64_t> ended;     ///< bits of 64 calls, by call / 64
    uint64_t forgotten = 0;                 ///< of calls below this nothing is known any more
    std::map<uint64_t, Enqueued> enqueued;  ///< by call
    std::map<uint64_t, uint64_t> beyond;    ///< bits of calls that were in it, as `ended`
  };
  void forget_oldest(Communicator* communicator);
  void end_forgotten(const NcclOperation& operation, Communicator* communicator);
  void add_ended(const NcclOperation& operation, Communicator* communicator);

  std::map<uint32_t, Communicator> communicators_;
  std::deque<uint32_t> words_;  ///< whose the words of all `ended` are, in the order they came
  std::map<Key, uint64_t> forgotten_;
  size_t kept_count_ = 0;         ///< of all `enqueued`
  size_t beyond_word_count_ = 0;  ///< of all `beyond`
};

}  // namespace aon::writers::nccl
