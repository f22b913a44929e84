/// What the matching must know of the job beside the events, learned while they pass.
/// Thread: one.   Cost: a vector element per group, communicator, window and file; a map entry per
/// function on files that failed in a group; the failures.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "writers/profile/mpi_calls.h"
#include "writers/waits/clock_bounds.h"
#include "writers/waits/failures.h"
#include "writers/waits/match.h"

namespace aon::writers {

class JobContext : public WaitContext {
 public:
  JobContext(const Model& model, std::function<void()> beat)
      : model_(model),
        bounds_(model),
        beat_(std::move(beat)),
        cuts_(model.groups.size()),
        message_cuts_(model.groups.size()),
        object_cut_ns_(model.groups.size(), UINT64_MAX) {
    for (auto& meeting : is_ambiguous_) meeting.resize(model.communicators.size(), false);
    is_ambiguous_[index(Meeting::kWindow)].resize(model.windows.size(), false);
    is_ambiguous_[index(Meeting::kFile)].resize(model.files.size(), false);
    for (const GlobalRegion& region : model.regions) is_test_.push_back(profile::is_test(region));
    for (uint32_t i = 0; i < model.regions.size(); ++i) note_starter(i, model.regions[i].name);
  }

  void cut(uint32_t group, Hole hole, uint64_t time_ns) { cuts_[group].move_to({time_ns, hole}); }
  /// Collectives have an order of their own.
  void cut_messages(uint32_t group, Hole hole, uint64_t time_ns) {
    message_cuts_[group].move_to({time_ns, hole});
  }
  /// Making and freeing communicators, and what it does with windows and files.
  void cut_objects(uint32_t group, uint64_t time_ns) {
    object_cut_ns_[group] = std::min(object_cut_ns_[group], time_ns);
  }
  /// What it does by one function with files, windows or communicators.
  void cut_function(uint32_t group, uint32_t region, uint64_t time_ns) {
    uint64_t& cut_ns = function_cut_ns_.try_emplace(pack(group, region), UINT64_MAX).first->second;
    cut_ns = std::min(cut_ns, time_ns);
  }
  /// A collective failed on a process: what that hides is known when all have told, in
  /// settle_failures().
  void fail(const Failures::Failure& failure) {
    if (!failures_.add(failure)) cut(failure);
  }
  /// Behind all processes' last location, before the matching. Returns how many failures that count
  /// as unmatched hide nothing.
  uint64_t settle_failures() {
    return failures_.settle([&](Failures::Failed failed) { return is_alike(failed); },
                            [&](Failures::Failed failed) {
                              for (const auto& one : failed) cut(one);
                            });
  }
  /// `object`: a communicator, window or file. Whose collectives have no order has none of its
  /// neighbourhood collectives either.
  void exclude(Meeting meeting, uint32_t object) { is_ambiguous_[index(meeting)][object] = true; }
  /// The same, for several threads of a process use it.
  void exclude_shared(Meeting meeting, uint32_t object) {
    exclude(meeting, object);
    is_shared_ = true;
  }
  /// Behind settle_failures().
  void add_holes(Holes* holes) const {
    for (size_t group = 0; group < cuts_.size(); ++group) {
      Cut first = cuts_[group];
      first.move_to(message_cuts_[group]);
      if (first.time_ns != UINT64_MAX) {
        ++(*holes)[first.hole];
      } else if (object_cut_ns_[group] != UINT64_MAX) {
        ++(*holes)[Hole::kFailure];
      }
    }
    if (is_shared_) ++(*holes)[Hole::kThreads];
  }

  /// The cuts and exclusions, for another share of the assembly.
  void save(StateOut* out) const {
    out->put(cuts_);
    out->put(message_cuts_);
    out->put(object_cut_ns_);
    out->put(is_shared_);
    out->put(function_cut_ns_);
    failures_.save(out);
    for (const auto& meeting : is_ambiguous_) out->put(meeting);
  }
  /// Adds those of another share.
  Status load(StateIn* in) {
    Status status = load_cuts(in, &cuts_);
    if (status) status = load_cuts(in, &message_cuts_);
    if (status) status = load_object_cuts(in);
    if (status) status = load_function_cuts(in);
    if (status) status = failures_.load(in);
    for (std::vector<bool>& meeting : is_ambiguous_) {
      if (status) status = load_exclusions(in, &meeting);
    }
    return status;
  }

  uint64_t cut_ns(uint32_t location) const override { return cuts_[group(location)].time_ns; }
  uint64_t message_cut_ns(uint32_t location) const override {
    return std::min(cut_ns(location), message_cuts_[group(location)].time_ns);
  }
  uint64_t object_cut_ns(const Member& member) const override {
    const uint32_t own = group(member.location);
    return std::min(object_cut_ns_[own], function_cut(own, member.function()));
  }
  uint64_t clock_error_ns(uint32_t a, uint32_t b) const override {
    return bounds_.between(node(a), node(b));
  }
  uint32_t node(uint32_t location) const override { return model_.groups[group(location)].node; }
  uint32_t group(uint32_t location) const override { return model_.locations[location].group; }
  uint32_t starting_region(const Member& member) const override {
    const auto found = starters_.find({member.operation, member.preparation != 0});
    return found != starters_.end() ? found->second : member.region;
  }
  bool is_test(uint32_t region) const override {
    return region < is_test_.size() && is_test_[region];
  }
  void beat() const override {
    if (beat_ && ++steps_ % kStepsPerBeat == 0) beat_();
  }
  size_t member_count(const Member& member) const override {
    return count_members(member.communicator, member.meeting, member.object());
  }
  bool is_of_worlds(uint32_t communicator) const override {
    return model_.communicators[communicator].is_of_worlds;
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

  /// Large counts are no other function; the first of both that is there stands for them.
  void note_starter(uint32_t region, std::string_view name) {
    if (name.ends_with("_c")) name.remove_suffix(2);
    for (const profile::Starters& one : profile::kStarters) {
      if (name == one.started) starters_.try_emplace({one.operation, false}, region);
      if (name == one.prepared) starters_.try_emplace({one.operation, true}, region);
    }
  }

  struct Cut {
    uint64_t time_ns = UINT64_MAX;
    Hole hole = Hole::kLoss;

    void move_to(const Cut& earlier) {
      if (earlier.time_ns < time_ns) *this = earlier;
    }
  };

  /// In is_ambiguous_.
  static size_t index(Meeting meeting) {
    return static_cast<size_t>(meeting == Meeting::kNeighborhood ? Meeting::kCollective : meeting);
  }
  size_t count_members(uint32_t communicator, Meeting meeting, uint32_t object) const {
    const GlobalCommunicator& c = model_.communicators[communicator];
    const bool has_groups = c.kind != CommunicatorKind::kInter || c.first_group_count != 0;
    const bool is_known = has_groups && !c.is_partial() && !is_ambiguous_[index(meeting)][object];
    return is_known ? c.members.size() : 0;
  }
  bool is_alike(Failures::Failed failed) const {
    const Failures::Failure& first = failed.front();
    return failed.size() == count_members(first.communicator, first.meeting, first.object()) &&
           std::all_of(failed.begin(), failed.end(), [&](const Failures::Failure& one) {
             return one.time_ns < std::min(cuts_[one.group].time_ns, object_cut(one));
           });
  }
  uint64_t object_cut(const Failures::Failure& failure) const {
    if (failure.meeting < Meeting::kCommunicator) return UINT64_MAX;
    return std::min(object_cut_ns_[failure.group], function_cut(failure.group, failure.function()));
  }
  uint64_t function_cut(uint32_t group, uint32_t region) const {
    const auto found = function_cut_ns_.find(pack(group, region));
    return found != function_cut_ns_.end() ? found->second : UINT64_MAX;
  }
  void cut(const Failures::Failure& failure) {
    if (failure.meeting >= Meeting::kCommunicator &&
        profile::changes_object(model_.regions[failure.function()].name)) {
      cut_function(failure.group, failure.function(), failure.time_ns);
    } else if (failure.meeting >= Meeting::kCommunicator) {
      cut_objects(failure.group, failure.time_ns);
    } else {
      cut(failure.group, Hole::kFailure, failure.time_ns);
    }
  }
  static Status load_cuts(StateIn* in, std::vector<Cut>* cuts) {
    std::vector<Cut> told;
    if (!in->get(&told)) return in->status();
    if (told.size() != cuts->size()) return Error{Code::kDamaged, "a share of another job"};
    for (size_t i = 0; i < told.size(); ++i) {
      if (static_cast<size_t>(told[i].hole) >= kHoleCount)
        return Error{Code::kDamaged, "a share of another job"};
      (*cuts)[i].move_to(told[i]);
    }
    return {};
  }
  Status load_object_cuts(StateIn* in) {
    std::vector<uint64_t> told;
    bool is_shared = false;
    if (!in->get(&told) || !in->get(&is_shared)) return in->status();
    if (told.size() != object_cut_ns_.size())
      return Error{Code::kDamaged, "a share of another job"};
    for (uint32_t i = 0; i < told.size(); ++i) cut_objects(i, told[i]);
    is_shared_ |= is_shared;
    return {};
  }
  Status load_function_cuts(StateIn* in) {
    std::map<uint64_t, uint64_t> told;
    if (!in->get(&told)) return in->status();
    for (const auto& [function, time_ns] : told)
      cut_function(static_cast<uint32_t>(function >> 32), static_cast<uint32_t>(function), time_ns);
    return {};
  }
  static Status load_exclusions(StateIn* in, std::vector<bool>* known) {
    std::vector<bool> told;
    if (!in->get(&told)) return in->status();
    if (told.size() != known->size()) return Error{Code::kDamaged, "a share of another job"};
    for (size_t i = 0; i < told.size(); ++i) (*known)[i] = (*known)[i] || told[i];
    return {};
  }

  const Model& model_;
  ClockBounds bounds_;
  std::function<void()> beat_;
  mutable uint32_t steps_ = 0;
  std::vector<Cut> cuts_;                         ///< by group
  std::vector<Cut> message_cuts_;                 ///< the same, of messages alone
  std::vector<uint64_t> object_cut_ns_;           ///< the same
  std::map<uint64_t, uint64_t> function_cut_ns_;  ///< by pack: group, region
  Failures failures_;
  std::vector<bool> is_ambiguous_[kMeetingCount];  ///< by communicator, window or file
  bool is_shared_ = false;
  std::vector<bool> is_test_;  ///< by global region
  /// Global regions, by whether they are of persistent collectives.
  std::map<std::pair<CollectiveOperation, bool>, uint32_t> starters_;
};

}  // namespace aon::writers
