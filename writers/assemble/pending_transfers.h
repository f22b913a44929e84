/// The one-sided transfers of one location that no call has completed at the target yet. Those to
/// one target of a window share an id, so that memory does not grow with their number; those with
/// an MPI request have ids of their own, for the Wait completes each by itself.
/// Thread: one.   Cost: one search per transfer; memory bounded by kMaxPendingTransfers, above
/// which a transfer is not followed to the target.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace aon::writers {

constexpr size_t kMaxPendingTransfers = size_t{1} << 16;

class PendingTransfers {
 public:
  struct Target {
    uint64_t shared_id = 0;
    bool has_shared = false;
    bool is_local_pending = false;   ///< a transfer of the shared id may still use its buffers
    std::vector<uint64_t> requests;  ///< ids of transfers with an MPI request
  };
  using Key = std::pair<uint32_t, int32_t>;  ///< window, target
  using Targets = std::map<Key, Target>;

  /// The entry of `target`; null when there is no room.
  Target* find(uint32_t window, int32_t target) {
    const auto found = targets_.find({window, target});
    if (found != targets_.end()) return &found->second;
    if (is_full()) return nullptr;
    return &targets_[{window, target}];
  }

  /// Notes one more transfer with a request.
  void add_request(uint32_t window, int32_t target, uint64_t id) {
    if (is_full()) return;
    if (Target* pending = find(window, target)) {
      pending->requests.push_back(id);
      ++request_count_;
    }
  }

  /// Calls `visit` for `target` of `window`, or for all its targets when it is negative.
  template <class Visit>
  void for_each(uint32_t window, int32_t target, Visit visit) {
    auto [begin, end] = range(window, target);
    for (; begin != end; ++begin) visit(begin->second);
  }

  /// Ids that no call has completed at the target.
  size_t open_count() const {
    size_t count = request_count_;
    for (const auto& [key, target] : targets_) count += target.has_shared ? 1 : 0;
    return count;
  }

  /// The same are complete at the target.
  void remove(uint32_t window, int32_t target) {
    for_each(window, target, [this](const Target& t) { request_count_ -= t.requests.size(); });
    const auto [begin, end] = range(window, target);
    targets_.erase(begin, end);
  }

 private:
  bool is_full() const { return targets_.size() + request_count_ >= kMaxPendingTransfers; }

  std::pair<Targets::iterator, Targets::iterator> range(uint32_t window, int32_t target) {
    if (target >= 0) return targets_.equal_range({window, target});
    return {targets_.lower_bound({window, 0}), targets_.upper_bound({window, INT32_MAX})};
  }

  Targets targets_;
  size_t request_count_ = 0;
};

}  // namespace aon::writers
