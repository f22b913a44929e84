/// The live requests of one location: what a completion must know of the call that started it.
/// Ids given out are unique within the group, although an MPI library reuses its handles. A thread
/// may complete what another one has begun.
/// Thread: one.   Cost: one hash operation per start and per completion; memory bounded by
/// kMaxLiveRequests, above which new requests are not tracked.
#pragma once

#include <aon/record.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "writers/writer.h"

namespace aon::writers {

constexpr size_t kMaxLiveRequests = size_t{1} << 20;

struct LiveRequest {
  uint64_t id;
  bool
      is_visible;  ///< false: the start made no event (peer MPI_PROC_NULL), so neither does the end
  CollectiveOperation operation;
  uint32_t communicator;
  int32_t root;
  uint64_t bytes_sent;
  uint64_t bytes_received;
  bool is_rma = false;  ///< then `communicator` is the window and `root` the target
};

/// The requests of one process that one location has begun and another one has completed. Either
/// location may come first: what it says of them waits here for the other.
/// Owner: the assembler.
class GroupRequests {
 public:
  /// An id that no request has.
  uint64_t new_id() { return next_id_++; }

  /// A location ends; these it has begun only.
  void keep(const std::unordered_map<uint64_t, LiveRequest>& live) {
    for (const auto& [word, request] : live) {
      if (begun_.size() < kMaxLiveRequests) begun_[word] = request.id;
    }
  }

  /// The id of a request that has ended already, if it has.
  std::optional<uint64_t> begin(uint64_t word) {
    const auto ended = ended_.extract(word);
    return ended ? std::optional(ended.mapped().id) : std::nullopt;
  }

  /// The request `word` has ended where it was not begun. `is_counted`: as unmatched, so it counts
  /// no more when its start never comes. Returns its id.
  uint64_t end(uint64_t word, bool is_counted) {
    if (const auto begun = begun_.extract(word)) return begun.mapped();
    const uint64_t id = new_id();
    if (ended_.size() < kMaxLiveRequests) {
      ended_[word] = {id, is_counted};
    } else if (!is_counted) {
      ++unfollowed_count_;
    }
    return id;
  }

  /// All locations of the process have been read: ends without a start are counted. Of a request
  /// without an end nothing is missing: the program may have left it.
  void settle(Outcome* outcome) {
    for (const auto& [word, ended] : ended_) outcome->unmatched_count += ended.is_counted ? 0 : 1;
    outcome->unmatched_count += unfollowed_count_;
    begun_.clear();
    ended_.clear();
    unfollowed_count_ = next_id_ = 0;
  }

 private:
  struct Ended {
    uint64_t id;
    bool is_counted;
  };

  std::unordered_map<uint64_t, uint64_t> begun_;  ///< word -> id
  std::unordered_map<uint64_t, Ended> ended_;     ///< the same
  uint64_t unfollowed_count_ = 0;
  uint64_t next_id_ = 0;
};

class RequestTable {
 public:
  explicit RequestTable(GroupRequests* group) : group_(group) {}

  /// Registers the request `word` and returns its id.
  uint64_t start(uint64_t word, LiveRequest request) {
    if (const std::optional<uint64_t> ended = group_->begin(word)) return *ended;
    request.id = group_->new_id();
    if (live_.size() < kMaxLiveRequests) live_[word] = request;
    return request.id;
  }

  uint64_t new_id() { return group_->new_id(); }

  /// Takes the request out; nothing when this location has not begun it.
  std::optional<LiveRequest> complete(uint64_t word) {
    const auto found = live_.find(word);
    if (found == live_.end()) return std::nullopt;
    const LiveRequest request = found->second;
    live_.erase(found);
    return request;
  }

  /// What complete() does not know has ended (GroupRequests::end). Returns its id.
  uint64_t end(uint64_t word, bool is_counted) { return group_->end(word, is_counted); }

  /// The location is over.
  void finish() {
    group_->keep(live_);
    live_.clear();
  }

 private:
  GroupRequests* group_;
  std::unordered_map<uint64_t, LiveRequest> live_;
};

}  // namespace aon::writers
