/// Requests of a process that were started and are not complete: what an MPI_Wait may wait for.
///
/// Thread: one.   Cost: an entry per request in flight.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
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
  uint64_t since = 0;     ///< how many requests had been completed when it was started
  uint64_t started = 0;   ///< how many had been started with it
};

/// A message that is to be received.
struct PendingMessage {
  uint32_t communicator = 0;
  int32_t peer = 0;    ///< in the communicator, or kAnyPeer
  uint64_t since = 0;  ///< as above
  uint64_t started = 0;
  bool operator<(const PendingMessage& other) const {
    return std::tie(communicator, peer, since) <
           std::tie(other.communicator, other.peer, other.since);
  }
};

class PendingRequests {
 public:
  void start(uint64_t request, PendingCollective collective) {
    collective.since = completed_count_;
    collective.started = ++started_count_;
    collectives_.try_emplace(request, collective);
  }
  void start(uint64_t request, PendingMessage message) {
    message.since = completed_count_;
    message.started = ++started_count_;
    messages_.try_emplace(request, message);
  }
  void start_send(uint64_t request) {
    sends_.try_emplace(request, Send{completed_count_, ++started_count_});
  }
  void complete(uint64_t request) {
    ++completed_count_;
    if (const auto collective = collectives_.extract(request)) {
      note_completed(collective.mapped().started);
    } else if (const auto message = messages_.extract(request)) {
      note_completed(message.mapped().started);
    } else if (const auto send = sends_.extract(request)) {
      note_completed(send.mapped().started);
    }
  }
  /// Whether others, started with it or later, were completed without it: a call that completes all
  /// of some requests was not for it then, and may not be now.
  template <class Pending>
  bool is_standing(const Pending& one) const noexcept {
    return one.since < completed_count_;
  }
  /// Whether one that was started later was completed without it: it listens, say, to who may tell
  /// it to stop.
  bool is_listener(const PendingMessage& one) const noexcept {
    return one.started < latest_completed_start_;
  }
  /// Whether an MPI_Wait that may be for receives, of which `first` was started first, may be for a
  /// send. Not for a listener; nor for one that was started behind `first`, between the same two
  /// completions, when there was one since: such requests are waited for in their order, as a rule.
  bool may_wait_for_send(const PendingMessage& first) const noexcept {
    const auto is_later = [&](const Send& send) {
      return is_standing(first) && send.since == first.since && send.started > first.started;
    };
    return std::any_of(sends_.begin(), sends_.end(), [&](const auto& entry) {
      const Send& send = entry.second;
      return send.started >= latest_completed_start_ && !is_later(send);
    });
  }
  /// The greatest PendingMessage::since of all messages in flight: those that were started last,
  /// between two completions.
  uint64_t newest_since() const noexcept {
    uint64_t newest = 0;
    for (const auto& [request, message] : messages_) newest = std::max(newest, message.since);
    for (const auto& [request, send] : sends_) newest = std::max(newest, send.since);
    return newest;
  }
  /// Of files. These have ids of their own; blocking ones are complete without having been started.
  void start_io(uint64_t request) { io_.try_emplace(request, uint8_t{1}); }
  void complete_io(uint64_t request) { io_.erase(request); }

  /// By request, in no order.
  const std::unordered_map<uint64_t, PendingCollective>& collectives() const noexcept {
    return collectives_;
  }
  /// Sorted.
  std::vector<PendingMessage> messages() const {
    std::vector<PendingMessage> result;
    result.reserve(messages_.size());
    for (const auto& [request, message] : messages_) result.push_back(message);
    std::sort(result.begin(), result.end());
    return result;
  }
  bool has_messages() const noexcept { return !messages_.empty() || has_sends(); }
  bool has_sends() const noexcept { return !sends_.empty(); }
  bool has_io() const noexcept { return !io_.empty(); }
  /// Of messages and files.
  size_t count() const noexcept { return messages_.size() + sends_.size() + io_.size(); }
  void forget() {
    messages_ = {};
    sends_ = {};
    io_ = {};
  }
  /// The same, and of collectives.
  size_t total_count() const noexcept { return count() + collectives_.size(); }
  void forget_all() { *this = {}; }

  void save(StateOut* out) const {
    out->put(collectives_);
    out->put(messages_);
    out->put(sends_);
    out->put(io_);
    out->put(completed_count_);
    out->put(started_count_);
    out->put(latest_completed_start_);
  }
  bool load(StateIn* in) {
    return in->get(&collectives_) && in->get(&messages_) && in->get(&sends_) && in->get(&io_) &&
           in->get(&completed_count_) && in->get(&started_count_) &&
           in->get(&latest_completed_start_);
  }

 private:
  struct Send {
    uint64_t since = 0;
    uint64_t started = 0;
  };

  void note_completed(uint64_t started) {
    latest_completed_start_ = std::max(latest_completed_start_, started);
  }

  std::unordered_map<uint64_t, PendingCollective> collectives_;  ///< by request
  std::unordered_map<uint64_t, PendingMessage> messages_;
  std::unordered_map<uint64_t, Send> sends_;
  std::unordered_map<uint64_t, uint8_t> io_;
  uint64_t completed_count_ = 0;
  uint64_t started_count_ = 0;
  uint64_t latest_completed_start_ = 0;
};

}  // namespace aon::writers
