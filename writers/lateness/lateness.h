/// Who comes late to collectives, told without comparing clocks where durations can tell it.
///
/// In an operation in which every member waits for all others, the last one to come hardly waits.
/// Durations are each measured with one clock, so of the members of one operation
///
///     wait of a member = its duration - the shortest duration     (0: it came last)
///     what the last one cost the others = the sum of their waits
///
/// Who waits at most a tenth of what who waits longest does was at least nine tenths as late as the
/// last one: it came late with it. They share evenly what the others waited (and they for the last
/// one). With a half in place of a tenth, ranks that get a core late would share the blame.
///
/// Members that do something else between coming to an operation and waiting for it have not waited
/// that long (Attendance::busy_ns), but came as early as their duration says.
///
/// Nothing in it is MPI's: it may be fed with the operations of any library. An operation that ends
/// for some members before it ends for others counts the difference as waiting, too: it is exact
/// to that part of an operation.
/// Thread: one.   Cost: a pass over the members and a hash look-up each; memory for a row per
/// communicator, kind of operation and member.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "writers/state.h"

namespace aon::writers {

constexpr size_t kMaxLatenessRows = 1u << 19;

/// Who comes last by less than that, by the mean wait of the others, is not late: the members of an
/// operation leave it some us apart, each in its turn, and the timers of GPUs may go in steps of
/// 1 us.
constexpr uint64_t kLeastLateNs = 10'000;

/// One member of an operation.
struct Attendance {
  uint32_t group;  ///< index in Model::groups
  uint64_t duration_ns;
  uint64_t busy_ns = 0;  ///< of what is beyond the shortest duration: it did something else
};

/// Of the longest wait, one part of so many is no matter for who came late together.
constexpr uint64_t kTogetherParts = 10;

/// Who of the members of an operation, of which there are any, came late, and what that cost.
class LateMembers {
 public:
  explicit LateMembers(std::span<const Attendance> members);

  size_t last() const { return last_; }
  size_t count() const { return count_; }  ///< the last one and those that came with it
  uint64_t wait_ns(size_t member) const { return ahead_ns(member) - members_[member].busy_ns; }
  bool is_late(size_t member) const {
    return member == last_ ||
           (longest_wait_ns_ != 0 && ahead_ns(member) <= longest_wait_ns_ / kTogetherParts);
  }
  /// What a late one caused: all shares together are all waits.
  uint64_t caused_ns(size_t member) const {
    return all_waits_ns_ / count_ + (member == last_ ? all_waits_ns_ % count_ : 0);
  }
  /// By kLeastLateNs or more.
  bool is_worth_telling() const;

 private:
  /// How long before the last one it came.
  uint64_t ahead_ns(size_t member) const {
    return members_[member].duration_ns - members_[last_].duration_ns;
  }

  std::span<const Attendance> members_;
  size_t last_ = 0;
  size_t count_ = 0;
  uint64_t longest_wait_ns_ = 0;
  uint64_t all_waits_ns_ = 0;
};

/// One process in all operations of one region (global id) of one communicator (global id).
struct LatenessRow {
  uint32_t communicator = 0;
  uint32_t region = 0;
  uint32_t group = 0;
  uint64_t count = 0;       ///< operations it took part in
  uint64_t last_count = 0;  ///< of these, it came last
  uint64_t wait_ns = 0;     ///< it waited for others
  uint64_t caused_ns = 0;   ///< its share of what all others together waited where it came late
  uint64_t max_caused_ns = 0;
  uint64_t late_count = 0;      ///< it came late, alone or with others, by kLeastLateNs or more
  uint64_t shared_count = 0;    ///< of these, with others
  uint64_t late_caused_ns = 0;  ///< of caused_ns, in those of late_count
  uint64_t least_ns = 0;        ///< sum of the shortest durations: what the operations took
};

class LatenessTable {
 public:
  /// One operation, all of its members. Fewer than two have nobody to wait for.
  void add(uint32_t communicator, uint32_t region, std::span<const Attendance> members);

  /// By communicator, region and group.
  std::vector<LatenessRow> rows() const;
  /// Whether one of them is there: of kMaxLatenessRows.
  bool has_row(uint32_t communicator, uint32_t region, uint32_t group) const {
    return rows_.count({key_of(communicator, region), group}) != 0;
  }

  /// For a table of other operations.
  void save(StateOut* out) const;
  /// Adds what that one had.
  Status load(StateIn* in);

  uint64_t operation_count() const { return operation_count_; }
  /// Members of operations for which there was no row any more.
  uint64_t left_out_count() const { return left_out_count_; }

 private:
  struct Key {
    uint64_t operation;  ///< communicator, region
    uint32_t group;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    size_t operator()(const Key& key) const {
      return (key.operation * 0x9e3779b97f4a7c15u + key.group) * 0xbf58476d1ce4e5b9u >> 16;
    }
  };
  static uint64_t key_of(uint32_t communicator, uint32_t region) {
    return uint64_t{communicator} << 32 | region;
  }
  LatenessRow* row(uint32_t communicator, uint32_t region, uint32_t group);

  std::unordered_map<Key, LatenessRow, Hash> rows_;
  uint64_t operation_count_ = 0;
  uint64_t left_out_count_ = 0;
};

constexpr double kAlikeShare = 0.9;
struct Latecomer;
/// Whether it came late to anything.
bool is_late(const Latecomer& latecomer);

/// The process that cost the others most in all of `rows` where it came late. One stall of seconds
/// counts, among however many operations to which it came last by next to nothing.
struct Latecomer {
  uint32_t group = 0;
  uint64_t late_count = 0;    ///< it came late by kLeastLateNs or more
  uint64_t shared_count = 0;  ///< of these, with others
  uint64_t count = 0;         ///< operations it took part in
  uint64_t caused_ns = 0;     ///< by it, in those of late_count
  uint64_t together_ns = 0;   ///< the same and what those of `alike` caused
  uint64_t all_ns = 0;        ///< by everybody, in all operations
  uint32_t region = 0;        ///< in which it cost most
  uint64_t region_ns = 0;     ///< there
  std::vector<uint32_t>
      alike;  ///< ascending: the others that cost kAlikeShare of caused_ns or more
};
Latecomer find_latecomer(std::span<const LatenessRow> rows);

}  // namespace aon::writers
