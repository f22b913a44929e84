/// Requests of a process that were started and are not complete: what an MPI_Wait may wait for.
///
/// Thread: one.   Cost: an entry per request in flight.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "writers/state.h"

namespace aon::writers {

/// A collective that was started by a request.
struct PendingCollective {
  uint32_t communicator = 0;
  uint32_t region = 0;
  uint64_t number = 0;  ///< of the communicator's collectives, from 0; of a persistent one: unused
  uint64_t instance = 0;  ///< of a persistent one (pack_instance), else 0
};

/// A message that was started by a request.
struct PendingMessage {
  uint32_t communicator = 0;
  int32_t peer = 0;  ///< in the communicator, or kAnyPeer
  uint32_t is_send = 0;
  auto operator<=>(const PendingMessage&) const = default;
};

class PendingRequests {
 public:
  void start(uint64_t request, const PendingCollective& collective) {
    if (early_.erase(request) == 0) collectives_.try_emplace(request, collective);
  }
  void start(uint64_t request, const PendingMessage& message) {
    if (early_.erase(request) == 0) messages_.try_emplace(request, message);
  }
  /// In another thread it may come before the start of it, for threads come one after the other.
  void complete(uint64_t request) {
    if (collectives_.erase(request) == 0 && messages_.erase(request) == 0)
      early_.try_emplace(request, uint8_t{1});
  }
  /// Of a file. These have ids of their own; blocking ones are complete without having been
  /// started.
  void start_io(uint64_t request) { io_.try_emplace(request, uint8_t{1}); }
  void complete_io(uint64_t request) { io_.erase(request); }

  /// In no order.
  std::vector<PendingCollective> collectives() const {
    std::vector<PendingCollective> result;
    for (const auto& [request, collective] : collectives_) result.push_back(collective);
    return result;
  }
  /// Sorted.
  std::vector<PendingMessage> messages() const {
    std::vector<PendingMessage> result;
    for (const auto& [request, message] : messages_) result.push_back(message);
    std::sort(result.begin(), result.end());
    return result;
  }
  bool has_collectives() const noexcept { return !collectives_.empty(); }
  bool has_messages() const noexcept { return !messages_.empty(); }
  bool has_io() const noexcept { return !io_.empty(); }

  void save(StateOut* out) const {
    out->put(collectives_);
    out->put(messages_);
    out->put(io_);
  }
  bool load(StateIn* in) { return in->get(&collectives_) && in->get(&messages_) && in->get(&io_); }

 private:
  std::unordered_map<uint64_t, PendingCollective> collectives_;  ///< by request
  std::unordered_map<uint64_t, PendingMessage> messages_;
  std::unordered_map<uint64_t, uint8_t> io_;
  std::unordered_map<uint64_t, uint8_t> early_;  ///< completed before they were started
};

}  // namespace aon::writers
