/// What the matching must know of the job beside the events, learned while they pass.
/// Thread: one.   Cost: a vector element per group and per communicator.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "writers/profile/mpi_calls.h"
#include "writers/waits/clock_bounds.h"
#include "writers/waits/match.h"

namespace aon::writers {

class JobContext : public WaitContext {
 public:
  JobContext(const Model& model, std::function<void()> beat)
      : model_(model),
        bounds_(model),
        beat_(std::move(beat)),
        cut_ns_(model.groups.size(), UINT64_MAX),
        is_ambiguous_(model.communicators.size(), false) {
    for (const GlobalRegion& region : model.regions) is_test_.push_back(profile::is_test(region));
  }

  void cut(uint32_t group, uint64_t time_ns) { cut_ns_[group] = std::min(cut_ns_[group], time_ns); }
  void exclude(uint32_t communicator) { is_ambiguous_[communicator] = true; }

  /// The cuts and exclusions, for another share of the assembly.
  void save(StateOut* out) const {
    out->put(cut_ns_);
    out->put(is_ambiguous_);
  }
  /// Adds those of another share.
  Status load(StateIn* in) {
    std::vector<uint64_t> cut_ns;
    std::vector<bool> is_ambiguous;
    if (!in->get(&cut_ns) || !in->get(&is_ambiguous)) return in->status();
    if (cut_ns.size() != cut_ns_.size() || is_ambiguous.size() != is_ambiguous_.size())
      return Error{Code::kDamaged, "a share of another job"};
    for (size_t i = 0; i < cut_ns.size(); ++i) cut_ns_[i] = std::min(cut_ns_[i], cut_ns[i]);
    for (size_t i = 0; i < is_ambiguous.size(); ++i) {
      if (is_ambiguous[i]) is_ambiguous_[i] = true;
    }
    return {};
  }

  uint64_t cut_ns(uint32_t location) const override {
    return cut_ns_[model_.locations[location].group];
  }
  uint64_t clock_error_ns(uint32_t a, uint32_t b) const override {
    return bounds_.between(node(a), node(b));
  }
  uint32_t node(uint32_t location) const override { return model_.groups[group(location)].node; }
  uint32_t group(uint32_t location) const override { return model_.locations[location].group; }
  bool is_test(uint32_t region) const override {
    return region < is_test_.size() && is_test_[region];
  }
  void beat() const override {
    if (beat_ && ++steps_ % kStepsPerBeat == 0) beat_();
  }
  size_t member_count(uint32_t communicator) const override {
    const GlobalCommunicator& c = model_.communicators[communicator];
    const bool has_groups = c.kind != CommunicatorKind::kInter || c.first_group_count != 0;
    const bool is_known = has_groups && !c.is_partial() && !is_ambiguous_[communicator];
    return is_known ? c.members.size() : 0;
  }
  uint32_t first_group_count(uint32_t communicator) const override {
    return model_.communicators[communicator].first_group_count;
  }
  const std::vector<uint32_t>* sources(uint32_t communicator, uint32_t rank) const override {
    const auto& all = model_.communicators[communicator].sources;
    return rank < all.size() ? all[rank] : nullptr;
  }

 private:
  static constexpr uint32_t kStepsPerBeat = 4096;

  const Model& model_;
  ClockBounds bounds_;
  std::function<void()> beat_;
  mutable uint32_t steps_ = 0;
  std::vector<uint64_t> cut_ns_;  ///< by group
  std::vector<bool> is_ambiguous_;
  std::vector<bool> is_test_;  ///< by global region
};

}  // namespace aon::writers
