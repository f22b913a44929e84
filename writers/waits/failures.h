/// Collectives that failed, those on windows and files among them. One that failed on all members
/// alike is in order: each has made as many calls as the others. Who failed alone has made one that
/// the others have not, or the other way round, so what it does from then on cannot be matched.
/// Thread: one.   Cost: 32 bytes per failure, 2 MiB at most per share of the assembly.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <tuple>
#include <vector>

#include "writers/waits/match.h"

namespace aon::writers {

class Failures {
 public:
  /// Of a process; the collective is named as a Member names it.
  struct Failure {
    uint32_t communicator;
    Meeting meeting;
    uint32_t preparation;
    uint32_t group;
    uint64_t number;
    uint64_t time_ns;

    /// Of those on communicators, windows and files.
    uint32_t function() const { return static_cast<uint32_t>(number >> 32); }
    /// Of what is made nothing is in the archive of who failed to make it.
    bool counts_as_unmatched() const { return meeting != Meeting::kCommunicator; }
    uint32_t object() const { return meeting >= Meeting::kWindow ? preparation : communicator; }
    auto instance() const { return std::tie(communicator, meeting, preparation, number); }
  };
  using Failed = std::span<const Failure>;  ///< of one collective

  /// False: it is full.
  bool add(const Failure& failure) {
    if (failures_.size() >= kMaxCount) return false;
    failures_.push_back(failure);
    return true;
  }
  /// Calls `cut` for each collective of which `is_alike` says that not all members failed, until it
  /// says so of none any more: a cut may change what it says. Returns how many failures are left
  /// that count as unmatched.
  uint64_t settle(const std::function<bool(Failed)>& is_alike,
                  const std::function<void(Failed)>& cut) {
    std::sort(failures_.begin(), failures_.end(),
              [](const Failure& a, const Failure& b) { return a.instance() < b.instance(); });
    std::vector<Failed> left;
    for (Failed rest = failures_; !rest.empty(); rest = rest.subspan(left.back().size())) {
      const auto end = std::find_if(rest.begin(), rest.end(), [&](const Failure& failure) {
        return failure.instance() != rest.front().instance();
      });
      left.push_back(rest.first(static_cast<size_t>(end - rest.begin())));
    }
    for (bool is_settled = false; !is_settled;) {
      is_settled = std::erase_if(left, [&](Failed failed) {
                     if (is_alike(failed)) return false;
                     cut(failed);
                     return true;
                   }) == 0;
    }
    uint64_t count = 0;
    for (const Failed failed : left) {
      if (failed.front().counts_as_unmatched()) count += failed.size();
    }
    return count;
  }

  void save(StateOut* out) const { out->put(failures_); }
  /// Adds those of another share.
  Status load(StateIn* in) {
    std::vector<Failure> told;
    if (!in->get(&told)) return in->status();
    failures_.insert(failures_.end(), told.begin(), told.end());
    return {};
  }

 private:
  static constexpr size_t kMaxCount = 1u << 16;  ///< of one share

  std::vector<Failure> failures_;
};

}  // namespace aon::writers
