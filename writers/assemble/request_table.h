/// The live requests of one location: what a completion must know of the call that started it.
/// Ids given out are unique within the group, although an MPI library reuses its handles.
/// Thread: one.   Cost: one hash operation per start and per completion; memory bounded by
/// kMaxLiveRequests, above which new requests are not tracked.
#pragma once

#include <aon/record.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

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

class RequestTable {
 public:
  /// `next_id` counts on over all locations of a group.
  explicit RequestTable(uint64_t* next_id) : next_id_(next_id) {}

  /// Registers the request `word` and returns its id.
  uint64_t start(uint64_t word, LiveRequest request) {
    request.id = (*next_id_)++;
    if (live_.size() < kMaxLiveRequests) live_[word] = request;
    return request.id;
  }

  /// An id that no request has.
  uint64_t new_id() { return (*next_id_)++; }

  /// Takes the request out; nothing when its start is not known.
  std::optional<LiveRequest> complete(uint64_t word) {
    const auto found = live_.find(word);
    if (found == live_.end()) return std::nullopt;
    const LiveRequest request = found->second;
    live_.erase(found);
    return request;
  }

 private:
  uint64_t* next_id_;
  std::unordered_map<uint64_t, LiveRequest> live_;
};

}  // namespace aon::writers
