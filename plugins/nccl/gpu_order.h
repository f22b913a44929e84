/// Whether NCCL told an operation with the times of a later one on the GPU. It keeps those of a
/// channel's last 64 operations, and its proxy may read later than that. What is told then cannot
/// be: an operation ends long after one of a later group has begun, although a communicator's
/// groups run one after the other.
///
///     told:  |A========== end of A + 64 |      A is overwritten: its end lies behind B's begin
///                |B==|  |C==|
///
/// The ends of the last groups are kept, and looked at when one of a later group begins: those that
/// lie behind that are popped. What is left ascends, so these are always the newest. Not seen are
/// operations that were read 64 late for a long time, but for the last 63, and those of which NCCL
/// tells no group (launched graphs, before version 5).
/// Thread: the one that tells of a communicator's channels.   Cost: a few ns; no lock.
#pragma once

#include <cstdint>

namespace aon::nccl {

/// Kernels that follow one another may overlap (programmatic launches), by much less than this. 64
/// of the smallest operations take 1 ms.
constexpr uint64_t kMostOverlapNs = 200'000;

/// The calls from `first` to `last`; none where `count` of operations is 0.
struct CallRange {
  uint64_t first = 0;
  uint64_t last = 0;
  uint32_t count = 0;

  void add(const CallRange& other) {
    if (other.count == 0) return;
    if (count == 0 || other.first < first) first = other.first;
    if (count == 0 || other.last > last) last = other.last;
    count += other.count;
  }
};

class GpuOrder {
 public:
  static constexpr uint32_t kGroups = 64;
  static constexpr uint32_t kGroupMask = (1u << 24) - 1;  ///< numbers of groups wrap

  /// A channel of an operation of `group` began. Returns what is overwritten.
  CallRange begin(uint32_t group, uint64_t begin_ns) {
    if (begun_ns_ == 0 || is_later(group, begun_group_)) {
      begun_group_ = group;
      begun_ns_ = begin_ns;
    }
    CallRange found;
    if (count_ == 0 || !is_later(group, newest().group) ||
        newest().end_ns <= begin_ns + kMostOverlapNs)
      return found;
    for (; count_ != 0 && newest().end_ns > begin_ns; --count_, --next_) found.add(newest().calls);
    return found;
  }

  /// All channels of an operation of `group` have ended. True: its own times are overwritten.
  bool end(uint32_t group, uint64_t call, uint64_t end_ns) {
    if (is_later(begun_group_, group)) return end_ns > begun_ns_ + kMostOverlapNs;
    if (count_ == 0 || newest().group != group) {
      ends_[next_++ % kGroups] = {0, group, {}};
      if (count_ < kGroups) ++count_;
    }
    End& at = newest();
    if (end_ns > at.end_ns) at.end_ns = end_ns;
    at.calls.add({call, call, 1});
    return false;
  }

 private:
  struct End {
    uint64_t end_ns;  ///< of the GPU's timer
    uint32_t group;
    CallRange calls;
  };
  static bool is_later(uint32_t group, uint32_t than) {
    const uint32_t distance = (group - than) & kGroupMask;
    return distance != 0 && distance <= kGroupMask / 2;
  }
  End& newest() { return ends_[(next_ - 1) % kGroups]; }

  End ends_[kGroups];
  uint32_t next_;
  uint32_t count_;
  uint32_t begun_group_;  ///< the latest of which any channel began
  uint64_t begun_ns_;
};

}  // namespace aon::nccl
